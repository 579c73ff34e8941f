//! One file a command. Each returns the exit code.

mod adopt;
mod apply;
mod demo;
mod diff;
mod doctor;
mod explain;
mod history;
mod init;
mod kinds;
mod man;
mod new;
mod run;
mod schema;
mod sim;
mod status;
mod suspend;
mod validate;

use crate::args::{Args, Command, KindsCommand, Output};
use crate::{open, say};
use anyhow::bail;

/// Exit code: nothing failed.
pub const OK: u8 = 0;
/// Exit code: error, failed action or aborted cluster.
pub const FAILED: u8 = 1;
/// Exit code: not converged, with `--exit-code`.
pub const CHANGES: u8 = 2;

/// Runs the command.
pub async fn run(args: Args) -> anyhow::Result<u8> {
    let global = args.global;
    if global.output == Output::Markdown
        && !matches!(args.command, Command::Diff { .. } | Command::Apply { .. })
    {
        bail!("only diff and apply have a markdown form: use -o text or -o json");
    }
    match args.command {
        Command::Validate => validate::run(&global),
        Command::Diff { exit_code, out, no_daemon } => {
            let ask = !no_daemon && !global.plans_otherwise();
            diff::run(&global, exit_code, out.as_deref(), ask).await
        }
        Command::Apply { exit_code, dry_run: true, plan: None, .. } => {
            diff::run(&global, exit_code, None, false).await
        }
        Command::Apply { exit_code, dry_run, yes, plan } => {
            apply::run(&global, &apply::Wanted { exit_code, dry_run, yes, plan: plan.as_deref() }).await
        }
        Command::History(args) => history::run(&global, &args),
        Command::Doctor => doctor::run(&global).await,
        Command::Status { no_daemon } => status::run(&global, !no_daemon).await,
        Command::Run(args) => run::run(&global, &args).await,
        Command::Suspend { reason } => suspend::suspend(&global, reason.as_deref()),
        Command::Resume => suspend::resume(&global),
        Command::Init(args) => init::run(&global, &args).await,
        Command::Adopt(args) => adopt::run(&global, &args).await,
        Command::Kinds { command: KindsCommand::List } => kinds::list(&global),
        Command::Kinds { command: KindsCommand::Inspect { what } } => kinds::inspect(&global, &what),
        Command::Kinds { command: KindsCommand::Test(args) } => kinds::test(&global, &args),
        Command::Kinds { command: KindsCommand::New { name, language, dir } } => {
            new::run(&global, &name, language, &dir)
        }
        Command::Schema(args) => schema::run(&global, &args),
        Command::Explain { what } => explain::run(&global, &what),
        Command::Sim(args) => sim::run(&global, &args).await,
        Command::Demo(args) => demo::run(&global, &args).await,
        Command::Man { dir } => man::run(&dir),
        Command::Completions { shell } => {
            open::logging(&global, None, false);
            let mut command = <Args as clap::CommandFactory>::command();
            clap_complete::generate(shell, &mut command, "proxops", &mut say::Stdout);
            Ok(OK)
        }
    }
}
