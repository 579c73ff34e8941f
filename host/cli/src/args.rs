//! Arguments.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use proxops_repo::{Concurrency, LogFormat, LogLevel, Overrides};
use std::path::PathBuf;
use std::time::Duration;

/// Converge Proxmox VE clusters with a git repository.
#[derive(Parser, Debug)]
#[command(name = "proxops", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 converged, nothing failed; 1 error, failed action or aborted cluster; 2 changes pending (with --exit-code)."
)]
pub struct Args {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(ClapArgs, Debug, Clone)]
pub struct Global {
    /// Form of the output.
    #[arg(short, long, global = true, value_enum, default_value = "text")]
    pub output: Output,
    /// Only this cluster; may be given several times.
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Vec<String>,
    /// The tree to use, in place of the one around the working directory [env: PROXOPS_GIT_PATH].
    #[arg(long, global = true, value_name = "DIR")]
    pub git_path: Option<PathBuf>,
    /// One process or cluster file to load [env: PROXOPS_CONFIG].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where journal, locks and compiled kinds are kept.
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// A further folder of third-party kinds.
    #[arg(long, global = true, value_name = "DIR")]
    pub kinds_dir: Option<PathBuf>,
    /// Colours; also NO_COLOR.
    #[arg(long, global = true, value_enum, default_value = "auto")]
    pub color: Color,
    /// More log lines; twice for still more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Laid over the files.
    #[command(flatten)]
    pub laid: Laid,
    /// Of `run`, laid over the files.
    #[arg(skip)]
    pub listen: Option<String>,
}

/// Settings of the files that the command line may replace, for all clusters.
#[derive(ClapArgs, Debug, Clone, PartialEq, Eq, Default)]
#[command(next_help_heading = "In place of what the files say")]
pub struct Laid {
    /// `reconcile.prune-budget`: most deletes in one cycle; 0 = no limit.
    #[arg(long, global = true, value_name = "N")]
    pub prune_budget: Option<u32>,
    /// `reconcile.task-timeout`, such as 30m.
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub task_timeout: Option<Duration>,
    /// `reconcile.poll-interval`, such as 30s.
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub poll_interval: Option<Duration>,
    /// `reconcile.concurrency`: most actions at once in a cluster, and on a node.
    #[arg(long, global = true, value_name = "N[,NODE]", value_parser = concurrency)]
    pub concurrency: Option<Concurrency>,
    /// `log.level`: error, warn, info, debug, trace.
    #[arg(long, global = true, value_name = "LEVEL", value_parser = log_level)]
    pub log_level: Option<LogLevel>,
    /// `log.format`: text or json.
    #[arg(long, global = true, value_name = "FORM", value_parser = log_format)]
    pub log_format: Option<LogFormat>,
}

impl Global {
    /// What lies over the files.
    pub fn overrides(&self) -> Overrides {
        let laid = self.laid.clone();
        Overrides {
            log_level: laid.log_level,
            log_format: laid.log_format,
            listen: self.listen.clone(),
            data_dir: self.data_dir.clone(),
            poll_interval: laid.poll_interval,
            task_timeout: laid.task_timeout,
            prune_budget: laid.prune_budget,
            concurrency: laid.concurrency,
        }
    }

    /// Whether a plan may differ from one by the files alone, such as a daemon's.
    pub fn plans_otherwise(&self) -> bool {
        self.laid.prune_budget.is_some() || self.laid.concurrency.is_some()
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    proxops_repo::duration(text).ok_or("a number with a unit: 30s, 5m, 1h30m")
}

fn concurrency(text: &str) -> Result<Concurrency, &'static str> {
    let number = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0);
    let (cluster, node) = text.split_once(',').map_or((text, None), |(cluster, node)| (cluster, Some(node)));
    let cluster = number(cluster);
    let node = node.map_or(Some(Concurrency::default().node), number);
    cluster
        .zip(node)
        .map(|(cluster, node)| Concurrency { cluster, node })
        .ok_or("one or two numbers from 1: 8 or 8,4")
}

fn log_level(text: &str) -> Result<LogLevel, &'static str> {
    let word = LogLevel::WORDS.iter().find(|(word, _)| *word == text);
    word.map(|(_, level)| *level).ok_or("error, warn, info, debug or trace")
}

fn log_format(text: &str) -> Result<LogFormat, &'static str> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("text or json"),
    }
}

/// Form of the output.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people.
    Text,
    /// One documented, versioned document.
    Json,
    /// For a pull request (`diff` and `apply` only).
    Markdown,
}

