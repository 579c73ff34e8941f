//! `proxops.yaml` and the layers over it.

use crate::support::Tree;
use proxops_repo::{Concurrency, CredentialSource, LogFormat, LogLevel, Overrides};
use std::{path::PathBuf, time::Duration};

#[test]
fn without_a_file_the_defaults_of_the_specification_hold() {
    let s = Tree::lab().var("HOME", "/home/op").load().settings;
    assert_eq!((s.log.level, s.log.format), (LogLevel::Info, LogFormat::Text));
    assert_eq!(s.reconcile.poll_interval, Duration::from_secs(30));
    assert_eq!(s.reconcile.task_timeout, Duration::from_secs(1800));
    assert_eq!(s.reconcile.prune_budget, 3);
    assert_eq!(s.reconcile.concurrency, Concurrency { cluster: 8, node: 4 });
    assert_eq!(s.reconcile.owner_tag, "proxops");
    assert_eq!(s.listen, "127.0.0.1:9494");
    assert_eq!(s.data_dir, PathBuf::from("/home/op/.local/state/proxops"));
}

#[test]
fn the_state_folder_follows_the_environment() {
    let dir = |tree: Tree| tree.load().settings.data_dir;
    let home = || Tree::lab().var("HOME", "/home/op");
    assert_eq!(dir(home().var("XDG_STATE_HOME", "/xdg")), PathBuf::from("/xdg/proxops"));
    // A relative value is invalid and ignored.
    assert_eq!(dir(home().var("XDG_STATE_HOME", "xdg")), PathBuf::from("/home/op/.local/state/proxops"));
    assert_eq!(dir(home().var("STATE_DIRECTORY", "/var/lib/proxops")), PathBuf::from("/var/lib/proxops"));
    assert_eq!(dir(Tree::lab()), PathBuf::from("/var/lib/proxops"));
}

#[test]
fn every_key_is_read() {
    let text = "
log: {level: debug, format: json}
pve: {auth: ticket, user: root@pam, token-id: ci, token: t0p, password: s3cret, ca-file: ca.pem}
git: {url: 'ssh://git@example.org/repo.git', branch: main, token: g1t, poll-interval: 1m}
reconcile: {poll-interval: 1h30m, task-timeout: 90s, prune-budget: 0, concurrency: {cluster: 2, node: 1}, owner-tag: team-a}
listen: '[::1]:80'
data-dir: state
kinds:
  - {kind: Pool, allow: [/pools], sha256: 'SHA'}
  - {kind: Net, file: kinds/net.wasm, limits: {memory: 128MiB, deadline: 5s, instances: 80}}
"
    .replace("SHA", &format!("sha256:{}", "AB".repeat(32)));
    let tree = Tree::lab().with("proxops.yaml", &text);
    let root = tree.path("").canonicalize().unwrap();
    let repo = tree.load();
    assert_eq!(repo.diagnostics, []);
    let s = repo.settings;
    assert_eq!((s.log.level, s.log.format), (LogLevel::Debug, LogFormat::Json));
    assert_eq!(s.ca_file, Some(root.join("ca.pem")));
    assert_eq!(s.git.url.as_deref(), Some("ssh://git@example.org/repo.git"));
    assert_eq!(s.git.branch.as_deref(), Some("main"));
    assert_eq!(s.git.poll_interval, Some(Duration::from_secs(60)));
    assert_eq!(s.reconcile.poll_interval, Duration::from_secs(5400));
    assert_eq!(s.reconcile.task_timeout, Duration::from_secs(90));
    assert_eq!(s.reconcile.prune_budget, 0);
    assert_eq!(s.reconcile.concurrency, Concurrency { cluster: 2, node: 1 });
    assert_eq!(s.reconcile.owner_tag, "team-a");
    assert_eq!(s.listen, "[::1]:80");
    assert_eq!(s.data_dir, root.join("state"));
    assert_eq!(s.kinds[0].allow, ["/pools"]);
    assert_eq!(s.kinds[0].sha256.as_deref(), Some("ab".repeat(32).as_str()));
    assert_eq!((s.kinds[0].location.line, s.kinds[0].location.column), (9, 5));
    assert_eq!(s.kinds[1].file, Some(root.join("kinds/net.wasm")));
    let limits = &s.kinds[1].limits;
    assert_eq!((limits.memory, limits.instances), (Some(128 << 20), Some(80)));
    assert_eq!((limits.deadline, limits.fuel), (Some(Duration::from_secs(5)), None));
    assert_eq!(s.credentials.git_token.unwrap().origin(), "proxops.yaml:4:60");
}

#[test]
fn a_number_sets_the_concurrency_of_the_cluster() {
    let s = Tree::lab().with("proxops.yaml", "reconcile: {concurrency: 1}\n").load().settings;
    assert_eq!(s.reconcile.concurrency.cluster, 1);
}

