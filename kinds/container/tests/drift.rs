//! What differs, what is written for it, and what only a person may decide.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use proxops_kind::size::GIB;
use proxops_kind::*;
use serde_json::json;

fn mount(fields: serde_json::Value) -> serde_json::Value {
    let mut mount = json!({ "storage": "local-lvm", "size": "4GiB", "mount-point": "/data" });
    for (key, value) in fields.as_object().unwrap() {
        mount[key] = value.clone();
    }
    spec_with(json!({ "mount-points": [mount] }))
}

const MP0: (&str, &str) = ("mp0", "local-lvm:vm-201-disk-1,mp=/data,backup=1,size=4G");

#[test]
fn the_converged_container_is_clean() {
    assert!(is_clean(&drift(spec(), live_with(&[]), &context())));
}

#[test]
fn a_further_mount_point_is_one_key() {
    let report = drift(mount(json!({})), live_with(&[]), &context());
    assert_eq!(set(&report), [("mp0".to_owned(), "local-lvm:4,mp=/data".to_owned())]);
    assert_eq!(report.changes.len(), 1);
    assert!(report.anomalies.is_empty());
}

#[test]
fn a_mount_point_that_is_there_is_not_made_again() {
    assert!(is_clean(&drift(mount(json!({})), live_with(&[MP0]), &context())));
}

#[test]
fn another_path_keeps_the_volume() {
    let report = drift(mount(json!({ "mount-point": "/srv" })), live_with(&[MP0]), &context());
    assert_eq!(
        set(&report),
        [("mp0".to_owned(), "local-lvm:vm-201-disk-1,mp=/srv,backup=1,size=4G".to_owned())]
    );
}

#[test]
fn a_volume_grows_only_with_leave() {
    let larger = only_anomaly(&drift(mount(json!({ "size": "8GiB" })), live_with(&[MP0]), &context()));
    assert!(larger.contains("grow: true"), "{larger}");
    let report = drift(mount(json!({ "size": "8GiB", "grow": true })), live_with(&[MP0]), &context());
    assert_eq!(report.steps, [Step::resize_to("mp0", 8 * GIB, "/spec/mount-points/0/size")]);
    let smaller =
        only_anomaly(&drift(mount(json!({ "size": "2GiB", "grow": true })), live_with(&[MP0]), &context()));
    assert!(smaller.contains("never shrinks"), "{smaller}");
}

#[test]
fn growth_and_a_new_path_carry_the_new_size() {
    let wanted = mount(json!({ "size": "8GiB", "grow": true, "mount-point": "/srv" }));
    let report = drift(wanted.clone(), live_with(&[MP0]), &context());
    assert!(matches!(report.steps[0], Step::Resize(_)), "{:?}", report.steps);
    assert_eq!(set(&report)[0].1, "local-lvm:vm-201-disk-1,mp=/srv,backup=1,size=8G");
    assert!(is_clean(&drift(wanted, applied(live_with(&[MP0]), &report), &context())));
}

#[test]
fn another_storage_is_for_a_person() {
    let text = only_anomaly(&drift(mount(json!({ "storage": "local-zfs" })), live_with(&[MP0]), &context()));
    assert!(text.contains("local-zfs"), "{text}");
}

#[test]
fn the_root_volume_keeps_its_size_token() {
    // Fact R13: PVE stores the text as sent.
    let wanted = spec_with(
        json!({ "root": { "storage": "local-lvm", "size": "8GiB", "mount-options": ["noatime"] } }),
    );
    let live = live_with(&[("rootfs", "local-lvm:vm-201-disk-0,idmap=passthrough,size=8G")]);
    let report = drift(wanted, live, &context());
    assert_eq!(
        set(&report),
        [(
            "rootfs".to_owned(),
            "local-lvm:vm-201-disk-0,idmap=passthrough,size=8G,mountoptions=noatime".to_owned()
        )]
    );
}

