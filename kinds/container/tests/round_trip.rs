//! create, then drift, then adopt, then drift again; and PVE's own schema has the last word.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
mod pve_schema;

use common::*;
use proxops_container::{Lxc, TemplateCt};
use proxops_kind::*;
use serde_json::{Value as Json, json};

fn examples() -> Vec<Json> {
    let info = kind::describe::<Lxc>();
    info.examples.iter().map(|text| serde_json::from_str::<Json>(text).unwrap()).collect()
}

/// A manifest of an example. The base manifest's name would not be the example's host name.
fn example(whole: &Json) -> Manifest {
    let mut out = manifest(whole["spec"].clone());
    out.name = whole["metadata"]["name"].as_str().unwrap().to_owned();
    out
}

fn adopted(name: &str, live: &LiveGuest) -> Adopted {
    let options = AdoptOptions { secrets: false, ext: vec![] };
    kind::adopt::<Lxc>(name, &Live::Guest(live.clone()), &root(), &options).unwrap()
}

#[test]
fn every_example_validates() {
    for whole in examples() {
        let validation = kind::validate::<Lxc>(&example(&whole));
        assert_eq!(validation.diagnostics, [], "{whole}");
    }
    for text in kind::describe::<TemplateCt>().examples {
        let whole: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(kind::validate::<TemplateCt>(&example(&whole)).diagnostics, [], "{whole}");
    }
}

#[test]
fn what_was_created_and_adopted_has_no_drift() {
    for whole in examples().into_iter().filter(|whole| whole["spec"]["clone"].is_null()) {
        let manifest = example(&whole);
        let creation = kind::create_params::<Lxc>(&manifest, &root()).unwrap();
        let [Step::Create(params)] = &creation.steps[..] else { panic!("{creation:?}") };
        let mut live = created(params);
        live.vmid = u32::try_from(whole["spec"]["vmid"].as_u64().unwrap()).unwrap();
        let report = kind::drift::<Lxc>(&manifest, &Live::Guest(live.clone()), &root()).unwrap();
        assert!(is_clean(&report), "{whole}: {report:?}");

        let adopted = adopted(&manifest.name, &live);
        assert_eq!(adopted.gaps, [], "{whole}");
        assert_eq!(adopted.incomplete[0].at, "/spec/template");
        let again = Manifest { spec: adopted.spec.clone(), ..manifest };
        assert_eq!(kind::validate::<Lxc>(&again).diagnostics, [], "{}", adopted.spec);
        let report = kind::drift::<Lxc>(&again, &Live::Guest(live), &root()).unwrap();
        assert!(is_clean(&report), "{}: {report:?}", adopted.spec);
    }
}

#[test]
fn an_adopted_manifest_leaves_defaults_out() {
    let adopted = adopted("cache", &live_with(&[("cpulimit", "0"), ("onboot", "0")]));
    assert_eq!(
        adopted.spec,
        concat!(
            r#"{"node":"pve01","vmid":201,"state":"stopped","cpu":{"cores":1},"#,
            r#""root":{"storage":"local-lvm","size":"8GiB"},"networks":[{"slot":"net0","bridge":"vmbr0"}],"#,
            r#""os-type":"debian"}"#
        )
    );
}