#[test]
fn empty_texts_and_mappings_count_as_left_out() {
    let tree = Tree::lab().with(
        "proxops.yaml",
        "log: {}\npve: {user: '', ca-file: ''}\ngit:\nlisten: ''\nreconcile: {owner-tag: ''}\n",
    );
    let repo = tree.load();
    assert_eq!(repo.diagnostics, []);
    assert_eq!(repo.settings.listen, "127.0.0.1:9494");
    assert_eq!(repo.settings.reconcile.owner_tag, "proxops");
    assert_eq!(Tree::lab().with("proxops.yaml", "# nothing\n").places(), Vec::<String>::new());
}

#[test]
fn the_command_line_wins_over_the_file_and_the_environment_over_its_credentials() {
    let text = "log: {level: error}\nlisten: 127.0.0.1:1\ndata-dir: a\npve: {user: file@pam}\nreconcile: {prune-budget: 5, owner-tag: x}\n";
    let tree = Tree::lab().with("proxops.yaml", text).var("PROXOPS_PVE_USER", "env@pam");
    let repo = tree.load_with(|options| {
        options.overrides = Overrides {
            log_level: Some(LogLevel::Trace),
            listen: Some("127.0.0.1:2".into()),
            data_dir: Some("b".into()),
            prune_budget: Some(9),
            ..Overrides::default()
        };
    });
    let s = repo.settings;
    assert_eq!(s.log.level, LogLevel::Trace);
    assert_eq!(s.listen, "127.0.0.1:2");
    assert_eq!(s.data_dir, tree.path("b"));
    assert_eq!((s.reconcile.prune_budget, s.reconcile.owner_tag.as_str()), (9, "x"));
    match s.credentials.user.unwrap() {
        CredentialSource::Value { value, origin } => {
            assert_eq!((value.expose(), origin.as_str()), ("env@pam", "PROXOPS_PVE_USER"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_mistake_is_reported_at_its_place_in_one_run() {
    let text = "log: {levl: info, format: xml}
pve:
  auth: magic
  token: 12
git: {url: 'https://op:pw@example.org/r.git'}
reconcile:
  poll-interval: 30
  task-timeout: soon
  prune-budget: -1
  concurrency: 0
  owner-tag: Team
listen: nowhere
kinds: [{allow: [pools]}, {kind: A, allow: [../x], sha256: abc}]
unknown: 1
";
    let tree = Tree::lab().with("proxops.yaml", text);
    assert_eq!(
        tree.places(),
        [
            "proxops.yaml:1:7 unknown-field",
            "proxops.yaml:1:19 invalid-value",
            "proxops.yaml:3:3 invalid-value",
            "proxops.yaml:4:3 wrong-type",
            "proxops.yaml:5:7 secret-in-url",
            "proxops.yaml:7:3 wrong-type",
            "proxops.yaml:8:3 invalid-value",
            "proxops.yaml:9:3 invalid-value",
            "proxops.yaml:10:3 invalid-value",
            "proxops.yaml:11:3 invalid-value",
            "proxops.yaml:12:1 invalid-value",
            "proxops.yaml:13:9 missing-field",
            "proxops.yaml:13:45 invalid-value",
            "proxops.yaml:13:52 invalid-value",
            "proxops.yaml:14:1 unknown-field",
        ]
    );
    let repo = tree.load();
    assert_eq!(repo.global_errors().count(), 15);
    assert!(!repo.clusters[0].ok);
    assert!(repo.diagnostics[0].help.as_deref().unwrap().contains("`level`"));
    let all = format!("{:?}", repo.diagnostics);
    assert!(!all.contains("pw@"), "{all}");
}

#[test]
fn both_forms_of_a_token_at_once_are_an_error_that_names_both_places_and_no_value() {
    for tree in [
        Tree::lab().with("proxops.yaml", "pve: {token: AAAA, token-value: BBBB}\n"),
        Tree::lab().var("PROXOPS_PVE_TOKEN", "AAAA").var("PROXOPS_PVE_TOKEN_VALUE", "BBBB"),
        Tree::lab().with("proxops.yaml", "pve: {token: AAAA}\n").var("PROXOPS_PVE_TOKEN_VALUE", "BBBB"),
    ] {
        let repo = tree.load();
        let errors: Vec<_> = repo.global_errors().collect();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].code, "two-tokens");
        assert!(!format!("{repo:?}").contains("AAAA") && !format!("{repo:?}").contains("BBBB"));
    }
    let tree = Tree::lab().var("PROXOPS_PVE_TOKEN", "AAAA").var("PROXOPS_PVE_TOKEN_VALUE", "BBBB");
    let text = tree.load().global_errors().next().unwrap().to_string();
    let named = text.contains("PROXOPS_PVE_TOKEN)") && text.contains("PROXOPS_PVE_TOKEN_VALUE)");
    assert!(named && !text.contains("proxops.yaml"), "no file says so: {text}");
}

#[test]
fn an_entry_of_a_list_is_called_by_the_list() {
    let repo = Tree::lab().with("proxops.yaml", "kinds: [a]\n").load();
    let errors: Vec<String> = repo.global_errors().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("an entry of `kinds` must be a mapping"), "{errors:?}");
}

#[test]
fn a_file_with_another_ending_or_several_documents_is_not_passed_over() {
    assert_eq!(Tree::lab().with("proxops.yml", "").places(), ["proxops.yml:1:1 misnamed-file"]);
    let tree = Tree::lab().with("proxops.yaml", "log: {level: info}\n---\nlisten: x\n");
    assert_eq!(tree.places(), ["proxops.yaml:3:1 several-documents"]);
    assert_eq!(Tree::lab().with("proxops.yaml", "just text\n").places(), ["proxops.yaml:1:1 wrong-type"]);
}

#[test]
fn the_daemons_http_side_is_read_and_the_environment_wins() {
    use proxops_repo::SecretSetting;
    let text = "
http: {token: fr0m-file, cert-file: tls/cert.pem, key-file: /etc/key.pem}
webhook: {secret-file: hook.txt}
notify: {url: 'https://chat.example.org/hooks/1', token: n0tify}
";
    let tree = Tree::lab().with("proxops.yaml", text).with("hook.txt", "hush \nsecond line\n");
    let serve = tree.load().settings.serve;
    let value =
        |setting: &Option<SecretSetting>| setting.as_ref().unwrap().read().unwrap().expose().to_owned();
    assert_eq!(value(&serve.token), "fr0m-file");
    let tls = serve.tls.as_ref().unwrap();
    assert!(tls.cert.ends_with("tls/cert.pem") && tls.cert.is_absolute(), "{tls:?}");
    assert_eq!(tls.key, PathBuf::from("/etc/key.pem"));
    assert_eq!(value(&serve.webhook_secret), "hush", "the first line, without blanks around");
    assert_eq!(serve.notify_url.as_deref(), Some("https://chat.example.org/hooks/1"));
    assert!(!format!("{serve:?}").contains("fr0m-file"), "{serve:?}");
    let tree = tree.var("PROXOPS_HTTP_TOKEN", "fr0m-env").var("PROXOPS_WEBHOOK_SECRET", "h00k");
    let serve = tree.load().settings.serve;
    assert_eq!(
        (value(&serve.token), value(&serve.webhook_secret)),
        ("fr0m-env".to_owned(), "h00k".to_owned())
    );
}

#[test]
fn the_address_of_the_commit_status_is_read_and_its_token_may_come_from_the_environment() {
    use proxops_repo::Forge;
    let text = "commit-status: {server: forgejo, url: 'https://git.example.org/api/v1/repos/acme/estate/'}\n";
    let tree = Tree::lab().with("proxops.yaml", text);
    let status = tree.load().settings.serve.commit_status.unwrap();
    assert_eq!((status.forge, status.token), (Forge::Gitea, None));
    assert_eq!(status.url, "https://git.example.org/api/v1/repos/acme/estate");
    let tree = tree.var("PROXOPS_COMMIT_STATUS_TOKEN", "st4tus");
    let status = tree.load().settings.serve.commit_status.unwrap();
    assert_eq!(status.token.unwrap().read().unwrap().expose(), "st4tus");
    assert_eq!(Tree::lab().load().settings.serve.commit_status, None);
}

#[test]
fn mistakes_in_the_daemons_settings_are_told_with_their_place() {
    let code = |text: &str| {
        let found = Tree::lab().with("proxops.yaml", text).load().diagnostics;
        found.iter().map(|d| format!("{} {}", d.code, d.pointer)).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(code("http: {cert-file: a.pem}"), "missing-field /http");
    assert_eq!(code("webhook: {secret: a, secret-file: b}"), "conflict /webhook/secret-file");
    assert_eq!(code("notify: {url: 'http://chat.example.org/x'}"), "invalid-value /notify/url");
    assert_eq!(code("notify: {url: 'https://u:p@chat.example.org/x'}"), "secret-in-url /notify/url");
    assert_eq!(code("http: {tokn: a}"), "unknown-field /http/tokn");
    assert_eq!(code("notify: {url: 'http://127.0.0.1:1/x'}"), "");
    assert_eq!(code("commit-status: {server: github}"), "missing-field /commit-status");
    assert_eq!(code("commit-status: {url: 'https://a.example.org/x'}"), "missing-field /commit-status");
    assert_eq!(
        code("commit-status: {server: svn, url: 'https://a.example.org/x'}"),
        "invalid-value /commit-status/server"
    );
    assert_eq!(
        code("commit-status: {server: gitea, url: 'http://a.example.org/x'}"),
        "invalid-value /commit-status/url"
    );
}

#[test]
fn an_empty_or_missing_secret_file_is_an_error_that_names_it() {
    use proxops_repo::SecretSetting;
    let tree = Tree::lab().with("empty", "\n");
    for file in ["empty", "missing"] {
        let error = SecretSetting::File(tree.path(file)).read().unwrap_err();
        assert!(error.contains(file), "{error}");
    }
}
