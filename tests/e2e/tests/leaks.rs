//! No secret gets out: every command and every failure, at the highest log level, with secrets in every place.
//!
//! [`COMMANDS`] and [`FAILURES`] are tables. A command of the binary that is not in the first fails the test, so that
//! new ones join; a new row of the failure table (spec 01, 10) is a function below and a line in the second.

use crate::documents::age_key;
use crate::support::{iso, sops, vm};
use proxops_e2e::{Bench, CLUSTER, Daemon, GIT_TOKEN, GitServer, Upstream, binary, hostile_kind};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, TaskRule, seed};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const PVE_TOKEN: &str = "Heron-sentinel-pve-token-11";
const PVE_TOKEN_VALUE: &str = "Lynx-sentinel-token-value-22";
const PVE_PASSWORD: &str = "Otter-sentinel-password-33";
/// With characters that travel encoded.
const GUEST_PASSWORD: &str = "Bison-sentinel/guest&pass=word#44";

/// Every command, with the words that make it do the most. `{file}` is the tree's only VM manifest.
const COMMANDS: &[(&str, &[&[&str]])] = &[
    ("validate", &[&["validate"]]),
    ("diff", &[&["diff"], &["diff", "-o", "json"]]),
    ("apply", &[&["apply", "--yes"], &["apply", "--yes", "-o", "json"]]),
    ("status", &[&["status", "-o", "json"]]),
    ("history", &[&["history"], &["history", "-o", "json"]]),
    ("doctor", &[&["doctor"]]),
    (
        "adopt",
        &[
            &["adopt", "--cluster", CLUSTER, "--dry-run"],
            &["adopt", "--cluster", CLUSTER, "--dry-run", "-o", "json"],
        ],
    ),
    ("kinds", &[&["kinds", "list"], &["kinds", "inspect", "VM"]]),
    ("schema", &[&["schema", "VM"]]),
    ("explain", &[&["explain", "VM.memory"]]),
    ("completions", &[&["completions", "bash"]]),
];

/// Commands that read neither repository nor credentials, serve for ever or run the others; `run` has a test of
/// its own below, and `init` wants an empty folder.
const APART: &[&str] = &["sim", "demo", "help", "man", "run", "suspend", "resume", "init"];

