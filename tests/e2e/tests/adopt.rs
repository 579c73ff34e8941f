//! `adopt` as an operator runs it.

use crate::support::{iso, vm};
use proxops_e2e::{Bench, CLUSTER, Run};
use proxops_secrets::{Document, IdentitySources, Value};
use proxops_sim::{FaultAnswer, Faults, GuestKind, RequestFault, World, seed};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const KEY_A: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAx ops@a";
const KEY_B: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5LWZvci10ZXN0cy1vbmx5LTAwMDAwMDAy other";

pub(crate) fn guest(world: &mut World, vmid: u32, name: &str, more: &[(&str, &str)]) {
    let disk = format!("local-lvm:vm-{vmid}-disk-0,size=1G");
    let mut config = vec![
        ("cores", "2"),
        ("cpu", "host"),
        ("memory", "512"),
        ("name", name),
        ("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0"),
        ("scsi0", &disk),
        ("scsihw", "virtio-scsi-single"),
    ];
    config.retain(|(key, _)| !more.iter().any(|(k, _)| k == key));
    config.extend(more);
    world.add_guest(GuestKind::Qemu, vmid, "pve01", &config);
}

pub(crate) fn adopt(bench: &Bench, more: &[&str]) -> Run {
    bench.run(&[&["adopt", "--cluster", CLUSTER, "-o", "json"][..], more].concat())
}

pub(crate) fn words(run: &Run, list: &str) -> Vec<String> {
    let document = run.json();
    let list = document[list].as_array().unwrap_or_else(|| panic!("no list {list}: {run}")).clone();
    list.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect()
}

