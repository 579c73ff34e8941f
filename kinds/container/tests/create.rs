//! What a new container is made of.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use proxops_container::Lxc;
use proxops_kind::*;
use serde_json::json;

fn params(creation: &Creation) -> Vec<(String, String)> {
    match &creation.steps[..] {
        [Step::Create(params)] => params.iter().map(|p| (p.key.clone(), text(&p.value))).collect(),
        [Step::Clone(clone)] => clone.params.iter().map(|p| (p.key.clone(), text(&p.value))).collect(),
        other => panic!("{other:?}"),
    }
}

fn value(params: &[(String, String)], key: &str) -> Option<String> {
    params.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone())
}

#[test]
fn the_base_container_is_one_call() {
    let creation = create(spec(), &context()).unwrap();
    let mut params = params(&creation);
    params.sort();
    let wanted = [
        ("cores", "1"),
        ("hostname", "cache"),
        ("memory", "512"),
        ("net0", "name=eth0,bridge=vmbr0,type=veth"),
        ("ostemplate", "local:vztmpl/deb13.tar.zst"),
        ("rootfs", "local-lvm:8"),
        ("swap", "512"),
        ("tags", "proxops"),
        ("unprivileged", "1"),
    ];
    assert_eq!(params, wanted.map(|(k, v)| (k.to_owned(), v.to_owned())));
    assert!(creation.anomalies.is_empty());
}

#[test]
fn keys_are_plain_text_and_the_password_is_named() {
    let wanted = spec_with(json!({
        "ssh-key-refs": ["cloud-init.ssh-keys.ops"],
        "password-ref": "cloud-init.passwords.ops",
    }));
    let params = params(&create(wanted.clone(), &context()).unwrap());
    assert_eq!(value(&params, "ssh-public-keys").as_deref(), Some("ssh-ed25519 AAAA ops"));
    assert_eq!(value(&params, "password").as_deref(), Some("secret:cloud-init.passwords.ops"));
    // Fact L1: create-only, so never a difference.
    assert!(is_clean(&drift(wanted.clone(), live_with(&[]), &context())));
    let refusal = create(wanted, &Context { public_keys: vec![], ..context() }).unwrap_err();
    assert_eq!(refusal[0].at, "/spec/ssh-key-refs/0");
}

#[test]
fn what_is_needed_to_create_and_missing_is_named() {
    let bare = spec_with(json!({ "template": null, "root": null }));
    let refusal = create(bare, &context()).unwrap_err();
    let places: Vec<&str> = refusal.iter().map(|d| d.at.as_str()).collect();
    assert_eq!(places, ["/spec/template", "/spec/root"]);
}

#[test]
fn a_token_can_not_create_what_only_root_may() {
    let wanted = spec_with(json!({
        "bind-mounts": [{ "host-path": "/srv/media", "mount-point": "/media" }],
        "devices": [{ "path": "/dev/fuse" }],
        "options": { "hookscript": "local:snippets/a.sh", "features": { "nesting": true, "keyctl": true, "fuse": false } },
    }));
    let creation = create(wanted.clone(), &context()).unwrap();
    let keys: Vec<&str> = creation.anomalies.iter().map(|a| a.key.as_deref().unwrap()).collect();
    assert_eq!(keys, ["mp0", "dev0", "hookscript", "features"]);
    assert!(
        creation.anomalies.iter().all(|a| a.severity == Severity::Error && a.message.contains("root@pam"))
    );
    let creation = create(wanted, &root()).unwrap();
    assert!(creation.anomalies.is_empty());
    let params = params(&creation);
    assert_eq!(value(&params, "features").as_deref(), Some("nesting=1,keyctl=1"));
    assert_eq!(value(&params, "mp0").as_deref(), Some("/srv/media,mp=/media"));
    assert_eq!(value(&params, "dev0").as_deref(), Some("/dev/fuse"));
}

#[test]
fn nesting_is_for_everybody_only_in_an_unprivileged_container() {
    let wanted = |unprivileged: bool| {
        spec_with(json!({ "options": { "unprivileged": unprivileged, "nesting": true } }))
    };
    assert!(create(wanted(true), &context()).unwrap().anomalies.is_empty());
    let creation = create(wanted(false), &context()).unwrap();
    assert!(creation.anomalies[0].message.contains("privileged container"));
}

