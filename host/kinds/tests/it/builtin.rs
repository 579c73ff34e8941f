//! The kinds inside the binary.

use crate::components::limits;
use proxops_kinds::{Kinds, Sources};
use proxops_model::kind::{KindSet, Manifest};
use sha2::{Digest, Sha256};

#[test]
fn every_built_in_kind_loads_and_its_examples_validate() {
    let kinds = Kinds::load(&Sources::builtin(), limits(), None).unwrap();
    assert_eq!(kinds.problems(), []);
    let session = kinds.session();
    assert_eq!(session.all().len(), proxops_builtin::BUILTIN.len());
    for kind in session.all() {
        let info = kind.info();
        for example in &info.examples {
            let value: serde_json::Value = serde_json::from_str(example).unwrap();
            let manifest = Manifest {
                name: value["metadata"]["name"].as_str().unwrap().to_owned(),
                spec: value["spec"].to_string(),
                ..Manifest::default()
            };
            let answer = kind.validate(&manifest).unwrap();
            assert!(answer.validated.is_some(), "{}: {:?}", info.kind, answer.diagnostics);
        }
    }
}

#[test]
fn built_in_kinds_import_no_wasi() {
    for listing in Kinds::load(&Sources::builtin(), limits(), None).unwrap().list() {
        assert!(listing.imports.iter().all(|i| i.starts_with("proxops:kind/")), "{listing:?}");
    }
}

#[test]
fn digests_are_those_of_the_bytes() {
    for builtin in proxops_builtin::BUILTIN {
        assert_eq!(hex::encode(Sha256::digest(builtin.bytes)), builtin.sha256);
    }
}

#[test]
fn what_the_build_wrote_down_is_what_the_component_says() {
    let folder = crate::components::Folder::new();
    for builtin in proxops_builtin::BUILTIN {
        folder.file(&format!("{}.wasm", builtin.name), builtin.bytes);
    }
    // as files, they are asked
    let asked = folder.load();
    assert_eq!(asked.problems(), []);
    let known = Kinds::load(&Sources::builtin(), limits(), None).unwrap();
    assert_eq!(asked.infos().collect::<Vec<_>>(), known.infos().collect::<Vec<_>>());
}