#[test]
fn live_volumes_and_interfaces_that_nobody_declares_stay() {
    let live = live_with(&[
        MP0,
        ("mp7", "/srv/media,mp=/media"),
        ("net1", "name=eth1,bridge=vmbr1,hwaddr=BC:24:11:00:00:03,type=veth"),
        ("dev0", "/dev/dri/renderD128"),
        ("unused0", "local-lvm:vm-201-disk-3"),
    ]);
    let report = drift(spec(), live, &context());
    assert!(report.steps.is_empty() && report.changes.is_empty());
    let seen: Vec<(&str, Severity)> =
        report.anomalies.iter().map(|a| (a.key.as_deref().unwrap(), a.severity)).collect();
    let warning = Severity::Warning;
    assert_eq!(
        seen,
        [
            ("mp0", warning),
            ("mp7", warning),
            ("net1", warning),
            ("dev0", warning),
            ("unused0", Severity::Info)
        ]
    );
    assert!(report.anomalies[4].message.contains("local-lvm:vm-201-disk-3"));
}

/// PVE requires a name (fact L10) and does not say that two interfaces have one.
#[test]
fn a_new_interface_takes_no_name_that_is_in_use() {
    let live = live_with(&[("net0", "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,type=veth")]);
    let wanted = spec_with(json!({
        "networks": [{ "slot": "net0", "bridge": "vmbr0" }, { "slot": "net1", "bridge": "vmbr1" }],
    }));
    let report = drift(wanted, live, &context());
    assert_eq!(set(&report), [("net1".to_owned(), "name=eth2,bridge=vmbr1,type=veth".to_owned())]);
}

#[test]
fn an_interface_is_removed_only_on_request() {
    let live = live_with(&[("net1", "name=eth1,bridge=vmbr1,hwaddr=BC:24:11:00:00:03,type=veth")]);
    let wanted = spec_with(json!({
        "networks": [{ "slot": "net0", "bridge": "vmbr0" }, { "slot": "net1", "absent": true }],
    }));
    let report = drift(wanted.clone(), live, &context());
    assert_eq!(unset(&report), ["net1"]);
    assert!(report.anomalies.is_empty() && set(&report).is_empty());
    assert!(is_clean(&drift(wanted, live_with(&[]), &context())));
}

#[test]
fn an_interface_keeps_its_address_and_name() {
    let wanted = |nic| spec_with(json!({ "networks": [nic] }));
    let named = ("net0", "name=lan,bridge=vmbr0,host-managed=1,hwaddr=BC:24:11:00:00:02,type=veth");
    let report = drift(wanted(json!({ "bridge": "vmbr0", "tag": 5 })), live_with(&[named]), &context());
    assert_eq!(
        set(&report)[0].1,
        "name=lan,bridge=vmbr0,host-managed=1,hwaddr=BC:24:11:00:00:02,type=veth,tag=5"
    );
    let pinned = wanted(json!({ "bridge": "vmbr0", "hwaddr": "bc:24:11:00:00:02" }));
    assert!(is_clean(&drift(pinned, live_with(&[named]), &context())));
}

#[test]
fn unprivileged_is_decided_at_creation() {
    let wanted = |value: bool| spec_with(json!({ "options": { "unprivileged": value } }));
    for (spec, live) in [(wanted(false), live_with(&[])), (wanted(true), live_with(&[("unprivileged", "")]))]
    {
        assert!(only_anomaly(&drift(spec, live, &context())).contains("recreate"));
    }
    let silent = spec_with(json!({ "options": null }));
    assert!(is_clean(&drift(silent.clone(), live_with(&[]), &context())));
    assert!(is_clean(&drift(silent, live_with(&[("unprivileged", "")]), &context())));
}

