//! `git.url`: a real server behind TLS and a token, a real git that pushes, and processes that are killed.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER, GIT_TOKEN, GitServer, Upstream};
use proxops_repo::{Snapshot, Source, SourceError};
use proxops_secrets::Secret;
use proxops_sim::seed;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn source(server: &GitServer, revision: Option<&str>) -> Source {
    Source {
        url: server.url(),
        revision: revision.map(str::to_owned),
        ca_file: Some(server.ca().to_owned()),
        token: Some(Secret::new(GIT_TOKEN)),
    }
}

fn refresh(source: &Source, data: &Path) -> Result<Snapshot, SourceError> {
    source.refresh(data, &AtomicBool::new(false))
}

fn read(snapshot: &Snapshot, path: &str) -> String {
    fs::read_to_string(snapshot.root.join(path)).unwrap()
}

/// An upstream with one commit, and its server.
fn served() -> (Upstream, GitServer, String) {
    let upstream = Upstream::new();
    upstream.write("one.txt", "1\n");
    upstream.write("deep/down/two.txt", "2\n");
    let commit = upstream.push("main");
    let server = GitServer::start(upstream.folder());
    (upstream, server, commit)
}

#[test]
fn a_tree_is_fetched_over_tls_with_a_token_and_without_its_history() {
    let (upstream, server, _) = served();
    upstream.write("one.txt", "later\n");
    let second = upstream.push("main");
    let data = tempfile::tempdir().unwrap();
    let snapshot = refresh(&source(&server, None), data.path()).unwrap();
    assert_eq!((snapshot.commit.as_str(), &snapshot.stale), (second.as_str(), &None));
    assert_eq!(
        (read(&snapshot, "one.txt").as_str(), read(&snapshot, "deep/down/two.txt").as_str()),
        ("later\n", "2\n")
    );
    let manners = server.manners.lock().unwrap();
    assert!(manners.asked.iter().any(|body| body.contains("deepen 1")), "shallow: {:?}", manners.asked);
    drop(manners);
    // Nothing new: asked for the refs, nothing fetched.
    let asked = server.manners.lock().unwrap().asked.len();
    let again = refresh(&source(&server, None), data.path()).unwrap();
    assert_eq!((again.root, again.commit), (snapshot.root, second));
    let manners = server.manners.lock().unwrap();
    assert!(
        manners.asked[asked..].iter().all(|body| !body.contains("want ")),
        "{:?}",
        &manners.asked[asked..]
    );
}

#[test]
fn branch_tag_annotated_tag_and_commit_name_a_revision() {
    let (upstream, server, first) = served();
    upstream.git(&["tag", "light"]);
    upstream.git(&["tag", "-a", "-m", "v1", "v1"]);
    upstream.git(&["push", "-q", "origin", "--tags"]);
    upstream.write("one.txt", "side\n");
    let side = upstream.push("feature/side");
    let data = tempfile::tempdir().unwrap();
    for (revision, commit) in [
        (Some("main"), &first),
        (Some("feature/side"), &side),
        (Some("light"), &first),
        (Some("v1"), &first),
        (Some("refs/tags/v1"), &first),
        (Some(first.as_str()), &first),
        (Some(side.as_str()), &side),
        (None, &first),
    ] {
        let snapshot = refresh(&source(&server, revision), data.path()).unwrap();
        assert_eq!(&snapshot.commit, commit, "{revision:?}");
    }
    // A commit that is here can't change: nobody is asked.
    server.manners.lock().unwrap().down = true;
    assert_eq!(refresh(&source(&server, Some(&side)), data.path()).unwrap().stale, None);
    server.manners.lock().unwrap().down = false;

    let missing = "0123456789012345678901234567890123456789";
    for revision in ["nope", missing, "a..b", "sp ace"] {
        let error = refresh(&source(&server, Some(revision)), data.path()).unwrap_err();
        assert!(error.help.contains("git.branch"), "{revision}: {error}");
    }
}

#[test]
fn an_empty_repository_is_an_error_that_says_so() {
    let upstream = Upstream::new();
    let server = GitServer::start(upstream.folder());
    let data = tempfile::tempdir().unwrap();
    let error = refresh(&source(&server, None), data.path()).unwrap_err();
    assert!(error.why.contains("empty") && error.help.contains("push"), "{error}");
}