/// What goes wrong while all commands run.
const FAILURES: &[(&str, fn(&mut Stage))] = &[
    ("nothing", |_| {}),
    ("no tree", |s| fs::remove_dir_all(s.bench.repo().join(".git")).unwrap()),
    ("a malformed process file", |s| {
        s.bench.write("proxops.yaml", format!("log: {{level: trace}}\npve: {{password: [{PVE_PASSWORD}]}}\n"))
    }),
    ("secrets where they do not belong", secrets_out_of_place),
    ("a malformed cluster file", |s| s.bench.write(&format!("clusters/{CLUSTER}/config.yaml"), "pve: [")),
    ("a bad composition", |s| {
        s.bench.write(&format!("clusters/{CLUSTER}/resources.yaml"), "resources: [../../vm/x.yaml]")
    }),
    ("a kind that traps", |s| {
        fs::create_dir_all(s.bench.repo().join("kinds")).unwrap();
        s.bench.write("kinds/evil.wasm", hostile_kind("honest", "Evil", "evil"));
        let manifest = json!({"apiVersion": "proxops/v1alpha1", "kind": "Evil", "metadata": {"name": "x"}, "spec": {"attack": "panic"}});
        s.bench.documents(&format!("evil/{CLUSTER}/x.yaml"), &[manifest]);
    }),
    ("a first fetch that fails", |s| {
        s.remote();
        s.server.manners.lock().unwrap().down = true;
    }),
    ("a token that the git server refuses", |s| {
        s.remote();
        s.bench.set("PROXOPS_GIT_TOKEN", "Wolf-sentinel-git-token-55");
    }),
    ("a later fetch that fails", |s| {
        s.remote();
        s.bench.run(&["diff"]).exits(0);
        s.server.manners.lock().unwrap().down = true;
    }),
    ("a fetch through ssh", |s| {
        s.remote();
        s.program("ssh", "for last; do :; done\nexec sh -c \"$last\"");
        let url = format!("ssh://git@git.example.org{}", s.upstream.bare().display());
        s.bench.write("proxops.yaml", format!("log: {{level: trace}}\ngit: {{url: '{url}'}}\n"));
    }),
    ("an inventory that can't be read", |s| s.fault("GET", "/cluster/resources", 500, "inventory trouble")),
    ("a storage that can't be listed", |s| {
        s.fault("GET", "/nodes/*/storage/*/content", 500, "storage trouble")
    }),
    ("a refused credential", |s| {
        s.bench.world().add_token("gitops@pve", "proxops", "another", true);
    }),
    ("a server that quotes the credential", |s| s.fault("GET", "**", 403, &format!("no: {PVE_TOKEN}"))),
    ("a create that is refused and quoted", |s| {
        s.fault(
            "POST",
            "/nodes/*/qemu",
            400,
            &format!("bad cipassword '{GUEST_PASSWORD}' in cipassword={}", encoded(GUEST_PASSWORD)),
        );
    }),
    ("a task that fails", |s| s.bench.world().task_rules.push(TaskRule::fail("qmcreate", "it broke"))),
    ("a connection lost after a create", |s| {
        s.bench.sim().inject(RequestFault::once("POST", "/nodes/*/qemu", FaultAnswer::DropAfter));
    }),
    ("nothing desired, many owned", |s| {
        for vmid in 200..205 {
            s.bench.world().add_guest(
                GuestKind::Qemu,
                vmid,
                "pve01",
                &[("name", "old"), ("tags", "proxops")],
            );
        }
        s.bench.unlist(&format!("vm/{CLUSTER}/web.yaml"));
    }),
    ("a password that differs only behind PVE's mask", |s| {
        s.bench.apply().exits(0);
        s.bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "256"}));
    }),
    ("a run that is killed", |s| {
        s.bench.world().task_duration = Duration::from_secs(3600);
        let mut child =
            s.bench.command(&["apply", "--yes"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while s.bench.sim().write_log().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "apply ended before its first write");
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut world = s.bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }),
    ("a secrets file in plain", |s| {
        s.bench.write(&s.document(), format!("secrets: {{token: {PVE_TOKEN}}}\n"))
    }),
    ("a value in plain in the secrets file", |s| {
        let text = fs::read_to_string(s.bench.repo().join(s.document())).unwrap();
        let line = text.lines().find(|l| l.trim_start().starts_with("token:")).unwrap().to_owned();
        s.bench.write(&s.document(), text.replace(&line, &format!("    token: {PVE_TOKEN}")));
    }),
    ("a tampered secrets file", |s| {
        let text = fs::read_to_string(s.bench.repo().join(s.document())).unwrap();
        s.bench.write(&s.document(), text.replace("data:", "data:A"));
    }),
    ("a secret that is not there", |s| {
        s.bench.write(&s.document(), sops(&[("secrets.user", "gitops@pve"), ("secrets.token", PVE_TOKEN)]))
    }),
    ("no identity", |s| drop(s.bench.env.remove("SOPS_AGE_KEY"))),
    ("a broken identity", |s| {
        let broken = age_key().0[..age_key().0.len() - 4].to_owned();
        s.bench.set("SOPS_AGE_KEY", &broken);
        s.secrets.push(broken);
    }),
    ("an identity of a command", |s| {
        s.bench.env.remove("SOPS_AGE_KEY");
        let key = s.hidden("key", &age_key().0);
        let command = s.program("keycmd", &format!("cat {}", key.display()));
        s.bench.set("SOPS_AGE_KEY_CMD", &command.display().to_string());
    }),
    ("a ticket in place of a token", |s| {
        s.bench.world().add_user("root@pam", PVE_PASSWORD);
        s.bench.env.remove("PROXOPS_PVE_TOKEN_VALUE");
        s.bench.env.remove("PROXOPS_PVE_TOKEN");
        s.bench.write(&format!("clusters/{CLUSTER}/config.yaml"), format!("pve:\n  clusters:\n    lab:\n      base-url: {}\n      auth: ticket\n      secrets-file: secrets.sops.yaml\n", s.bench.url()));
    }),
    ("two tokens at once", |s| {
        s.bench.set("PROXOPS_PVE_TOKEN", PVE_TOKEN);
        s.bench.write(
            &format!("clusters/{CLUSTER}/config.yaml"),
            format!("pve: {{clusters: {{lab: {{base-url: '{}'}}}}}}", s.bench.url()),
        )
    }),
    ("a data directory that can't be written", |s| {
        let data = s.bench.data_dir();
        fs::rename(&data, data.with_extension("old")).unwrap();
        fs::write(&data, "a file").unwrap();
    }),
];