#[test]
fn what_no_field_expresses_is_a_gap() {
    let mut live = live_with(&[
        ("debug", "1"),
        ("parent", "before-upgrade"),
        ("unused0", "local-lvm:vm-201-disk-9"),
        ("features", "nesting=1,some-new=1"),
        ("mp0", "local-lvm:vm-201-disk-1,mp=/data,keepattrs=1,size=4G"),
        ("mp1", "/etc/pve,mp=/pve"),
        ("net1", "name=eth1,hwaddr=BC:24:11:00:00:03,type=veth"),
        ("env", "A=1\0DB_PASSWORD=hunter2"),
        ("lock", "backup"),
        ("digest", "abc"),
        ("future", "api-token"),
    ]);
    let lines = r#"[["lxc.apparmor.profile","unconfined"],["lxc.environment","API_TOKEN=hunter2"]]"#;
    live.values.push(("lxc".to_owned(), LiveValue::Json(lines.to_owned())));
    let adopted = adopted("cache", &live);
    let mut gaps: Vec<(&str, Option<&str>)> =
        adopted.gaps.iter().map(|g| (g.key.as_str(), g.value.as_deref())).collect();
    gaps.sort_unstable();
    assert_eq!(
        gaps,
        [
            ("debug", Some("1")),
            ("env", None),
            ("features", Some("some-new=1")),
            ("future", None),
            ("lxc.apparmor.profile", Some("unconfined")),
            ("lxc.environment", None),
            ("mp0", Some("keepattrs=1")),
            ("mp1", Some("/etc/pve,mp=/pve")),
            ("net1", Some("name=eth1,hwaddr=BC:24:11:00:00:03,type=veth")),
            ("parent", Some("before-upgrade")),
            ("unused0", Some("local-lvm:vm-201-disk-9")),
        ]
    );
    assert!(!format!("{adopted:?}").contains("hunter2"));
    let again = Manifest { spec: adopted.spec, ..manifest(spec()) };
    assert_eq!(kind::validate::<Lxc>(&again).diagnostics, []);
    let report = kind::drift::<Lxc>(&again, &Live::Guest(live), &root()).unwrap();
    assert!(report.changes.is_empty() && report.steps.is_empty(), "{report:?}");
}

#[test]
fn an_adopted_container_is_only_claimed() {
    let live = live_with(&[
        ("tags", "backup01"),
        ("hostname", "cache.example.org"),
        ("unprivileged", ""),
        ("swap", "0"),
    ]);
    let adopted = adopted("cache", &live);
    let again = Manifest { spec: adopted.spec.clone(), ..manifest(spec()) };
    let report = kind::drift::<Lxc>(&again, &Live::Guest(live), &context()).unwrap();
    assert_eq!(set(&report), [("tags".to_owned(), "backup01;proxops".to_owned())]);
    assert!(report.anomalies.is_empty() && unset(&report).is_empty());
    let spec: Json = serde_json::from_str(&adopted.spec).unwrap();
    assert_eq!(spec["options"]["unprivileged"], json!(false));
    assert_eq!((&spec["swap"], &spec["dns"]["hostname"]), (&json!("0KiB"), &json!("cache.example.org")));
}

#[test]
fn a_running_container_is_adopted_as_started() {
    let mut live = live_with(&[]);
    live.power = LivePower::Running;
    let spec: Json = serde_json::from_str(&adopted("cache", &live).spec).unwrap();
    assert_eq!(spec["state"], Json::Null, "the default");
}

