//! What a file is, before anything of it is compiled: a component of this contract, or what else.

use wasmparser::{Encoding, Parser, Payload};

/// The contract that this host speaks, as in `wit/kind.wit`.
pub(crate) const CONTRACT: &str = "1.0.0";

/// The interface that a kind exports.
const API: &str = "proxops:kind/api";

/// Numbers of a released version; candidates have none.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let all = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(all)
}

/// Whether a component of this version of the contract runs here: every minor version up to this host's does, since
/// within a major version nothing changes that exists.
fn spoken(version: &str) -> bool {
    match (numbers(version), numbers(CONTRACT)) {
        (Some(theirs), Some(ours)) => theirs[0] == ours[0] && theirs[1] <= ours[1],
        _ => false,
    }
}

fn newer(version: &str) -> bool {
    numbers(version) > numbers(CONTRACT)
}

/// A component's surface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Names of its imports, sorted.
    pub imports: Vec<String>,
}

impl Shape {
    /// Whether it imports any WASI interface.
    pub(crate) fn wants_wasi(&self) -> bool {
        self.imports.iter().any(|name| name.starts_with("wasi:"))
    }
}

/// Reads the surface of a component.
///
/// # Errors
/// Why it is no kind, and what would be, as a sentence that starts with "it".
pub(crate) fn read(bytes: &[u8]) -> Result<Shape, String> {
    if bytes.starts_with(b"version https://git-lfs") {
        return Err("it is a pointer of a large-file store, not the file itself; fetch the file".to_owned());
    }
    if !bytes.starts_with(b"\0asm") {
        return Err("it is not WebAssembly (no \\0asm at its start)".to_owned());
    }
    let mut shape = Shape::default();
    let mut exports = Vec::new();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|e| format!("it is damaged: {e}"))?;
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(
                    "it is a core WebAssembly module, not a component; build it with `cargo build --target \
                     wasm32-wasip2`, or wrap it with a component encoder"
                        .to_owned(),
                );
            }
            // nested modules and components have an `End` of their own
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(reader) if depth == 0 => {
                for import in reader {
                    let import = import.map_err(|e| format!("it is damaged: {e}"))?;
                    shape.imports.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(reader) if depth == 0 => {
                for export in reader {
                    let export = export.map_err(|e| format!("it is damaged: {e}"))?;
                    exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    shape.imports.sort();
    shape.imports.dedup();
    accept(&shape, &exports)?;
    Ok(shape)
}

fn accept(shape: &Shape, exports: &[String]) -> Result<(), String> {
    let versions: Vec<&str> = exports.iter().filter_map(|e| e.strip_prefix(API)?.strip_prefix('@')).collect();
    if !versions.iter().any(|version| spoken(version)) {
        return Err(match versions.first() {
            Some(version) => format!(
                "it was built for version {} of the contract, this host speaks {CONTRACT}; {} against the wit/kind.wit of this version",
                crate::check::quote(version),
                if newer(version) { "a later proxops runs it, or build it" } else { "build it again" }
            ),
            None => format!("it is a component, but not a kind: it does not export {API}@{CONTRACT}"),
        });
    }
    let foreign: Vec<String> = shape
        .imports
        .iter()
        .filter(|i| !i.starts_with("wasi:") && !i.starts_with("proxops:kind/"))
        .map(|i| crate::check::quote(i))
        .collect();
    if !foreign.is_empty() {
        return Err(format!(
            "it imports {}, which a kind does not get; it may import proxops:kind/log (and WASI, which is empty)",
            foreign.join(", ")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_component_is_named() {
        assert!(read(b"hello").is_err_and(|e| e.contains("not WebAssembly")));
        assert!(read(b"\0asm\x01\0\0\0").is_err_and(|e| e.contains("core WebAssembly module")));
        assert!(read(b"\0asm\x0d\0\x01\0").is_err_and(|e| e.contains("does not export proxops:kind/api")));
        assert!(read(b"\0asm\x0d\0\x01\0\xff").is_err_and(|e| e.contains("damaged")));
    }

    #[test]
    fn a_kind_of_another_contract_is_named_with_both_versions() {
        let exports = vec!["proxops:kind/api@2.1.0".to_owned()];
        let error = accept(&Shape::default(), &exports).unwrap_err();
        assert!(error.contains("2.1.0") && error.contains(CONTRACT), "{error}");
    }

    #[test]
    fn all_released_versions_up_to_this_hosts_minor_are_spoken() {
        let [major, minor, _] = numbers(CONTRACT).unwrap();
        for version in [format!("{major}.0.0"), format!("{major}.{minor}.7")] {
            assert!(spoken(&version), "{version}");
        }
        let later = [format!("{major}.{}.0", minor + 1), format!("{}.0.0", major + 1)];
        for version in
            later.iter().map(String::as_str).chain(["1.0.0-rc.3", "0.9.0", "1.0", "1.0.0.0", "", "1.0.0+x"])
        {
            assert!(!spoken(version), "{version}");
        }
        let error = accept(&Shape::default(), &[format!("{API}@{}", later[0])]).unwrap_err();
        assert!(error.contains("a later proxops runs it"), "{error}");
    }

    #[test]
    fn an_import_that_no_kind_gets_is_named() {
        let shape = Shape { imports: vec!["evil:net/raw".into(), "wasi:cli/exit@0.2.0".into()] };
        let error = accept(&shape, &[format!("{API}@{CONTRACT}")]).unwrap_err();
        assert!(error.contains("evil:net/raw") && !error.contains("wasi:cli"), "{error}");
    }
}