/// A bench with a secret wherever one can be.
struct Stage {
    bench: Bench,
    upstream: Upstream,
    server: GitServer,
    /// Programs that note their environment, what they noted, temporary files, a home.
    watched: tempfile::TempDir,
    /// Files of the test itself.
    own: tempfile::TempDir,
    secrets: Vec<String>,
}

impl Stage {
    fn new() -> Self {
        let mut bench = Bench::new(seed::empty());
        bench.world().add_token("gitops@pve", "proxops", PVE_TOKEN, true);
        let spec = json!({"cloud-init-data": {"ci-user": "ops", "ci-password-ref": "cloud-init.passwords.ops"}, "hardware": {"cloud-init": {"storage": "local-lvm"}}});
        bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, spec)]);
        bench.documents(&format!("iso/{CLUSTER}/debian.yaml"), &[iso("debian")]);
        bench.configure(&[
            "secrets-file: secrets.sops.yaml",
            "secrets: {pve: {user: user, token-id: id, token: token}, git: {token: git}}",
        ]);
        bench.write("proxops.yaml", "log: {level: trace}\n");
        let upstream = Upstream::new();
        let server = GitServer::start(upstream.folder());
        let (watched, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secrets = [
            PVE_TOKEN,
            PVE_TOKEN_VALUE,
            PVE_PASSWORD,
            GUEST_PASSWORD,
            GIT_TOKEN,
            "Wolf-sentinel-git-token-55",
            &age_key().0,
        ];
        let secrets = secrets.map(str::to_owned).to_vec();
        let mut stage = Self { bench, upstream, server, watched, own, secrets };
        stage.bench.write(
            &stage.document(),
            sops(&[
                ("secrets.user", "gitops@pve"),
                ("secrets.id", "proxops"),
                ("secrets.token", PVE_TOKEN),
                ("secrets.git", GIT_TOKEN),
                ("cloud-init.passwords.ops", GUEST_PASSWORD),
            ]),
        );
        for folder in ["tmp", "home", "bin"] {
            fs::create_dir(stage.watched.path().join(folder)).unwrap();
        }
        let place = |name: &str| stage.watched.path().join(name).display().to_string();
        let (tmp, home, path) =
            (place("tmp"), place("home"), format!("{}:/usr/local/bin:/usr/bin:/bin", place("bin")));
        for (name, value) in [
            ("SOPS_AGE_KEY", age_key().0.as_str()),
            ("PROXOPS_PVE_TOKEN_VALUE", &format!("gitops@pve!x={PVE_TOKEN_VALUE}")),
            ("PROXOPS_PVE_USER", "root@pam"),
            ("PROXOPS_PVE_PASSWORD", PVE_PASSWORD),
            ("PROXOPS_GIT_TOKEN", GIT_TOKEN),
            ("PROXOPS_LOG", "trace"),
            ("RUST_BACKTRACE", "full"),
            ("TMPDIR", &tmp),
            ("HOME", &home),
            ("PATH", &path),
        ] {
            stage.bench.set(name, value);
        }
        stage
    }

    fn document(&self) -> String {
        format!("clusters/{CLUSTER}/secrets.sops.yaml")
    }

    /// The tree lies upstream from now on. The local one stays: its secrets document has the git token.
    fn remote(&mut self) {
        for folder in ["clusters", "vm", "iso"] {
            let status = std::process::Command::new("cp")
                .arg("-r")
                .arg(self.bench.repo().join(folder))
                .arg(self.upstream.work())
                .status();
            assert!(status.unwrap().success());
        }
        self.upstream.push("main");
        let git =
            format!("git: {{url: '{}', ca-file: '{}'}}\n", self.server.url(), self.server.ca().display());
        self.bench.write("proxops.yaml", format!("log: {{level: trace}}\n{git}"));
    }

    /// Puts a program on the path that notes its arguments and environment and goes on as told.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let file = self.watched.path().join("bin").join(name);
        let said = self.watched.path().join(format!("{name}.said"));
        fs::write(&file, format!("#!/bin/sh\n{{ echo \"$@\"; env; }} >> {}\n{script}\n", said.display()))
            .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// A file of the test's own, where nobody looks.
    fn hidden(&self, name: &str, text: &str) -> PathBuf {
        let file = self.own.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    fn fault(&self, method: &str, path: &str, status: u16, message: &str) {
        let answer =
            FaultAnswer::Status { status, message: message.to_owned(), errors: [].into(), effect: false };
        self.bench.sim().inject(RequestFault { times: 0, ..RequestFault::once(method, path, answer) });
    }

    /// Fails if a secret is in a text, as it is or as it travels.
    fn clean(&self, what: &str, bytes: &[u8]) {
        for secret in &self.secrets {
            for form in [secret.clone(), encoded(secret), base64(secret)] {
                let found = bytes.windows(form.len()).position(|w| w == form.as_bytes());
                if let Some(at) = found {
                    let around =
                        String::from_utf8_lossy(&bytes[at.saturating_sub(200)..(at + 60).min(bytes.len())]);
                    panic!("{what} holds {form}:\n...{around}...");
                }
            }
        }
    }

    fn clean_files(&self, what: &str, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.clean_files(what, &path);
            } else if kind.is_file() {
                self.clean(&format!("{what}: {}", path.display()), &fs::read(&path).unwrap());
            }
        }
    }
}