#[test]
fn each_change_of_a_field_converges_in_one_write() {
    let base = example(&examples()[1]);
    let creation = kind::create_params::<Lxc>(&base, &root()).unwrap();
    let [Step::Create(params)] = &creation.steps[..] else { panic!() };
    let live = created(params);
    for (pointer, value) in [
        ("/pve-description", json!("other")),
        ("/tags", json!(["x"])),
        ("/memory", json!("2GiB")),
        ("/swap", json!("0MiB")),
        ("/cpu/cores", json!(4)),
        ("/cpu/limit", json!(0.5)),
        ("/cpu/units", json!(50)),
        ("/root/size", json!("9GiB")),
        ("/root/mount-options", json!(["discard", "noatime"])),
        ("/root/acl", json!(false)),
        ("/root/quota", json!(true)),
        ("/root/replicate", json!(false)),
        ("/mount-points/0/size", json!("33GiB")),
        ("/mount-points/0/mount-point", json!("/other")),
        ("/mount-points/0/options/read-only", json!(true)),
        ("/mount-points/0/options/backup", json!(false)),
        ("/mount-points/0/options/acl", json!(false)),
        ("/mount-points/0/options/quota", json!(true)),
        ("/mount-points/0/options/shared", json!(true)),
        ("/mount-points/0/options/replicate", json!(false)),
        ("/mount-points/0/options/mount-options", json!([])),
        ("/bind-mounts/0/mount-point", json!("/other")),
        ("/bind-mounts/0/read-only", json!(false)),
        ("/devices/0/path", json!("/dev/kvm")),
        ("/devices/0/mode", json!("0666")),
        ("/devices/0/uid", json!(7)),
        ("/devices/0/gid", json!(0)),
        ("/devices/0/deny-write", json!(true)),
        ("/networks/0/bridge", json!("vmbr1")),
        ("/networks/0/iface", json!("lan0")),
        ("/networks/0/tag", json!(21)),
        ("/networks/0/trunks", json!([30])),
        ("/networks/0/hwaddr", json!("BC:24:11:00:00:99")),
        ("/networks/0/rate-limit", json!(0.5)),
        ("/networks/0/firewall", json!(false)),
        ("/networks/0/link-down", json!(true)),
        ("/networks/0/mtu", json!(9000)),
        ("/networks/0/ip", json!("10.0.20.6/24")),
        ("/networks/0/gw", json!("10.0.20.2")),
        ("/networks/0/ip6", json!("2001:db8:20::6/64")),
        ("/networks/0/gw6", json!("2001:db8:20::2")),
        ("/dns/hostname", json!("other")),
        ("/dns/nameservers", json!(["10.0.0.54"])),
        ("/dns/domain", json!("example.net")),
        ("/arch", json!("arm64")),
        ("/os-type", json!("ubuntu")),
        ("/timezone", json!("Europe/Vienna")),
        ("/entrypoint", json!("/bin/sh -c 'sleep 1'")),
        ("/env", json!({ "LANG": "C", "A": "b" })),
        ("/options/onboot", json!(false)),
        ("/options/startup", json!("order=3")),
        ("/options/protection", json!(true)),
        ("/options/console", json!(false)),
        ("/options/ttys", json!(0)),
        ("/options/cmode", json!("shell")),
        ("/options/hookscript", json!("local:snippets/other.sh")),
        ("/options/features/nesting", json!(false)),
        ("/options/features/keyctl", json!(false)),
        ("/options/features/fuse", json!(false)),
        ("/options/features/mknod", json!(true)),
        ("/options/features/mount", json!(["cifs", "nfs"])),
        ("/options/features/force-rw-sys", json!(true)),
    ] {
        let mut spec: Json = serde_json::from_str(&base.spec).unwrap();
        *spec.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        let changed = Manifest { spec: spec.to_string(), ..base.clone() };
        let report = kind::drift::<Lxc>(&changed, &Live::Guest(live.clone()), &root()).unwrap();
        assert_eq!(report.changes.len(), 1, "{pointer}: {report:?}");
        assert_eq!(report.steps.len(), 1, "{pointer}");
        if let Some(schema) = pve_schema::method("/nodes/{node}/lxc/{vmid}/config PUT") {
            assert_eq!(pve_schema::complaints(&schema, &set(&report)), Vec::<String>::new(), "{pointer}");
        }
        let after = applied(live.clone(), &report);
        let report = kind::drift::<Lxc>(&changed, &Live::Guest(after), &root()).unwrap();
        assert!(is_clean(&report), "{pointer}: {report:?}");
    }
}

#[test]
fn pves_schema_accepts_every_call() {
    let (Some(create), Some(clone), Some(write)) = (
        pve_schema::method("/nodes/{node}/lxc POST"),
        pve_schema::method("/nodes/{node}/lxc/{vmid}/clone POST"),
        pve_schema::method("/nodes/{node}/lxc/{vmid}/config PUT"),
    ) else {
        return;
    };
    for whole in examples() {
        let creation = kind::create_params::<Lxc>(&example(&whole), &root()).unwrap();
        for step in &creation.steps {
            let (schema, params) = match step {
                Step::Create(params) => (&create, params),
                Step::Clone(step) => (&clone, &step.params),
                other => panic!("{other:?}"),
            };
            let params: Vec<_> = params.iter().map(|p| (p.key.clone(), text(&p.value))).collect();
            assert_eq!(pve_schema::complaints(schema, &params), Vec::<String>::new());
        }
        // The same as one update of a container that has nothing of it.
        let bare = live_with(&[("cores", ""), ("net0", ""), ("tags", ""), ("hostname", "x")]);
        let report = kind::drift::<Lxc>(&example(&whole), &Live::Guest(bare), &root()).unwrap();
        assert_eq!(pve_schema::complaints(&write, &set(&report)), Vec::<String>::new());
    }
    // The check itself can fail.
    let pair = |k: &str, v: &str| vec![(k.to_owned(), v.to_owned())];
    for wrong in
        [pair("ttys", "2"), pair("onboot", "true"), pair("features", "spin=1"), pair("net32", "name=a")]
    {
        assert_eq!(pve_schema::complaints(&write, &wrong).len(), 1, "{wrong:?}");
    }
}