#[test]
fn memory_and_swap_are_written_together() {
    // fact L15: they share one limit
    let pair = |memory: &str, swap: &str| {
        [("memory".to_owned(), memory.to_owned()), ("swap".to_owned(), swap.to_owned())]
    };
    let live = || live_with(&[("memory", "512"), ("swap", "256")]);
    let report = drift(spec_with(json!({ "memory": "1GiB", "swap": null })), live(), &context());
    assert_eq!(set(&report), pair("1024", "256"));
    assert_eq!(report.changes.len(), 1, "only one of them differs");
    let mut report = set(&drift(spec_with(json!({ "swap": "1GiB", "memory": null })), live(), &context()));
    report.sort();
    assert_eq!(report, pair("512", "1024"));
}

#[test]
fn what_pve_means_anyway_is_no_difference() {
    let wanted = spec_with(json!({
        "cpu": { "cores": 1, "limit": 0, "units": 100 },
        "pve-description": "note",
        "options": {
            "onboot": false, "protection": false, "console": true, "ttys": 2, "cmode": "tty", "unprivileged": true,
            "features": { "nesting": false, "mount": [] },
        },
        "dns": { "nameservers": [], "domain": "" },
        "entrypoint": "/sbin/init",
    }));
    let live = live_with(&[("cpulimit", "0"), ("description", "note\n")]);
    assert!(is_clean(&drift(wanted, live, &context())));
}

#[test]
fn an_explicit_false_is_written() {
    let wanted = spec_with(json!({ "options": { "onboot": false, "console": true } }));
    let report = drift(wanted, live_with(&[("onboot", "1"), ("console", "0")]), &context());
    assert_eq!(set(&report), [("console".to_owned(), "1".to_owned()), ("onboot".to_owned(), "0".to_owned())]);
}

#[test]
fn an_emptied_field_is_deleted() {
    let wanted = spec_with(json!({ "pve-description": "", "dns": { "nameservers": [] } }));
    let report =
        drift(wanted, live_with(&[("description", "old\n"), ("nameserver", "10.0.0.1")]), &context());
    assert_eq!(unset(&report), ["description", "nameserver"]);
    assert!(set(&report).is_empty());
}

#[test]
fn pve_says_what_waits_for_a_restart() {
    // Fact L15.
    let wanted = spec_with(json!({
        "memory": "1GiB",
        "timezone": "host",
        "options": { "ttys": 4, "features": { "nesting": true } },
        "mount-points": [{ "slot": "mp0", "storage": "local-lvm", "size": "4GiB", "mount-point": "/srv" },
                         { "slot": "mp1", "storage": "local-lvm", "size": "1GiB", "mount-point": "/new" }],
        "networks": [{ "bridge": "vmbr9" }],
    }));
    let mut live = live_with(&[MP0]);
    live.power = LivePower::Running;
    let report = drift(wanted.clone(), live, &context());
    let waits: Vec<&str> = report.changes.iter().filter(|c| c.needs_stop).map(|c| c.key.as_str()).collect();
    assert_eq!(waits, ["timezone", "tty", "features", "mp0"]);
    let report = drift(wanted, live_with(&[MP0]), &context());
    assert!(report.changes.iter().all(|c| !c.needs_stop), "a stopped container takes everything");
}

#[test]
fn what_already_waits_is_shown_and_not_written_again() {
    let wanted = spec_with(json!({ "options": { "ttys": 4, "unprivileged": true } }));
    let mut live = live_with(&[("tty", "4")]);
    live.power = LivePower::Running;
    let waiting = |key: &str, running: Option<&str>, configured: Option<&str>| Pending {
        key: key.into(),
        running: running.map(Into::into),
        configured: configured.map(Into::into),
        ext: vec![],
    };
    live.pending = vec![waiting("tty", Some("2"), Some("4")), waiting("timezone", None, Some("host"))];
    let report = drift(wanted, live, &context());
    assert!(report.changes.is_empty() && report.steps.is_empty());
    let [pending] = &report.pending[..] else { panic!("{:?}", report.pending) };
    assert_eq!((pending.key.as_str(), pending.after.as_deref()), ("tty", Some("4")));
}