/// As in a form.
fn encoded(text: &str) -> String {
    text.replace('/', "%2F").replace('&', "%26").replace('=', "%3D").replace('#', "%23")
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A password in a manifest, a token in an address.
fn secrets_out_of_place(stage: &mut Stage) {
    let spec = json!({"cloud-init-data": {"ci-user": "ops", "ci-password": GUEST_PASSWORD}});
    stage.bench.documents(&format!("vm/{CLUSTER}/plain.yaml"), &[vm("plain", 101, spec)]);
    stage.bench.write(
        "proxops.yaml",
        format!("log: {{level: trace}}\ngit: {{url: 'https://me:{GIT_TOKEN}@git.example.org/x'}}\n"),
    );
}

/// The commands that `proxops --help` lists.
fn commands() -> Vec<String> {
    let help = std::process::Command::new(binary()).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    list.lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[test]
fn every_command_of_the_binary_is_in_the_table() {
    let known: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).chain(APART.iter().copied()).collect();
    let missing: Vec<String> =
        commands().into_iter().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(commands().len() > 5 && missing.is_empty(), "add to COMMANDS of this file: {missing:?}");
}

/// One failure under all commands.
fn run(name: &str, break_it: fn(&mut Stage)) {
    let mut stage = Stage::new();
    break_it(&mut stage);
    for words in COMMANDS.iter().flat_map(|(_, all)| all.iter()) {
        let mut command = stage.bench.command(words);
        let output = command.arg("-vvvv").output().unwrap();
        let what = format!("{name}: {}", words.join(" "));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked at host/"), "{what}");
        stage.clean(&format!("{what}: stdout"), &output.stdout);
        stage.clean(&format!("{what}: stderr"), &output.stderr);
    }
    stage.clean_files(&format!("{name}: data-dir"), &stage.bench.data_dir());
    stage.clean_files(&format!("{name}: files"), stage.watched.path());
}

#[test]
fn no_secret_gets_out_of_any_command_in_any_failure() {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((name, break_it)) =
                    FAILURES.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    run(name, *break_it);
                }
            });
        }
    });
}