#[test]
fn what_keeps_a_first_fetch_from_working_is_told_with_what_to_do_and_never_the_token() {
    let (_upstream, server, _) = served();
    let good = source(&server, None);
    let gone = Source { url: good.url.replace("infra.git", "other.git"), ..good.clone() };
    let wrong = "Wolf-fixture-44-wrong";
    for (source, help) in [
        (Source { token: None, ..good.clone() }, "git.token"),
        (Source { token: Some(Secret::new(wrong)), ..good.clone() }, "refuses the token"),
        (Source { ca_file: None, ..good.clone() }, "git.ca-file"),
        (Source { ca_file: Some("/nowhere/ca.pem".into()), ..good.clone() }, "PEM"),
        (Source { url: "https://127.0.0.1:1/x.git".to_owned(), ..good.clone() }, "git.url"),
        (gone, "no such repository"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let error = refresh(&source, data.path()).unwrap_err();
        assert!(error.help.contains(help), "{help}: {error}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains(GIT_TOKEN) && !text.contains(wrong), "{text}");
    }
    let sent = server.manners.lock().unwrap();
    assert!(sent.seen.iter().any(|(_, _, auth)| auth.starts_with("Basic ")));
}

#[test]
fn after_a_good_fetch_every_failure_keeps_the_last_tree_and_says_why() {
    let (upstream, server, commit) = served();
    let data = tempfile::tempdir().unwrap();
    let source = source(&server, Some("main"));
    refresh(&source, data.path()).unwrap();
    server.manners.lock().unwrap().down = true;
    let stale = refresh(&source, data.path()).unwrap();
    assert_eq!((stale.commit.as_str(), read(&stale, "one.txt").as_str()), (commit.as_str(), "1\n"));
    assert!(stale.stale.as_deref().is_some_and(|why| why.contains("503")), "{:?}", stale.stale);
    server.manners.lock().unwrap().down = false;

    // The branch is deleted, then pushed anew with another history.
    upstream.git(&["push", "-q", "origin", "HEAD:refs/heads/other"]);
    let bare = upstream.bare();
    upstream.git(&["--git-dir", bare.to_str().unwrap(), "symbolic-ref", "HEAD", "refs/heads/other"]);
    upstream.git(&["push", "-q", "origin", ":refs/heads/main"]);
    let stale = refresh(&source, data.path()).unwrap();
    assert!(stale.stale.as_deref().is_some_and(|why| why.contains("\"main\"")), "{:?}", stale.stale);
    upstream.git(&["checkout", "-q", "--orphan", "fresh"]);
    upstream.write("one.txt", "new history\n");
    let fresh = upstream.push("main");
    let snapshot = refresh(&source, data.path()).unwrap();
    assert_eq!((snapshot.commit, snapshot.stale.clone()), (fresh, None));
}

#[test]
fn a_tree_that_somebody_reads_stays_and_the_others_go() {
    let (upstream, server, first) = served();
    let data = tempfile::tempdir().unwrap();
    let source = source(&server, None);
    let read_by_me = refresh(&source, data.path()).unwrap();
    upstream.write("one.txt", "2\n");
    upstream.push("main");
    refresh(&source, data.path()).unwrap();
    assert_eq!((read_by_me.commit.as_str(), read(&read_by_me, "one.txt").as_str()), (first.as_str(), "1\n"));
    let old = read_by_me.root.clone();
    drop(read_by_me);
    refresh(&source, data.path()).unwrap();
    assert!(!old.exists());
    let left: Vec<_> =
        fs::read_dir(old.parent().unwrap()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "one tree and its lock: {left:?}");
}

#[test]
fn links_that_leave_the_tree_are_left_out_and_submodules_are_empty() {
    let (upstream, server, _) = served();
    std::os::unix::fs::symlink("deep/down/two.txt", upstream.work().join("inside")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", upstream.work().join("outside")).unwrap();
    std::os::unix::fs::symlink("../../x", upstream.work().join("deep/above")).unwrap();
    upstream.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        upstream.bare().to_str().unwrap(),
        "vm",
    ]);
    upstream.push("main");
    let data = tempfile::tempdir().unwrap();
    let snapshot = refresh(&source(&server, None), data.path()).unwrap();
    assert_eq!(read(&snapshot, "inside"), "2\n");
    assert!(snapshot.root.join("outside").symlink_metadata().is_err());
    assert!(snapshot.root.join("deep/above").symlink_metadata().is_err());
    assert_eq!(fs::read_dir(snapshot.root.join("vm")).unwrap().count(), 0);
}

#[test]
fn a_process_that_refreshes_while_git_pushes_sees_whole_commits_only() {
    let (upstream, server, _) = served();
    let data = tempfile::tempdir().unwrap();
    let source = source(&server, Some("main"));
    let write = |n: usize| {
        for file in 0..20 {
            upstream.write(&format!("many/{file}.txt"), format!("{n}\n"));
        }
    };
    write(0);
    upstream.push("main");
    refresh(&source, data.path()).unwrap();
    /// Ends the watcher even if the test fails.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let snapshot = refresh(&source, data.path()).unwrap();
                let all: Vec<String> = (0..20).map(|f| read(&snapshot, &format!("many/{f}.txt"))).collect();
                assert!(all.iter().all(|text| *text == all[0]), "a mixture: {all:?}");
                seen.push((all[0].clone(), snapshot.stale.is_some()));
            }
            seen
        });
        let end = Done(&done);
        for n in 1..=8 {
            write(n);
            match n % 4 {
                // History is written anew.
                1 => drop(upstream.git(&["checkout", "-q", "--orphan", &format!("o{n}")])),
                2 => {
                    let bare = upstream.bare();
                    upstream.git(&[
                        "--git-dir",
                        bare.to_str().unwrap(),
                        "update-ref",
                        "-d",
                        "refs/heads/main",
                    ]);
                    std::thread::sleep(Duration::from_millis(300));
                }
                _ => {}
            }
            upstream.push("main");
            std::thread::sleep(Duration::from_millis(150));
        }
        drop(end);
        watcher.join().unwrap()
    });
    assert!(seen.len() > 3, "{seen:?}");
    assert_eq!(read(&refresh(&source, data.path()).unwrap(), "many/0.txt"), "8\n");
}

