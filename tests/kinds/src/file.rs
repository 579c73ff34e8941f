//! Random specs of ISO, CTTemplate and DiskImage.

use crate::draw::{Draw, Fields};
use serde_json::{Value as Json, json};

/// An ISO.
pub fn iso(d: &mut Draw) -> Json {
    let mut f = common(d, &["a.iso", "b.ISO", "c.img", "debian-13_x.1.iso"]);
    f.may(d, "compression", |d| d.word(&["gz", "lzo", "zst", "bz2"]));
    finish(f)
}

/// A CTTemplate.
pub fn ct(d: &mut Draw) -> Json {
    finish(common(d, &["a.tar.gz", "b.tar.xz", "c.tar.zst", "d.tar.bz2", "e.tar"]))
}

/// A DiskImage.
pub fn image(d: &mut Draw) -> Json {
    finish(common(d, &["a.qcow2", "b.raw", "c.vmdk", "d.ova"]))
}

fn finish(f: Fields) -> Json {
    let mut spec = f.done();
    fix(&mut spec);
    spec
}

fn common(d: &mut Draw, names: &[&str]) -> Fields {
    let mut f = Fields::default();
    if d.coin() {
        f.must("node", d.word(&["pve01", "pve02"]));
    } else {
        let nodes = d.some(&["pve01", "pve02", "pve03"], 3);
        f.must("nodes", if nodes.is_empty() { json!(["pve01"]) } else { json!(nodes) });
    }
    f.must("storage", d.word(&["local", "nfs"])).must("filename", d.word(names));
    f.may(d, "url", |d| d.word(&["https://files.example.org/x?y=1&z=a;b", "http://files.example.org/x"]));
    f.may(d, "checksum", |d| {
        let (name, digits) = d.pick(&[
            ("md5", 32),
            ("sha1", 40),
            ("sha224", 56),
            ("sha256", 64),
            ("sha384", 96),
            ("sha512", 128),
        ]);
        let digit = d.pick(&["0", "a", "F"]);
        json!({ "algorithm": name, "value": digit.repeat(digits) })
    });
    f.may(d, "verify-certificates", Draw::flag);
    f
}

/// Makes a spec valid again: http needs a checksum, and `node` excludes `nodes`.
pub fn fix(spec: &mut Json) {
    if spec["nodes"].is_array()
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("node");
    }
    if !spec["nodes"].is_array() && !spec["node"].is_string() {
        spec["node"] = json!("pve01");
    }
    if !spec["checksum"].is_object() && spec["url"].as_str().is_some_and(|url| url.starts_with("http:")) {
        spec["url"] = json!("https://files.example.org/y");
    }
    // Two hash functions that were mixed have digits of one.
    let digits = match spec["checksum"]["algorithm"].as_str() {
        Some("md5") => 32,
        Some("sha1") => 40,
        Some("sha224") => 56,
        Some("sha256") => 64,
        Some("sha384") => 96,
        Some("sha512") => 128,
        _ => return,
    };
    let digit = spec["checksum"]["value"].as_str().and_then(|v| v.chars().next()).unwrap_or('0');
    spec["checksum"]["value"] = json!(digit.to_string().repeat(digits));
}