/// Failures under which a daemon starts and goes on.
const LIVED_THROUGH: [&str; 7] = [
    "nothing",
    "a bad composition",
    "an inventory that can't be read",
    "a refused credential",
    "a server that quotes the credential",
    "a create that is refused and quoted",
    "a secret that is not there",
];

#[test]
fn no_secret_gets_out_of_a_daemon_by_page_document_metric_or_log() {
    const HTTP_TOKEN: &str = "Stork-sentinel-http-token-66";
    const WEBHOOK: &str = "Viper-sentinel-webhook-77";
    let lived = FAILURES.iter().filter(|(name, _)| LIVED_THROUGH.contains(name));
    assert_eq!(lived.clone().count(), LIVED_THROUGH.len());
    for (name, break_it) in lived {
        let mut stage = Stage::new();
        break_it(&mut stage);
        stage.bench.set("PROXOPS_HTTP_TOKEN", HTTP_TOKEN);
        stage.bench.set("PROXOPS_WEBHOOK_SECRET", WEBHOOK);
        stage.secrets.extend([HTTP_TOKEN.to_owned(), WEBHOOK.to_owned()]);
        let daemon = Daemon::start(&stage.bench, &["-vvvv"]);
        let bearer = format!("Bearer {HTTP_TOKEN}");
        let get = |path: &str| daemon.send("GET", path, &[("Authorization", &bearer)], b"");
        let start = std::time::Instant::now();
        while !get("/status").body.contains("\"ended_at\"") {
            assert!(start.elapsed() < Duration::from_secs(60), "{name}: no cycle ends: {}", daemon.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        for path in ["/", "/status", "/diff", "/metrics", "/healthz", "/readyz", "/openapi.json", "/nowhere"]
        {
            let answer = get(path);
            let text = format!("{:?}\n{}", answer.headers, answer.body);
            stage.clean(&format!("{name}: {path}"), text.as_bytes());
        }
        let refused = daemon.send("POST", "/webhook", &[("X-Hub-Signature-256", "sha256=00")], b"{}");
        stage.clean(&format!("{name}: /webhook"), refused.body.as_bytes());
        stage.clean(&format!("{name}: log"), daemon.log().as_bytes());
        drop(daemon);
        stage.clean_files(&format!("{name}: data-dir"), &stage.bench.data_dir());
        stage.clean_files(&format!("{name}: files"), stage.watched.path());
    }
}

#[test]
fn the_search_finds_what_it_is_there_for() {
    let stage = Stage::new();
    let caught = |bytes: &[u8]| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stage.clean("x", bytes))).is_err()
    };
    for secret in [PVE_TOKEN, PVE_TOKEN_VALUE, PVE_PASSWORD, GUEST_PASSWORD, GIT_TOKEN, &age_key().0] {
        assert!(caught(format!("..{secret}..").as_bytes()));
        assert!(caught(base64(secret).as_bytes()));
    }
    assert!(!caught(b"nothing"));
    // The secrets are used, so they were there to be lost.
    stage.bench.run(&["apply", "--yes"]).exits(0);
    let set = &stage.bench.world().guests[&100];
    assert!(format!("{:?}", set.config).contains("cipassword"));
}
