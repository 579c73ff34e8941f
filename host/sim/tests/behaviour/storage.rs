//! Storages, files and downloads: facts S1 to S11.

use crate::{Lab, json};

const DOWNLOAD: &str = "/nodes/pve01/storage/local/download-url";

fn download(content: &str, filename: &str) -> serde_json::Value {
    json!({"content": content, "filename": filename, "url": "https://images.example.org/x"})
}

#[test]
fn extensions_decide_s1() {
    let mut lab = Lab::new();
    for (content, name) in [
        ("iso", "a.ISO"),
        ("iso", "a.img"),
        ("vztmpl", "a.tar.zst"),
        ("vztmpl", "a.tar"),
        ("import", "a.qcow2"),
        ("import", "a.ova"),
    ] {
        assert_eq!(lab.task("POST", DOWNLOAD, download(content, name)), "OK", "{name}");
    }
    for (content, name) in [("iso", "a.qcow2"), ("vztmpl", "a.tgz")] {
        assert_eq!(
            lab.param_error("POST", DOWNLOAD, download(content, name), "filename"),
            "wrong file extension"
        );
    }
    for name in ["a.img", "a.QCOW2"] {
        let text = lab.param_error("POST", DOWNLOAD, download("import", name), "filename");
        assert_eq!(text, "invalid filename or wrong extension");
    }
}

#[test]
fn a_storage_must_carry_the_content_s2() {
    let mut lab = Lab::new();
    let (_, text) =
        lab.error("POST", "/nodes/pve01/storage/local-lvm/download-url", download("iso", "a.iso"));
    assert_eq!(text, "storage 'local-lvm' is not configured for content-type 'iso'");
    assert!(
        lab.param_error("POST", DOWNLOAD, download("snippets", "a.yaml"), "content").contains("enumeration")
    );
}

#[test]
fn file_names_are_normalised_s3() {
    let mut lab = Lab::new();
    lab.task("POST", DOWNLOAD, download("iso", "dir/my file+1.iso"));
    assert!(lab.0.volume("local:iso/my_file_1.iso", "pve01").is_some());
}

#[test]
fn a_file_that_is_there_is_not_overwritten_s5() {
    let mut lab = Lab::new();
    let with = |algorithm: &str, sum: &str| {
        let mut params = download("iso", "a.iso");
        params["checksum"] = json!(sum);
        params["checksum-algorithm"] = json!(algorithm);
        params
    };
    assert_eq!(lab.task("POST", DOWNLOAD, with("sha256", "aa11")), "OK");
    assert_eq!(lab.task("POST", DOWNLOAD, with("sha256", "AA11")), "OK", "the same file needs no download");
    assert_eq!(
        lab.task("POST", DOWNLOAD, with("sha256", "bb22")),
        "checksum mismatch: got 'aa11' != expect 'bb22', aborting"
    );
    let exit = lab.task("POST", DOWNLOAD, download("iso", "a.iso"));
    assert_eq!(exit, "refusing to override existing file '/var/lib/vz/template/iso/a.iso'");
    let mut lonely = download("iso", "b.iso");
    lonely["checksum"] = json!("aa");
    assert_eq!(
        lab.param_error("POST", DOWNLOAD, lonely, "checksum-algorithm"),
        "missing property required by 'checksum'"
    );
    let mut spelled = download("iso", "b.iso");
    spelled["checksum_algorithm"] = json!("sha256");
    assert!(
        lab.param_error("POST", DOWNLOAD, spelled, "checksum_algorithm")
            .starts_with("property is not defined"),
        "S4"
    );
}

#[test]
fn files_are_per_node_unless_the_storage_is_shared() {
    let mut lab = Lab::new();
    lab.task("POST", DOWNLOAD, download("iso", "one.iso"));
    lab.task("POST", "/nodes/pve01/storage/nfs/download-url", download("iso", "all.iso"));
    let list = |lab: &mut Lab, node: &str, storage: &str| {
        let rows =
            lab.ok("GET", &format!("/nodes/{node}/storage/{storage}/content"), json!({"content": "iso"}));
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["volid"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&mut lab, "pve01", "local"), ["local:iso/one.iso", "local:iso/x.iso"]);
    assert_eq!(list(&mut lab, "pve02", "local"), Vec::<String>::new());
    assert_eq!(list(&mut lab, "pve02", "nfs"), ["nfs:iso/all.iso"]);
}

#[test]
fn listings_tell_formats_and_owners_s7() {
    let mut lab = Lab::with_ct();
    let rows = lab.ok("GET", "/nodes/pve01/storage/local/content", json!({}));
    let formats: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["format"].as_str().unwrap().to_owned()).collect();
    assert_eq!(formats, ["qcow2", "iso", "tzst"]);
    let disk = &lab.ok("GET", "/nodes/pve01/storage/local-lvm/content", json!({"vmid": "201"}))[0];
    assert_eq!(
        (&disk["content"], &disk["vmid"], &disk["size"]),
        (&json!("rootdir"), &json!(201), &json!(8u64 << 30))
    );
    assert_eq!(
        lab.ok("GET", "/nodes/pve01/storage/local-lvm/content", json!({"content": "images"})),
        json!([])
    );
}

#[test]
fn one_volume_by_its_name_with_slashes_s8_s10() {
    let mut lab = Lab::new();
    for path in ["local:iso/x.iso", "iso/x.iso"] {
        let row = lab.ok("GET", &format!("/nodes/pve01/storage/local/content/{path}"), json!({}));
        assert_eq!((&row["size"], &row["format"]), (&json!(700u64 << 20), &json!("iso")));
    }
    let (_, text) = lab.error("GET", "/nodes/pve01/storage/local/content/iso/none.iso", json!({}));
    assert_eq!(text, "volume 'local:iso/none.iso' does not exist");
}

#[test]
fn a_missing_file_is_deleted_fine_s9() {
    let mut lab = Lab::new();
    for name in ["iso/x.iso", "iso/x.iso"] {
        assert_eq!(
            lab.task("DELETE", &format!("/nodes/pve01/storage/local/content/{name}"), json!({})),
            "OK"
        );
    }
    assert_eq!(
        lab.ok("DELETE", "/nodes/pve01/storage/local/content/iso/x.iso", json!({"delay": "5"})),
        json!(null)
    );
}

#[test]
fn storage_errors_s11() {
    let mut lab = Lab::new();
    assert_eq!(
        lab.param_error("GET", "/nodes/pve01/storage/none/status", json!({}), "storage"),
        "No such storage."
    );
    assert_eq!(
        lab.error("GET", "/nodes/pve01/storage/none/content", json!({})),
        (500, "storage 'none' does not exist".into())
    );
    let nfs = lab.0.storages.get_mut("nfs").unwrap();
    nfs.nodes = Some(["pve02".to_owned()].into());
    let (_, text) = lab.error("GET", "/nodes/pve01/storage/nfs/content", json!({}));
    assert_eq!(text, "storage 'nfs' is not available on node 'pve01'");
    lab.0.storages.get_mut("nfs").unwrap().disabled = true;
    assert_eq!(
        lab.error("GET", "/nodes/pve02/storage/nfs/content", json!({})).1,
        "storage 'nfs' is disabled"
    );
    let status = lab.ok("GET", "/nodes/pve01/storage/local/status", json!({}));
    for key in ["type", "content", "enabled", "active", "shared", "total", "used", "avail"] {
        assert!(status.get(key).is_some(), "{key}");
    }
}