#[test]
fn a_slot_that_is_only_leaving_gets_no_new_volume() {
    let mut live = live_with(&[]);
    live.power = LivePower::Running;
    live.pending =
        vec![Pending { key: "mp0".into(), running: Some(MP0.1.into()), configured: None, ext: vec![] }];
    assert!(only_anomaly(&drift(mount(json!({})), live, &context())).contains("restart"));
}

#[test]
fn nesting_toggles_for_a_token_and_keeps_foreign_features() {
    let wanted = |on: bool| spec_with(json!({ "options": { "nesting": on } }));
    let report = drift(wanted(true), live_with(&[("features", "keyctl=1,some-new=1")]), &context());
    assert_eq!(set(&report), [("features".to_owned(), "keyctl=1,some-new=1,nesting=1".to_owned())]);
    let report = drift(wanted(false), live_with(&[("features", "keyctl=1,nesting=1")]), &context());
    assert_eq!(set(&report), [("features".to_owned(), "keyctl=1,nesting=0".to_owned())]);
}

#[test]
fn other_features_need_root() {
    let wanted = spec_with(json!({ "options": { "features": { "nesting": true, "keyctl": true } } }));
    let report = drift(wanted.clone(), live_with(&[]), &context());
    assert_eq!(set(&report), [("features".to_owned(), "nesting=1".to_owned())], "what a token may, it does");
    assert!(report.anomalies[0].message.contains("root@pam"));
    let report = drift(wanted, live_with(&[]), &root());
    assert_eq!(set(&report), [("features".to_owned(), "nesting=1,keyctl=1".to_owned())]);
    assert!(report.anomalies.is_empty());
    // Fact L7: in a privileged container even nesting.
    let nesting = spec_with(json!({ "options": { "nesting": true } }));
    let text = only_anomaly(&drift(nesting, live_with(&[("unprivileged", "")]), &context()));
    assert!(text.contains("privileged container"), "{text}");
}

fn bind(host: &str, read_only: bool) -> serde_json::Value {
    spec_with(
        json!({ "bind-mounts": [{ "host-path": host, "mount-point": "/media", "read-only": read_only }] }),
    )
}

#[test]
fn bind_mounts_converge_for_root_and_are_named_for_a_token() {
    let text = only_anomaly(&drift(bind("/srv/media", false), live_with(&[]), &context()));
    assert!(text.contains("root@pam") && text.contains("bind mounts"), "{text}");
    let report = drift(bind("/srv/media", true), live_with(&[]), &root());
    assert_eq!(set(&report), [("mp0".to_owned(), "/srv/media,mp=/media,ro=1".to_owned())]);
    let live = live_with(&[("mp0", "/srv/media,mp=/media,shared=1")]);
    assert!(is_clean(&drift(bind("/srv/media/", false), live.clone(), &context())));
    let report = drift(bind("/srv/media", true), live, &root());
    assert_eq!(set(&report)[0].1, "/srv/media,mp=/media,shared=1,ro=1");
}

#[test]
fn a_bind_mount_is_never_re_pointed() {
    let live = live_with(&[("mp0", "/srv/media,mp=/media")]);
    let text = only_anomaly(&drift(bind("/srv/other", true), live, &root()));
    assert!(text.contains("never re-pointed"), "{text}");
}

#[test]
fn a_volume_and_a_bind_mount_never_replace_each_other() {
    assert!(
        only_anomaly(&drift(bind("/srv/media", false), live_with(&[MP0]), &root()))
            .contains("holds a volume")
    );
    let live = live_with(&[("mp0", "/srv/media,mp=/data")]);
    assert!(only_anomaly(&drift(mount(json!({})), live, &root())).contains("host path"));
}