/// When to colour.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check the whole repository offline: no PVE, no secrets needed.
    Validate,
    /// Show what would change. Writes nothing. Asks a daemon first that runs on the same, unchanged tree.
    Diff {
        /// Look by itself, even if a daemon runs.
        #[arg(long)]
        no_daemon: bool,
        /// Exit 2 when anything is not converged.
        #[arg(long)]
        exit_code: bool,
        /// Save the plan, for `apply FILE`.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Converge every cluster once.
    Apply {
        /// A plan that `diff --out` saved: apply exactly that, or nothing if anything changed since.
        #[arg(value_name = "PLAN")]
        plan: Option<PathBuf>,
        /// Exit 2 when anything was not converged.
        #[arg(long)]
        exit_code: bool,
        /// The same as diff.
        #[arg(long)]
        dry_run: bool,
        /// Don't ask before deleting.
        #[arg(long, short)]
        yes: bool,
    },
    /// Show what is converged and what is not. Asks a running daemon first.
    Status {
        /// Look by itself, even if a daemon runs.
        #[arg(long)]
        no_daemon: bool,
    },
    /// Run as a daemon: reconcile every cluster on its poll interval and on every announced push.
    Run(RunArgs),
    /// Make a daemon leave clusters alone until `resume`: no cycle of theirs is started.
    Suspend {
        /// Why, for everybody who looks.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Make a daemon go on with suspended clusters.
    Resume,
    /// Check reachability, TLS, credentials, privileges, nodes and storages of every cluster. Reads only.
    Doctor,
    /// Make a new repository, from nothing or around an endpoint.
    Init(InitArgs),
    /// Write manifests for what a cluster has. Never writes to PVE.
    Adopt(AdoptArgs),
    /// Show what was done, when, by whom and how it ended, newest first.
    History(HistoryArgs),
    /// Kinds: built-in ones and those of third parties.
    Kinds {
        /// What to do.
        #[command(subcommand)]
        command: KindsCommand,
    },
    /// Write the JSON Schema of a kind's manifests, for editors.
    Schema(SchemaArgs),
    /// Explain a kind or one of its fields.
    Explain {
        /// A kind and a path, such as VM or VM.disks.size.
        #[arg(value_name = "KIND[.FIELD...]")]
        what: String,
    },
    /// Serve the PVE simulator on loopback.
    Sim(SimArgs),
    /// Simulator and example repository: diff, apply, diff again, status.
    Demo(DemoArgs),
    /// Write the manual pages into a folder.
    #[command(hide = true)]
    Man {
        /// Where to.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Write a shell's completion script.
    Completions {
        /// Which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// Of `run`.
#[derive(ClapArgs, Debug)]
pub struct RunArgs {
    /// Plan and show drift; never write.
    #[arg(long)]
    pub observe: bool,
    /// Address of the HTTP server, in place of `listen` of proxops.yaml.
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
}

/// Of `init`.
#[derive(ClapArgs, Debug)]
pub struct InitArgs {
    /// Where; made if it is not there. Inside a git repository that one is used.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The cluster's address.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// SHA-256 of its certificate, as `pvenode cert info` shows it.
    #[arg(long, value_name = "AB:CD:...")]
    pub fingerprint: Option<String>,
    /// Its certificate authority, PEM.
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    pub ca_file: Option<PathBuf>,
    /// Only these nodes are ever read or written.
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub nodes: Vec<String>,
}

/// Of `adopt`.
#[derive(ClapArgs, Debug, Default)]
pub struct AdoptArgs {
    /// Add public SSH keys that the cluster's secrets document lacks to it.
    #[arg(long)]
    pub adopt_secrets: bool,
    /// Write manifests again that are there already.
    #[arg(long)]
    pub force: bool,
    /// Show what would be written; write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Only these kinds and guests, such as VM,101.
    #[arg(long, value_name = "KIND,VMID,...", value_delimiter = ',')]
    pub only: Vec<String>,
}

/// What to do with kinds.
#[derive(Subcommand, Debug)]
pub enum KindsCommand {
    /// Name, version, origin, digest, size and imports of each.
    List,
    /// Everything about one: what it manages, what it may read and write.
    Inspect {
        /// A kind, or a component's file.
        #[arg(value_name = "KIND|FILE")]
        what: String,
    },
    /// Write a kind to start from, with the contract and the library beside it.
    New {
        /// The kind's name: a letter, then letters and digits.
        #[arg(value_name = "NAME")]
        name: String,
        /// What it is written in.
        #[arg(long, value_enum, default_value = "rust")]
        language: Language,
        /// Where the folder `kind-NAME` is made.
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
    /// Check that components keep the rules of the kind contract, against the simulator.
    Test(TestArgs),
}

/// What a kind is written in.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// With the library `proxops-kind`.
    Rust,
    /// Against the contract alone.
    Python,
}

/// Of `history`.
#[derive(ClapArgs, Debug)]
pub struct HistoryArgs {
    /// Only this resource: KIND/NAME, or a name.
    #[arg(value_name = "KIND/NAME")]
    pub resource: Option<String>,
    /// Only this guest.
    #[arg(long)]
    pub vmid: Option<u32>,
    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

/// Of `kinds test`.
#[derive(ClapArgs, Debug)]
pub struct TestArgs {
    /// Kinds, or components' files.
    #[arg(value_name = "KIND|FILE", required_unless_present = "all", conflicts_with = "all")]
    pub what: Vec<String>,
    /// Every kind that is found.
    #[arg(long)]
    pub all: bool,
}

/// Of `schema`.
#[derive(ClapArgs, Debug)]
pub struct SchemaArgs {
    /// The kind; its schema goes to stdout.
    #[arg(value_name = "KIND", required_unless_present = "all", conflicts_with = "all")]
    pub kind: Option<String>,
    /// Write a file for each kind, and manifest.schema.json for all, into this folder.
    #[arg(long, value_name = "DIR")]
    pub all: Option<PathBuf>,
}

/// Of `sim`.
#[derive(ClapArgs, Debug)]
pub struct SimArgs {
    /// Port on 127.0.0.1; 0 = any free one.
    #[arg(long, default_value_t = 8006)]
    pub port: u16,
    /// Plain HTTP in place of TLS.
    #[arg(long)]
    pub http: bool,
    /// Where to write the certificate of the simulator's CA.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Start with this many VMs.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub guests: u32,
    /// Faults to inject, YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
}

/// Of `demo`.
#[derive(ClapArgs, Debug)]
pub struct DemoArgs {
    /// Keep the folder with repository and data.
    #[arg(long)]
    pub keep: bool,
}