/// Every file below a folder of the repository, with its text.
pub(crate) fn tree(bench: &Bench) -> BTreeMap<String, String> {
    fn walk(folder: &Path, root: &Path, out: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != ".git" {
                walk(&path, root, out);
            } else if path.is_file() {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                out.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(&bench.repo(), &bench.repo(), &mut out);
    out
}

pub(crate) fn list(bench: &Bench, run: &Run) {
    let lines = words(run, "resources").join("\n");
    bench.write(&format!("clusters/{CLUSTER}/resources.yaml"), format!("resources:\n{lines}\n"));
}

#[test]
fn the_demo_cluster_is_adopted_listed_claimed_and_converged() {
    let bench = Bench::new(seed::demo());
    let run = adopt(&bench, &[]).exits(0);
    assert!(bench.writes().is_empty());
    let written = words(&run, "written");
    assert_eq!(
        written,
        [
            "ctt/lab/debian-13-standard-13-1-2-amd64.yaml",
            "diskimage/lab/debian-13-generic-amd64.yaml",
            "iso/lab/debian-13-2-0-amd64-netinst.yaml",
            "lxc/lab/dns.yaml",
            "templatevm/lab/debian-13.yaml",
            "vm/lab/legacy-db.yaml",
        ]
    );
    let iso = fs::read_to_string(bench.repo().join(&written[2])).unwrap();
    assert_eq!(
        iso,
        "# yaml-language-server: $schema=../../schemas/iso.schema.json\n\
         apiVersion: proxops/v1alpha1\n\
         kind: ISO\n\
         metadata:\n  name: debian-13-2-0-amd64-netinst\n\
         spec:\n  # INCOMPLETE: the address to download the file from; PVE does not keep it\n  # url: ...\n  \
         nodes: [pve01, pve02, pve03]\n  storage: local\n  filename: debian-13.2.0-amd64-netinst.iso\n"
    );
    list(&bench, &run);
    bench.run(&["validate"]).exits(0);
    let plan = bench.diff();
    assert_eq!(
        plan.actions(),
        ["update LXC/dns", "update TemplateVM/debian-13", "update VM/legacy-db"],
        "{plan}"
    );
    for action in plan.list("actions") {
        let keys: Vec<&str> =
            action["changes"].as_array().unwrap().iter().filter_map(|c| c["key"].as_str()).collect();
        assert_eq!((keys, &action["disruptive"]), (vec!["tags"], &json!(false)), "{plan}");
    }
    assert!(plan.list("anomalies").iter().all(|a| a["severity"] == "info"), "{plan}");
    bench.apply().exits(0);
    bench.converged();
    assert!(bench.world().guests[&100].running);
}

#[test]
fn what_is_there_stays_without_force_and_a_dry_run_writes_nothing() {
    let mut world = seed::empty();
    guest(&mut world, 100, "web", &[("onboot", "1")]);
    let bench = Bench::new(world);
    let before = tree(&bench);
    let dry = adopt(&bench, &["--dry-run"]).exits(0);
    assert_eq!(words(&dry, "written"), ["vm/lab/web.yaml"]);
    assert_eq!(tree(&bench), before);
    adopt(&bench, &[]).exits(0);
    let first = tree(&bench);
    // a person's edit
    bench.write("vm/lab/web.yaml", first["vm/lab/web.yaml"].replace("512MiB", "1GiB"));
    let again = adopt(&bench, &[]).exits(0);
    assert!(words(&again, "written").is_empty(), "{again}");
    assert_eq!(words(&again, "resources"), ["  - ../../vm/lab/web.yaml"], "it is not listed yet");
    assert!(again.json()["skipped"][0]["why"].as_str().unwrap().contains("vm/lab/web.yaml"), "{again}");
    assert!(tree(&bench)["vm/lab/web.yaml"].contains("1GiB"));
    adopt(&bench, &["--force"]).exits(0);
    assert_eq!(tree(&bench), first);
    // Renamed in PVE, it keeps its manifest.
    bench.world().guests.get_mut(&100).unwrap().config.insert("name".into(), "shop".into());
    let renamed = adopt(&bench, &["--force"]).exits(0);
    assert_eq!(words(&renamed, "written"), ["vm/lab/web.yaml"]);
    assert!(tree(&bench)["vm/lab/web.yaml"].contains("pve-name: shop"));
}

#[test]
fn a_listed_manifest_is_not_described_twice_whatever_its_file() {
    let mut world = seed::empty();
    guest(&mut world, 100, "web", &[]);
    guest(&mut world, 101, "db", &[]);
    world.add_file("local", "pve01", "iso/rescue.iso", 1 << 20);
    let mut bench = Bench::new(world);
    bench.documents(
        "vm/base/all.yaml",
        &[vm("front", 100, json!({"pve-name": "web"})), vm("db", 999, json!({}))],
    );
    bench.documents(&format!("iso/{CLUSTER}/r.yaml"), &[iso("rescue")]);
    let run = adopt(&bench, &["--force"]).exits(0);
    // The ISO's file is replaced, vm/base is shared and holds two; the name db is taken by another vmid.
    assert_eq!(words(&run, "written"), ["iso/lab/r.yaml", "vm/lab/db-101.yaml"], "{run}");
    assert_eq!(words(&run, "resources"), ["  - ../../vm/lab/db-101.yaml"]);
}

#[test]
fn only_takes_kinds_and_vmids_and_names_the_nearest() {
    let mut world = seed::demo();
    guest(&mut world, 200, "web", &[]);
    let bench = Bench::new(world);
    let run = adopt(&bench, &["--dry-run", "--only", "lxc,200"]).exits(0);
    assert_eq!(words(&run, "written"), ["lxc/lab/dns.yaml", "vm/lab/web.yaml"]);
    adopt(&bench, &["--only", "VN"]).exits(1).says("did you mean VM?");
    adopt(&bench, &["--only", "999"]).exits(1).says("no guest 999");
    bench.run(&["adopt"]).exits(1).says("--cluster");
    bench.run(&["adopt", "--cluster", "lap"]).exits(1).says("did you mean lab?");
    bench.run(&["adopt", "--cluster", CLUSTER, "--adopt-secrets"]).exits(1).says("secrets-file");
    assert!(bench.writes().is_empty());
}

#[test]
fn guests_of_one_name_get_their_vmids_and_a_cd_refers_to_its_iso() {
    let mut world = seed::empty();
    world.add_file("local", "pve01", "iso/netinst.iso", 1 << 20);
    guest(&mut world, 100, "web", &[("ide2", "local:iso/netinst.iso,media=cdrom,size=1M")]);
    guest(&mut world, 101, "web", &[]);
    let bench = Bench::new(world);
    let run = adopt(&bench, &[]).exits(0);
    assert_eq!(
        words(&run, "written"),
        ["iso/lab/netinst.yaml", "vm/lab/web-100.yaml", "vm/lab/web-101.yaml"]
    );
    assert!(tree(&bench)["vm/lab/web-100.yaml"].contains("iso: netinst"));
    list(&bench, &run);
    assert_eq!(bench.diff().actions(), ["update VM/web-100", "update VM/web-101"]);
    // Without the ISO's manifest the CD is named as PVE names it.
    let alone = adopt(&bench, &["--force", "--only", "100"]).exits(0);
    assert_eq!(words(&alone, "written"), ["vm/lab/web-100.yaml"]);
    assert!(
        tree(&bench)["vm/lab/web-100.yaml"].contains("iso: netinst"),
        "its manifest is in the repository"
    );
}

#[test]
fn a_guest_that_moves_goes_or_is_renamed_while_it_is_read_is_handled_and_named() {
    let mut world = seed::empty();
    for (vmid, name) in
        [(100, "stays"), (101, "moves"), (102, "goes"), (103, "renamed"), (104, "leaves"), (105, "late")]
    {
        guest(&mut world, vmid, name, &[]);
    }
    let mut bench = Bench::new(world);
    bench.configure(&["nodes: [pve01, pve02]"]);
    let path = |vmid: u32| format!("/nodes/pve01/qemu/{vmid}/config");
    let sim = bench.sim();
    // The request is answered truly, after this happened.
    let meanwhile = |path: &str, change: Faults| RequestFault {
        answer: None,
        change: Some(Box::new(change)),
        ..RequestFault::once("GET", path, FaultAnswer::DropBefore)
    };
    let moved =
        |vmid: u32, node: &str| Faults { moved: [(vmid, node.to_owned())].into(), ..Faults::default() };
    sim.inject(meanwhile(&path(101), moved(101, "pve02")));
    sim.inject(meanwhile(&path(102), Faults { gone: vec![102], ..Faults::default() }));
    let name = [("name".to_owned(), "new-name".to_owned())];
    sim.inject(meanwhile(&path(103), Faults { values: [(103, name.into())].into(), ..Faults::default() }));
    sim.inject(meanwhile(&path(104), moved(104, "pve03")));
    // Moves after it was read, before the run ends: 101, 102 and 104 are looked for in between.
    sim.inject(RequestFault { skip: 4, ..meanwhile("/cluster/resources", moved(105, "pve02")) });
    let run = adopt(&bench, &[]).exits(0);
    let texts = tree(&bench);
    assert_eq!(
        words(&run, "written"),
        ["vm/lab/late.yaml", "vm/lab/moves.yaml", "vm/lab/new-name.yaml", "vm/lab/stays.yaml"],
        "{run}"
    );
    assert!(texts["vm/lab/moves.yaml"].contains("node: pve02"));
    assert!(texts["vm/lab/late.yaml"].contains("node: pve02"));
    let why = |list: &str| -> Vec<String> {
        let document = run.json();
        let entry = |n: &serde_json::Value| format!("{} {}", n["vmid"], n["why"].as_str().unwrap());
        document[list].as_array().unwrap().iter().map(entry).collect()
    };
    let skipped = why("skipped").join("\n");
    assert!(skipped.contains("102 it was deleted while adopt read"), "{skipped}");
    assert!(skipped.contains("104 it moved to node pve03"), "{skipped}");
    let noted = why("noted").join("\n");
    assert!(noted.contains("101 it moved from node pve01 to pve02"), "{noted}");
    assert!(noted.contains("103 it was renamed from renamed to new-name"), "{noted}");
    assert!(noted.contains("105 it moved from node pve01 to pve02"), "{noted}");
    list(&bench, &run);
    assert!(bench.diff().list("anomalies").is_empty());
}

#[test]
fn what_can_not_be_read_is_named_and_the_rest_is_adopted() {
    let mut world = seed::demo();
    guest(&mut world, 200, "locked", &[("lock", "clone")]);
    guest(&mut world, 201, "secret", &[]);
    guest(&mut world, 202, "web", &[]);
    world.set_node("pve02", false);
    let bench = Bench::new(world);
    let answer = FaultAnswer::Status {
        status: 403,
        message: "Permission check failed".into(),
        errors: [].into(),
        effect: false,
    };
    bench.sim().inject(RequestFault {
        times: 0,
        ..RequestFault::once("GET", "/nodes/pve01/qemu/201/config", answer)
    });
    let run = adopt(&bench, &[]).exits(0);
    let skipped = words(&run, "skipped").join("\n");
    // A guest of an offline node has no name in the inventory.
    for text in ["\"vmid\":100", "node pve02", "locked (clone)", "Permission check failed", "storage local"] {
        assert!(skipped.contains(text), "{text}: {skipped}");
    }
    let written = words(&run, "written");
    assert!(
        written.contains(&"vm/lab/web.yaml".to_owned()) && written.contains(&"lxc/lab/dns.yaml".to_owned()),
        "{run}"
    );
    // An inventory that can't be read ends it.
    let answer =
        FaultAnswer::Status { status: 500, message: "broken".into(), errors: [].into(), effect: false };
    bench.sim().inject(RequestFault { times: 0, ..RequestFault::once("GET", "/cluster/resources", answer) });
    adopt(&bench, &[]).exits(1).says("/cluster/resources");
}

#[test]
fn sentinel_secrets_reach_no_output_and_no_manifest() {
    const MARK: &str = "Sentinel9Xq";
    let mut world = seed::empty();
    let key = format!("ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIGZpeHR1cmUta2V5%20{MARK}1%0A");
    guest(
        &mut world,
        100,
        "web",
        &[
            ("cipassword", &format!("{MARK}2")),
            ("sshkeys", &key),
            ("cicustom", &format!("user=local:snippets/password-{MARK}3.yaml")),
            ("description", &format!("login root\npassword {MARK}4")),
            ("args", &format!("-fw_cfg name=opt/x,string=token={MARK}5")),
        ],
    );
    let ct = world.add_guest(
        GuestKind::Lxc,
        200,
        "pve01",
        &[
            ("hostname", "ct"),
            ("memory", "512"),
            ("rootfs", "local-lvm:vm-200-disk-0,size=1G"),
            ("description", &format!("https://ops:{MARK}6@example.org")),
            ("env", &format!("DB_PASSWORD={MARK}7")),
        ],
    );
    ct.raw.push(("lxc.environment".into(), format!("A={MARK}8")));
    ct.raw.push(("lxc.mount.entry".into(), format!("/srv/{MARK}9 srv none bind")));
    let bench = Bench::new(world);
    for more in
        [&["-o", "json"][..], &["-o", "text"], &["-vv", "--force"], &["-vvv", "--force", "-o", "json"]]
    {
        let mut all = vec!["adopt", "--cluster", CLUSTER];
        all.extend(more);
        let run = bench.run(&all).exits(0);
        assert!(!run.stdout.contains(MARK) && !run.stderr.contains(MARK), "{run}");
    }
    let texts = tree(&bench);
    for (file, text) in &texts {
        assert!(!text.contains(MARK), "{file}:\n{text}");
    }
    let vm = &texts["vm/lab/web.yaml"];
    for key in
        ["description: (redacted)", "cicustom: (redacted)", "args: (redacted)", "cipassword: (masked by PVE)"]
    {
        assert!(vm.contains(key), "{key}:\n{vm}");
    }
    assert!(vm.contains("ssh-keys: [\"*\"]"), "{vm}");
    let ct = &texts["lxc/lab/ct.yaml"];
    for key in ["lxc.environment: (redacted)", "lxc.mount.entry: (redacted)", "env: (redacted)"] {
        assert!(ct.contains(key), "{key}:\n{ct}");
    }
    for entry in walk(&bench.data_dir()) {
        assert!(!fs::read(&entry).unwrap().windows(MARK.len()).any(|w| w == MARK.as_bytes()), "{entry:?}");
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.flat_map(|e| if e.path().is_dir() { Vec::new() } else { vec![e.path()] }).collect()
}

/// A bench whose cluster has a secrets document with one key, and two guests with keys.
pub(crate) fn with_secrets() -> (Bench, std::path::PathBuf, String) {
    let encode = |keys: &[&str]| {
        keys.iter()
            .map(|k| format!("{}%0A", k.replace(' ', "%20").replace('+', "%2B").replace('@', "%40")))
            .collect::<String>()
    };
    let mut world = seed::empty();
    guest(&mut world, 100, "known", &[("sshkeys", &encode(&[KEY_A]))]);
    guest(&mut world, 101, "new", &[("sshkeys", &encode(&[KEY_A, KEY_B]))]);
    let mut bench = Bench::new(world);
    let identity = age::x25519::Identity::generate();
    let other = age::x25519::Identity::generate();
    let secret = age::secrecy::ExposeSecret::expose_secret(&identity.to_string()).to_owned();
    let map = |entries: Vec<(&str, Value)>| {
        Value::Map(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    };
    let value = map(vec![
        ("secrets", map(vec![("pve-token", Value::str("tok-1"))])),
        (
            "cloud-init",
            map(vec![
                ("ssh-keys", map(vec![("ops", Value::str(KEY_A))])),
                ("passwords", map(vec![("ops", Value::str("pw-1"))])),
            ]),
        ),
    ]);
    let recipients = [identity.to_public().to_string(), other.to_public().to_string()];
    let text = Document::create("s", &recipients, &value, jiff::Timestamp::now()).unwrap();
    let text = format!("# who may read: ops\n{text}");
    let file = format!("clusters/{CLUSTER}/secrets.sops.yaml");
    bench.write(&file, &text);
    bench.configure(&["secrets-file: secrets.sops.yaml"]);
    bench.set("SOPS_AGE_KEY", &secret);
    (bench, std::path::PathBuf::from(file), secret)
}

pub(crate) fn open(text: &str, secret: &str) -> proxops_secrets::Decrypted {
    let secret = secret.to_owned();
    let sources = IdentitySources::new(move |name| (name == "SOPS_AGE_KEY").then(|| secret.clone()), None);
    Document::decrypt(text, "s", &sources).unwrap()
}

#[test]
fn keys_are_matched_and_unknown_ones_are_added_on_request_only() {
    let (bench, file, secret) = with_secrets();
    let path = bench.repo().join(&file);
    let before = fs::read_to_string(&path).unwrap();
    adopt(&bench, &[]).exits(0);
    let texts = tree(&bench);
    assert!(
        texts["vm/lab/known.yaml"].contains("ssh-key-refs: [cloud-init.ssh-keys.ops]"),
        "{}",
        texts["vm/lab/known.yaml"]
    );
    assert!(texts["vm/lab/new.yaml"].contains("ssh-keys: [\"*\"]"), "all or nothing");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);

    let run = adopt(&bench, &["--adopt-secrets", "--force"]).exits(0);
    // The first 8 bytes of printf 'sshpki\0ssh-ed25519\0<base64>' | sha256sum
    let added = words(&run, "new-keys");
    assert_eq!(added, ["cloud-init.ssh-keys.adopted-6e6b623311b45b88"], "{run}");
    let after = fs::read_to_string(&path).unwrap();
    let document = open(&after, &secret);
    assert_eq!(document.get(&added[0]).unwrap().expose(), KEY_B);
    assert_eq!(document.get("secrets.pve-token").unwrap().expose(), "tok-1");
    assert_eq!(document.get("cloud-init.passwords.ops").unwrap().expose(), "pw-1");
    assert_eq!(after.matches("recipient: age1").count(), 2);
    assert!(after.starts_with("# who may read: ops\n"));
    assert!(tree(&bench)["vm/lab/new.yaml"].contains(&added[0]));

    // Nothing new: not one byte, not even the time of the file.
    let stamp = fs::metadata(&path).unwrap().modified().unwrap();
    adopt(&bench, &["--adopt-secrets", "--force"]).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), stamp);
    let rest: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(rest.len(), 3, "no sidecar stays: {rest:?}");
    list(&bench, &adopt(&bench, &[]));
    assert_eq!(bench.diff().actions(), ["update VM/known", "update VM/new"]);
    bench.apply().exits(0);
    bench.converged();
}