#[test]
fn devices_and_hook_scripts_need_root() {
    let wanted = spec_with(json!({ "devices": [{ "path": "/dev/fuse", "mode": "0666" }] }));
    assert!(only_anomaly(&drift(wanted.clone(), live_with(&[]), &context())).contains("root@pam"));
    let report = drift(wanted.clone(), live_with(&[]), &root());
    assert_eq!(set(&report), [("dev0".to_owned(), "/dev/fuse,mode=0666".to_owned())]);
    assert!(is_clean(&drift(wanted, live_with(&[("dev0", "path=/dev/fuse,mode=0666,uid=0")]), &context())));
    let hook = spec_with(json!({ "options": { "hookscript": "local:snippets/a.sh" } }));
    assert!(only_anomaly(&drift(hook.clone(), live_with(&[]), &context())).contains("hook script"));
    assert!(is_clean(&drift(hook, live_with(&[("hookscript", "local:snippets/a.sh")]), &context())));
}

#[test]
fn protection_blocks_volume_writes_unless_it_is_lifted() {
    // Fact L23: PVE looks at the protection that is set before the write.
    let mut wanted = mount(json!({ "mount-point": "/srv" }));
    let live = || live_with(&[MP0, ("protection", "1")]);
    wanted["options"] = json!({ "protection": true });
    assert!(only_anomaly(&drift(wanted.clone(), live(), &context())).contains("protection: false"));
    wanted["options"] = json!({ "protection": false });
    let report = drift(wanted, live(), &context());
    let keys: Vec<Vec<&str>> =
        report
            .steps
            .iter()
            .map(|s| {
                if let Step::Configure(w) = s {
                    w.set.iter().map(|p| p.key.as_str()).collect()
                } else {
                    vec![]
                }
            })
            .collect();
    assert_eq!(keys, [vec!["protection"], vec!["mp0"]]);
    // Growth is another call, which protection does not block.
    let grown = drift(mount(json!({ "size": "8GiB", "grow": true })), live(), &context());
    assert!(grown.anomalies.is_empty() && matches!(grown.steps[..], [Step::Resize(_)]));
}

#[test]
fn environment_variables_are_compared_as_a_set_and_masked() {
    let wanted = spec_with(json!({ "env": { "A": "1", "B": "two words" } }));
    assert!(is_clean(&drift(wanted.clone(), live_with(&[("env", "B=two words\0A=1")]), &context())));
    let report = drift(wanted, live_with(&[("env", "A=1")]), &context());
    assert_eq!(set(&report), [("env".to_owned(), "A=1\0B=two words".to_owned())]);
    assert!(report.changes[0].sensitive);
}

#[test]
fn tags_and_host_name_are_claimed_and_kept() {
    let report = drift(spec(), live_with(&[("tags", "backup01")]), &context());
    assert_eq!(set(&report), [("tags".to_owned(), "backup01;proxops".to_owned())]);
    let report = drift(spec(), live_with(&[("hostname", "other")]), &context());
    assert_eq!(set(&report), [("hostname".to_owned(), "cache".to_owned())]);
    assert_eq!(report.changes[0].at, "/spec/dns", "the pointer resolves though the section is left out");
    let unowned = spec_with(json!({ "dns": { "hostname": "" } }));
    assert!(is_clean(&drift(unowned, live_with(&[("hostname", "other")]), &context())));
}

#[test]
fn a_template_is_not_a_container() {
    let mut live = live_with(&[]);
    live.template = true;
    let report = drift(spec(), live.clone(), &context());
    assert!(report.steps.is_empty());
    assert_eq!((report.anomalies[0].severity, &*report.anomalies[0].code), (Severity::Error, "kind-flip"));
    assert!(is_clean(&template_drift(spec(), live, &context())));
}

#[test]
fn a_plain_container_becomes_the_template_last() {
    let report = template_drift(spec_with(json!({ "memory": "1GiB" })), live_with(&[]), &context());
    assert_eq!(report.steps.last(), Some(&Step::MarkTemplate));
    assert_eq!(report.steps.len(), 2);
    let mut running = live_with(&[]);
    running.power = LivePower::Running;
    let report = template_drift(spec(), running, &context());
    assert!(!report.steps.contains(&Step::MarkTemplate), "PVE refuses it while the container runs");
}

