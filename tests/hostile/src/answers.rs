//! Answers that break the contract.

use crate::proxops::kind::types::*;

fn pairs(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), value.to_owned())]
}

/// `times` texts that all lie in the same `bytes` of memory: large for the host, small here.
fn aliased(bytes: usize, times: usize) -> Vec<String> {
    let text = "x".repeat(bytes);
    let (pointer, length) = (text.as_ptr().cast_mut(), text.len());
    std::mem::forget(text);
    (0..times).map(|_| unsafe { String::from_raw_parts(pointer, length, length) }).collect()
}

/// A text that lies outside of the memory.
fn outside() -> String {
    unsafe { String::from_raw_parts(0x7fff_0000 as *mut u8, 4096, 4096) }
}

/// A text that is not UTF-8.
fn broken() -> String {
    unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0x80]) }
}

/// A text for a message, by attack.
fn text(attack: &str) -> String {
    match attack {
        "large" => "x".repeat(8 * 1024 * 1024),
        "outside" => outside(),
        "utf8" => broken(),
        "nul" => "a\0b".to_owned(),
        "control" => "\u{1b}[2J\u{202e}gone".to_owned(),
        #[cfg(target_os = "wasi")]
        attack => crate::snoop::look(attack),
        #[cfg(not(target_os = "wasi"))]
        _ => "fine".to_owned(),
    }
}

fn diagnostic(attack: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        code: if attack == "code" { "Not Kebab" } else { "evil" }.to_owned(),
        at: match attack {
            "pointer" => "/spec/attack/0/deeper",
            "pointer-escape" => "/spec/~9",
            "pointer-index" => "/spec/list/7",
            _ => "",
        }
        .to_owned(),
        message: text(attack),
        help: None,
        ext: if attack == "ext" { pairs("repaint", "1") } else { Vec::new() },
    }
}

fn diagnostics(attack: &str) -> Vec<Diagnostic> {
    match attack {
        "gigabytes" => aliased(1024 * 1024, 2048)
            .into_iter()
            .map(|message| Diagnostic { message, ..diagnostic("") })
            .collect(),
        "items" => (0..30_000)
            .map(|_| Diagnostic { code: "x".into(), message: String::new(), ..diagnostic("") })
            .collect(),
        _ => vec![diagnostic(attack)],
    }
}