#[test]
fn slots_that_are_named_come_first() {
    let wanted = spec_with(json!({
        "mount-points": [
            { "storage": "local-lvm", "size": "1GiB", "mount-point": "/a" },
            { "slot": "mp0", "storage": "local-lvm", "size": "2GiB", "mount-point": "/b" },
        ],
        "bind-mounts": [{ "host-path": "/srv/c", "mount-point": "/c" }],
        "networks": [{ "slot": "net3", "bridge": "vmbr0" }, { "slot": "net1", "absent": true }],
    }));
    let params = params(&create(wanted, &root()).unwrap());
    assert_eq!(value(&params, "mp0").as_deref(), Some("local-lvm:2,mp=/b"));
    assert_eq!(value(&params, "mp1").as_deref(), Some("local-lvm:1,mp=/a"));
    assert_eq!(value(&params, "mp2").as_deref(), Some("/srv/c,mp=/c"));
    assert_eq!(value(&params, "net3").as_deref(), Some("name=eth3,bridge=vmbr0,type=veth"));
    assert_eq!(value(&params, "net1"), None);
}

#[test]
fn a_clone_is_full_and_has_its_own_name() {
    // Fact L18: a template is linked unless `full` is given, and the host name is copied.
    let wanted = spec_with(json!({
        "template": null, "clone": "base", "clone-storage": "tank", "root": { "size": "16GiB" }, "pool": "web",
    }));
    let creation = create(wanted, &context()).unwrap();
    let Step::Clone(clone) = &creation.steps[0] else { panic!() };
    assert_eq!(clone.source, ResourceRef::new("TemplateCT", "base"));
    let wanted = [("full", "1"), ("hostname", "cache"), ("storage", "tank"), ("pool", "web")];
    assert_eq!(params(&creation), wanted.map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[test]
fn a_manifest_says_what_the_host_needs() {
    let wanted = spec_with(json!({
        "template": null, "dns": { "hostname": "cache.example.org" }, "root": { "storage": "local-lvm" },
        "mount-points": [{ "storage": "tank", "mount-point": "/data" }],
        "password-ref": "cloud-init.passwords.ops", "ssh-key-refs": ["cloud-init.ssh-keys.ops"],
    }));
    let validation = validate(wanted);
    assert_eq!(errors(&validation), []);
    let validated = validation.validated.unwrap();
    assert_eq!(validated.identity, Identity::guest_id("pve01", 201, Some("cache.example.org")));
    assert_eq!(validated.power, Some(Power::Stopped));
    let holes: Vec<&str> = validated.incomplete.iter().map(|h| h.at.as_str()).collect();
    assert_eq!(holes, ["/spec/template", "/spec/root/size", "/spec/mount-points/0/size"]);
    let storages: Vec<_> =
        validated.storages.iter().map(|s| (s.storage.as_str(), s.content.as_str())).collect();
    assert_eq!(storages, [("local-lvm", "rootdir"), ("tank", "rootdir")]);
    let secrets: Vec<_> = validated.secrets.iter().map(|s| (s.name.as_str(), s.class.clone())).collect();
    assert_eq!(
        secrets,
        [
            ("cloud-init.ssh-keys.ops", SecretClass::PublicKey),
            ("cloud-init.passwords.ops", SecretClass::Password)
        ]
    );
    let pairs = [("vmid", "201"), ("node", "pve01"), ("name", "cache.example.org")];
    assert_eq!(validated.attributes, pairs.map(|(k, v)| (k.to_owned(), v.to_owned())));
    let validated = validate(spec()).validated.unwrap();
    assert_eq!(validated.references, [Reference::new("CTTemplate", "deb13", "/spec/template")]);
    assert!(validated.incomplete.is_empty());
}

#[test]
fn a_host_name_that_is_not_owned_is_not_the_identity() {
    let validated = validate(spec_with(json!({ "dns": { "hostname": "" } }))).validated.unwrap();
    assert_eq!(validated.identity, Identity::guest_id("pve01", 201, None));
}

#[test]
fn the_kinds_describe_themselves() {
    let info = kind::describe::<Lxc>();
    assert_eq!((info.kind.as_str(), info.root.as_str()), ("LXC", "lxc"));
    let schema: serde_json::Value = serde_json::from_str(&info.schema).unwrap();
    fn undescribed(at: &str, schema: &serde_json::Value, out: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if property["description"].is_null() {
                out.push(format!("{at}.{name}"));
            }
        }
        for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
            undescribed(name, definition, out);
        }
    }
    let mut missing = vec![];
    undescribed("", &schema, &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}