fn clone_spec() -> serde_json::Value {
    spec_with(json!({ "template": null, "clone": "base", "root": { "size": "16GiB" }, "options": null }))
}

#[test]
fn a_fresh_clone_loses_what_it_inherited() {
    let mut live = live_with(&[
        ("tags", "golden;proxops"),
        ("description", "the golden image\n"),
        ("onboot", "1"),
        ("protection", "1"),
        ("nameserver", "10.9.9.9"),
        ("searchdomain", "build.example.org"),
    ]);
    live.fresh_clone_of = Some(ResourceRef::new("TemplateCT", "base"));
    let report = drift(clone_spec(), live.clone(), &context());
    let mut gone = unset(&report);
    gone.sort();
    assert_eq!(gone, ["description", "nameserver", "onboot", "protection", "searchdomain"]);
    assert_eq!(set(&report), [("tags".to_owned(), "proxops".to_owned())]);
    assert!(
        report.steps.contains(&Step::resize_to("rootfs", 16 * GIB, "/spec/root/size")),
        "no `grow` is needed yet"
    );
    assert!(report.anomalies.is_empty());
    let mut after = applied(live, &report);
    after.fresh_clone_of = None;
    assert!(is_clean(&drift(clone_spec(), after, &context())));
}

#[test]
fn an_older_clone_loses_only_its_resolver_settings() {
    let live = live_with(&[
        ("rootfs", "local-lvm:vm-201-disk-0,size=16G"),
        ("tags", "golden;proxops"),
        ("description", "by hand\n"),
        ("onboot", "1"),
        ("nameserver", "10.9.9.9"),
    ]);
    let report = drift(clone_spec(), live.clone(), &context());
    assert_eq!(unset(&report), ["nameserver"]);
    assert!(set(&report).is_empty());
    // Nothing of that happens to a container that is no clone.
    assert!(is_clean(&drift(spec_with(json!({ "root": null })), live, &context())));
}

#[test]
fn a_fresh_clone_with_kept_protection_still_gets_its_volumes() {
    let mut wanted = clone_spec();
    wanted["root"] = json!(null);
    wanted["options"] = json!({ "protection": true });
    wanted["mount-points"] = json!([{ "storage": "local-lvm", "size": "4GiB", "mount-point": "/data" }]);
    let mut live = live_with(&[("protection", "1")]);
    live.fresh_clone_of = Some(ResourceRef::new("TemplateCT", "base"));
    let report = drift(wanted, live, &context());
    let sent: Vec<(String, String)> = report
        .steps
        .iter()
        .filter_map(|s| if let Step::Configure(w) = s { w.set.first() } else { None })
        .map(|p| (p.key.clone(), text(&p.value)))
        .collect();
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    assert_eq!(sent, [pair("protection", "0"), pair("mp0", "local-lvm:4,mp=/data"), pair("protection", "1")]);
}

#[test]
fn variables_that_pve_hides_are_not_compared() {
    // Fact L12: a report without them says nothing to a reader without VM.Config.Options.
    let wanted = || spec_with(json!({ "env": { "LANG": "C" }, "cpu": { "cores": 2 } }));
    let hidden = LiveGuest { hidden: vec!["env".into()], ..live_with(&[]) };
    let report = drift(wanted(), hidden, &context());
    assert_eq!(set(&report), [("cores".to_owned(), "2".to_owned())], "all else converges");
    let [told] = &report.anomalies[..] else { panic!("{:?}", report.anomalies) };
    assert_eq!(
        (told.severity, told.code.as_str(), told.key.as_deref()),
        (Severity::Info, "unreadable", Some("env"))
    );
    assert!(told.help.as_ref().is_some_and(|help| help.contains("VM.Config.Options")));
    let report = drift(wanted(), live_with(&[]), &context());
    assert_eq!(set(&report).len(), 2, "readable, and not set: written");
}
