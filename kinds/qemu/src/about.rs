//! What the kinds say of themselves.

use proxops_kind::{API_VERSION, About, Target};
use serde_json::{Map, Value};

/// VM or TemplateVM.
pub fn about(template: bool) -> About {
    let (kind, root, summary) = if template {
        ("TemplateVM", "templatevm", "A virtual machine marked as a template, for VMs to be cloned from")
    } else {
        ("VM", "vm", "A virtual machine")
    };
    let mut about = About::new(kind, env!("CARGO_PKG_VERSION"), root, summary, Target::qemu(template));
    about.examples = examples(kind, template);
    about
}

/// The files hold specs of a VM; a template has other numbers and never runs.
fn examples(kind: &str, template: bool) -> Vec<Value> {
    let mut files = vec![
        ("minimal", include_str!("examples/minimal.json")),
        ("full", include_str!("examples/full.json")),
    ];
    if !template {
        files.push(("clone", include_str!("examples/clone.json")));
    }
    files
        .into_iter()
        .enumerate()
        .map(|(i, (name, text))| {
            let mut spec: Value = serde_json::from_str(text).unwrap_or_default();
            if template && let Some(spec) = spec.as_object_mut() {
                spec.insert("vmid".to_owned(), (9000 + i).into());
                spec.insert("state".to_owned(), "stopped".into());
            }
            let mut whole = Map::new();
            whole.insert("apiVersion".to_owned(), API_VERSION.into());
            whole.insert("kind".to_owned(), kind.into());
            whole.insert(
                "metadata".to_owned(),
                Map::from_iter([("name".to_owned(), Value::from(name))]).into(),
            );
            whole.insert("spec".to_owned(), spec);
            whole.into()
        })
        .collect()
}