pub fn info(attack: &str, kind: String, root: String) -> Info {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    let guest = || Target::Guest(GuestTarget { guest_type: GuestType::Qemu, template: false, ext: vec![] });
    let operation = |method, path: &str| Operation {
        name: "op".into(),
        method,
        path: path.into(),
        id_param: None,
        digest: false,
        ext: vec![],
    };
    Info {
        version: match attack {
            "flip" => format!("1.{calls}"),
            attack @ ("large" | "outside" | "utf8" | "nul" | "control") => text(attack),
            _ => "1.0".into(),
        },
        api_versions: vec!["proxops/v1alpha1".into()],
        summary: "attacks".into(),
        target: match attack {
            "other" => Target::Other(("quantum".into(), "{}".into())),
            "artifact" => Target::Artifact(ArtifactTarget {
                content: "iso".into(),
                extensions: vec![".iso".into()],
                ext: vec![],
            }),
            "object" | "access" | "dots" => Target::Object(ObjectTarget {
                list: operation(Method::Get, "/pools"),
                read: operation(Method::Get, "/pools/{id}"),
                id_field: "poolid".into(),
                writes: vec![operation(
                    Method::Put,
                    match attack {
                        "access" => "/access/users/{id}",
                        "dots" => "/pools/../access/users",
                        _ => "/pools/{id}",
                    },
                )],
                ownership: Ownership::None,
                ext: vec![],
            }),
            _ => guest(),
        },
        schema: if attack == "schema" { "{".into() } else { r#"{"type":"object"}"#.into() },
        examples: if attack == "items" {
            (0..30_000).map(|_| "{}".to_owned()).collect()
        } else {
            vec![format!(r#"{{"kind":"{kind}"}}"#)]
        },
        ext: if attack == "ext" { pairs("repaint", "1") } else { Vec::new() },
        kind: if attack == "kind" { "../VM".into() } else { kind },
        root: if attack == "root" { "clusters".into() } else { root },
    }
}

pub fn validation(attack: &str) -> Validation {
    let guest = GuestId { node: "n1".into(), vmid: 100, name: None, ext: vec![] };
    let file = |filename: &str| Placement {
        node: "n1".into(),
        storage: "local".into(),
        filename: filename.into(),
        ext: vec![],
    };
    let secret = |name: &str| SecretUse {
        name: name.into(),
        class: SecretClass::Password,
        at: "/spec/password-ref".into(),
        ext: vec![],
    };
    let validated = Validated {
        identity: match attack {
            "identity" => Identity::Object(ObjectId { id: "x".into(), vars: vec![], ext: vec![] }),
            "identity-other" => Identity::Other(("x".into(), "{}".into())),
            "download" => Identity::Artifact(vec![file("own.iso")]),
            "filename" => Identity::Artifact(vec![file("../../etc/passwd")]),
            "vmid" => Identity::Guest(GuestId { vmid: 1, ..guest }),
            "node" => Identity::Guest(GuestId { node: "n1/../n2".into(), ..guest }),
            _ => Identity::Guest(guest),
        },
        power: None,
        references: vec![],
        secrets: match attack {
            "secret-listed" | "secret-unlisted" | "secret-readable" => vec![secret("ops")],
            "secret-invented" => vec![secret("root.password")],
            _ => vec![],
        },
        storages: vec![],
        attributes: vec![],
        incomplete: vec![],
        ext: vec![],
    };
    Validation {
        validated: (attack != "nothing").then_some(validated),
        diagnostics: if attack == "nothing" { vec![] } else { diagnostics(attack) },
        ext: vec![],
    }
}

fn param(key: &str, value: Value) -> Param {
    Param { key: key.into(), value, at: None, ext: vec![] }
}

fn steps(attack: &str) -> Vec<Step> {
    let configure = |set: Vec<Param>, unset: &[&str]| {
        let unset = unset.iter().map(|k| ParamRef { key: (*k).into(), at: None, ext: vec![] }).collect();
        Step::Configure(ConfigureStep { set, unset, revert: vec![], ext: vec![] })
    };
    let text = |value: &str| Value::Text(value.to_owned());
    let download = |filename: &str| {
        let to =
            Placement { node: "n1".into(), storage: "local".into(), filename: filename.into(), ext: vec![] };
        Step::Download(DownloadStep { to, params: vec![], ext: vec![] })
    };
    match attack {
        "vmid" => vec![configure(vec![param("vmid", text("999"))], &[])],
        "skiplock" => vec![configure(vec![param("skiplock", text("1"))], &[])],
        "drop-tag" => vec![configure(vec![param("tags", text("mine"))], &[])],
        "unset-tag" => vec![configure(vec![], &["tags"])],
        "step-nul" => vec![configure(vec![param("description", text("a\0b"))], &[])],
        "step-env" => vec![configure(vec![param("env", text("A=1\0B=2"))], &[])],
        "step-other" => vec![Step::Other(("reboot-node".into(), "{}".into()))],
        "value-other" => vec![configure(vec![param("memory", Value::Other(("x".into(), "{}".into())))], &[])],
        "call" => vec![Step::Call(CallStep {
            operation: "op".into(),
            vars: vec![],
            set: vec![],
            unset: vec![],
            ext: vec![],
        })],
        "secret-listed" => vec![configure(vec![param("cipassword", Value::Secret("ops".into()))], &[])],
        "secret-unlisted" => {
            vec![configure(vec![param("cipassword", Value::Secret("root.password".into()))], &[])]
        }
        "secret-readable" => vec![configure(vec![param("description", Value::Secret("ops".into()))], &[])],
        "download" => vec![download("own.iso"), download("other.iso")],
        _ => vec![],
    }
}

pub fn creation(attack: &str) -> Result<Creation, Vec<Diagnostic>> {
    if attack == "refuse-silently" {
        return Err(vec![]);
    }
    let steps = match attack {
        "untagged" => vec![Step::Create(vec![param("memory", Value::Text("512".into()))])],
        _ => steps(attack),
    };
    Ok(Creation { steps, warnings: diagnostics(attack), anomalies: vec![], ext: vec![] })
}

pub fn report(attack: &str) -> Result<DriftReport, Vec<Diagnostic>> {
    if attack == "refuse-silently" {
        return Err(vec![]);
    }
    let change = Change {
        at: match attack {
            "pointer" => "nowhere".into(),
            "outside" => outside(),
            _ => "".into(),
        },
        key: "description".into(),
        before: None,
        after: Some(text(attack)),
        sensitive: false,
        needs_stop: false,
        ext: if attack == "ext" { pairs("repaint", "1") } else { vec![] },
    };
    let changes = match attack {
        "gigabytes" => aliased(1024 * 1024, 2048)
            .into_iter()
            .map(|t| Change { after: Some(t), ..change.clone() })
            .collect(),
        "items" => {
            (0..30_000).map(|_| Change { after: None, key: String::new(), ..change.clone() }).collect()
        }
        _ => vec![change],
    };
    Ok(DriftReport { changes, steps: steps(attack), pending: vec![], anomalies: vec![], ext: vec![] })
}

pub fn adopted(attack: &str) -> Result<Adopted, Vec<Diagnostic>> {
    if attack == "refuse-silently" {
        return Err(vec![]);
    }
    let gap = |value| Gap { key: "args".into(), value: Some(value), why: "no field".into(), ext: vec![] };
    Ok(Adopted {
        labels: vec![],
        annotations: vec![],
        spec: match attack {
            "json" => "{\"a\":".into(),
            "deep" => format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100)),
            _ => "{}".into(),
        },
        gaps: match attack {
            "gigabytes" => aliased(1024 * 1024, 2048).into_iter().map(gap).collect(),
            "items" => (0..30_000).map(|_| gap(String::new())).collect(),
            _ => vec![gap(text(attack))],
        },
        incomplete: match attack {
            "pointer" => vec![Hole { at: "/status".into(), why: "x".into(), ext: vec![] }],
            _ => vec![],
        },
        new_public_keys: vec![],
        masked_secrets: 0,
        ext: if attack == "ext" { pairs("repaint", "1") } else { vec![] },
    })
}