/// A bench whose tree lies upstream; locally there is only the process file.
pub(crate) fn remote(world: proxops_sim::World, url: &str, more: &str) -> (Bench, Upstream) {
    let mut bench = Bench::new(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    let upstream = Upstream::new();
    publish(&bench, &upstream);
    fs::remove_dir_all(bench.repo().join("clusters")).unwrap();
    fs::remove_dir_all(bench.repo().join("vm")).unwrap();
    bench.write("proxops.yaml", format!("git:\n  url: {url}\n{more}"));
    (bench, upstream)
}

/// Pushes the bench's tree.
pub(crate) fn publish(bench: &Bench, upstream: &Upstream) -> String {
    for folder in ["clusters", "vm"] {
        let status = std::process::Command::new("cp")
            .arg("-r")
            .arg(bench.repo().join(folder))
            .arg(upstream.work())
            .status()
            .unwrap();
        assert!(status.success());
    }
    upstream.push("main")
}

pub(crate) fn with_server() -> (Bench, Upstream, GitServer, String) {
    let (mut bench, upstream) = remote(seed::empty(), "https://localhost:1/x.git", "");
    let server = GitServer::start(upstream.folder());
    bench.write(
        "proxops.yaml",
        format!("git:\n  url: {}\n  ca-file: {}\n", server.url(), server.ca().display()),
    );
    bench.set("PROXOPS_GIT_TOKEN", GIT_TOKEN);
    let commit = upstream.git(&["rev-parse", "HEAD"]);
    (bench, upstream, server, commit)
}

#[test]
fn diff_apply_and_status_work_on_the_fetched_tree_and_name_its_commit() {
    let (bench, upstream, server, commit) = with_server();
    let run = bench.diff().exits(0);
    assert_eq!(run.actions(), ["create VM/web"]);
    let cluster = &run.json()["clusters"][0];
    assert_eq!(
        (&cluster["commit"], &cluster["dirty"], &cluster["stale"]),
        (&json!(commit), &json!(false), &json!(false))
    );
    bench.apply().exits(0);
    bench.converged();
    let status = bench.run(&["status", "-o", "json"]).exits(0).json();
    assert_eq!(status["clusters"][0]["commit"], json!(commit));
    assert_eq!(status["clusters"][0]["objects"][0]["state"], json!("converged"));
    // The journal names the commit that asked for the operation.
    let journal = proxops_exec::Journal::open(&bench.data_dir()).unwrap();
    let history = journal.history(&proxops_exec::HistoryFilter::default(), 10).unwrap();
    assert_eq!(history[0].commit.as_deref(), Some(commit.as_str()));

    // A push is taken up by the next run.
    let text = fs::read_to_string(upstream.work().join(format!("vm/{CLUSTER}/web.yaml"))).unwrap();
    upstream.write(&format!("vm/{CLUSTER}/web.yaml"), text.replace("512MiB", "1GiB"));
    let second = upstream.push("main");
    assert_eq!(bench.diff().actions(), ["update VM/web"]);
    // A source that is away leaves the last tree, marked stale.
    server.manners.lock().unwrap().down = true;
    let stale = bench.diff().exits(0);
    let cluster = &stale.json()["clusters"][0];
    assert_eq!((&cluster["commit"], &cluster["stale"]), (&json!(second), &json!(true)));
    assert!(stale.stderr.contains("503"), "{stale}");
    bench.run(&["diff"]).says("stale");
    let status = bench.run(&["status", "-o", "json"]).json();
    assert_eq!(status["clusters"][0]["stale"], json!(true));
}

#[test]
fn a_first_fetch_that_fails_ends_the_run_before_any_pve_call() {
    let (mut bench, _upstream, server, _) = with_server();
    server.manners.lock().unwrap().down = true;
    for words in [&["diff"][..], &["apply", "--yes"], &["status"], &["doctor"]] {
        bench.run(words).exits(1).says("can't be fetched").says("503");
    }
    server.manners.lock().unwrap().down = false;
    bench.env.remove("PROXOPS_GIT_TOKEN");
    bench.run(&["diff"]).exits(1).says("PROXOPS_GIT_TOKEN");
    assert_eq!(bench.sim().requests(), 0);
}

#[test]
fn validate_judges_the_tree_that_is_here_without_the_network() {
    let (bench, _upstream, server, _) = with_server();
    server.manners.lock().unwrap().down = true;
    bench.write(
        &format!("clusters/{CLUSTER}/config.yaml"),
        "pve: {clusters: {lab: {base-url: 'https://192.0.2.1'}}}",
    );
    bench.write(&format!("clusters/{CLUSTER}/resources.yaml"), "resources: [../../vm/lab/nope.yaml]");
    bench.run(&["validate"]).exits(1).says("no-such-file");
    assert_eq!(server.manners.lock().unwrap().seen.len(), 0);
    // And so does --git-path for every command.
    bench.run(&["diff", "--git-path", "."]).exits(1).says("no-such-file");
    assert_eq!(server.manners.lock().unwrap().seen.len(), 0);
}

#[test]
fn a_process_file_outside_of_any_tree_is_enough() {
    let (bench, _upstream, _server, commit) = with_server();
    let folder = tempfile::tempdir().unwrap();
    fs::copy(bench.repo().join("proxops.yaml"), folder.path().join("service.yaml")).unwrap();
    let mut command = bench.command(&["diff", "-o", "json", "--config", "service.yaml"]);
    let run = proxops_e2e::Run::of(command.current_dir(folder.path()).output().unwrap()).exits(0);
    assert_eq!(run.json()["clusters"][0]["commit"], json!(commit));
    // validate has no other tree to judge.
    let mut command = bench.command(&["validate", "--config", "service.yaml"]);
    proxops_e2e::Run::of(command.current_dir(folder.path()).output().unwrap()).exits(0);
}

#[test]
fn a_run_killed_in_the_middle_of_a_fetch_leaves_nothing_that_is_read() {
    let (bench, upstream, server, first) = with_server();
    bench.diff().exits(0);
    for n in 0..50 {
        let noise: Vec<u8> = (0..4000u32).map(|i| (i.wrapping_mul(2_654_435_761 + n) >> 13) as u8).collect();
        upstream.write(&format!("blob/{n}"), noise);
    }
    let second = upstream.push("main");
    server.manners.lock().unwrap().stall_after = Some(20_000);
    let mut child = bench.command(&["diff"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while server.manners.lock().unwrap().stalled == 0 {
        assert!(child.try_wait().unwrap().is_none(), "diff ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let git = fs::read_dir(bench.data_dir().join("git")).unwrap().next().unwrap().unwrap().path();
    let names = || {
        fs::read_dir(&git)
            .unwrap()
            .flatten()
            .map(|e| e.file_name().into_string().unwrap())
            .collect::<Vec<_>>()
    };
    assert!(names().iter().any(|name| name.starts_with("tmp-")), "nothing was under way: {:?}", names());
    assert!(git.join("trees").join(&first).is_dir() && !git.join("trees").join(&second).exists());

    let cluster = |run: proxops_e2e::Run| run.json()["clusters"][0].clone();
    {
        let mut manners = server.manners.lock().unwrap();
        (manners.stall_after, manners.down) = (None, true);
    }
    let stale = cluster(bench.diff().exits(0));
    assert_eq!((&stale["commit"], &stale["stale"]), (&json!(first), &json!(true)));
    server.manners.lock().unwrap().down = false;
    let fresh = cluster(bench.diff().exits(0));
    assert_eq!((&fresh["commit"], &fresh["stale"]), (&json!(second), &json!(false)));
    assert!(!names().iter().any(|name| name.starts_with("tmp-")), "{:?}", names());
}

#[test]
fn files_and_ssh_are_sources_too_and_their_programs_get_no_secret() {
    let (mut bench, upstream) = remote(seed::empty(), "file:///nowhere", "");
    bench.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let commit = upstream.git(&["rev-parse", "HEAD"]);
    bench.write("proxops.yaml", format!("git: {{url: 'file://{}'}}\n", upstream.bare().display()));
    assert_eq!(bench.diff().exits(0).json()["clusters"][0]["commit"], json!(commit));
    bench.write("proxops.yaml", "git: {url: 'file:///nowhere/infra.git'}\n");
    bench.run(&["diff"]).exits(1).says("can't be fetched");

    // A program called ssh that writes down how it was called, and runs the command here.
    let bin = tempfile::tempdir().unwrap();
    let ssh = bin.path().join("ssh");
    let script = format!(
        "#!/bin/sh\n{{ echo \"$@\"; env; }} > {}/said\nfor last; do :; done\nexec sh -c \"$last\"\n",
        bin.path().display()
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    bench.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.path().display()));
    bench.set("PROXOPS_GIT_TOKEN", GIT_TOKEN);
    bench.write(
        "proxops.yaml",
        format!(
            "git: {{url: 'ssh://git@git.example.org:2222{}', branch: main}}\n",
            upstream.bare().display()
        ),
    );
    assert_eq!(bench.diff().exits(0).json()["clusters"][0]["commit"], json!(commit));
    let said = fs::read_to_string(bin.path().join("said")).unwrap();
    assert!(said.contains("-p 2222 -- git@git.example.org git-upload-pack '/"), "{said}");
    assert!(said.contains("BatchMode=yes") && said.contains("GIT_PROTOCOL=version=2"), "{said}");
    assert!(!said.contains(GIT_TOKEN) && !said.contains(seed::TOKEN_SECRET), "{said}");

    fs::write(&ssh, "#!/bin/sh\necho 'git@git.example.org: Permission denied (publickey).' >&2\nexit 255\n")
        .unwrap();
    bench.write("proxops.yaml", "git: {url: 'git@git.example.org:gone.git'}\n");
    bench.run(&["diff"]).exits(1).says("Permission denied (publickey)").says("SSH key");
}

#[test]
fn a_manifest_in_a_submodule_and_one_kept_in_lfs_are_refused_by_name() {
    let (bench, upstream, _server, _) = with_server();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    upstream.write(&format!("vm/{CLUSTER}/web.yaml"), pointer);
    upstream.push("main");
    bench.run(&["diff"]).exits(1).says("lfs-pointer").says("vm/lab/web.yaml:1");
    upstream.git(&["rm", "-rqf", "vm"]);
    upstream.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        upstream.bare().to_str().unwrap(),
        "vm",
    ]);
    upstream.push("main");
    bench.run(&["diff"]).exits(1).says("the submodule vm, which is not there");
    assert!(bench.writes().is_empty());
}
