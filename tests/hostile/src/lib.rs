//! A kind that attacks its host. Built for WebAssembly by the tests of `host/kinds`; natively empty.
//!
//! Which attack: for `describe` a text in the component's data, which the test overwrites in the file
//! ("attack;kind;root"); for `adopt` the manifest's name; for the others `{"attack": "..."}` in the spec.
//! An attack that the function does not know is an honest, empty answer.

#![cfg(target_family = "wasm")]

mod answers;
mod attacks;
mod objects;
#[cfg(target_os = "wasi")]
mod snoop;

wit_bindgen::generate!({ path: "../../wit", world: "kind" });

use exports::proxops::kind::api::Guest;
use proxops::kind::types::*;

struct Hostile;
export!(Hostile);

/// Overwritten by tests, so never a constant to the compiler.
#[used]
static DESCRIBE: [u8; 64] = *b"@hostile@honest;Evil;evil                                      ;";

fn instructions() -> [String; 3] {
    let bytes: Vec<u8> =
        (9..63).map(|i| unsafe { std::ptr::read_volatile(DESCRIBE.as_ptr().add(i)) }).collect();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut parts = text.split(';').map(|p| p.trim().to_owned());
    [0; 3].map(|_| parts.next().unwrap_or_default())
}

fn attack_of(manifest: &Manifest) -> String {
    let after = manifest.spec.split("\"attack\":\"").nth(1).unwrap_or_default();
    after.split('"').next().unwrap_or_default().to_owned()
}

fn is_object() -> bool {
    instructions()[0].starts_with("object")
}

fn marker(manifest: &Manifest, context: &Context) -> String {
    format!("proxops:{}:{}/{}", context.owner_tag, instructions()[1], manifest.name)
}

impl Guest for Hostile {
    fn describe() -> Info {
        let [attack, kind, root] = instructions();
        attacks::anywhere(&attack);
        answers::info(&attack, kind, root)
    }

    fn validate(manifest: Manifest) -> Validation {
        let attack = attack_of(&manifest);
        attacks::anywhere(&attack);
        match is_object() {
            true => objects::validation(&attack),
            false => answers::validation(&attack),
        }
    }

    fn create_params(manifest: Manifest, context: Context) -> Result<Creation, Vec<Diagnostic>> {
        let attack = attack_of(&manifest);
        attacks::anywhere(&attack);
        if is_object() {
            return Ok(objects::creation(&attack, &marker(&manifest, &context)));
        }
        answers::creation(&attack)
    }

    fn drift(manifest: Manifest, _: Live, context: Context) -> Result<DriftReport, Vec<Diagnostic>> {
        let attack = attack_of(&manifest);
        attacks::anywhere(&attack);
        if is_object() {
            return Ok(objects::report(&attack, &marker(&manifest, &context)));
        }
        answers::report(&attack)
    }

    fn adopt(name: String, _: Live, _: Context, _: AdoptOptions) -> Result<Adopted, Vec<Diagnostic>> {
        attacks::anywhere(&name);
        answers::adopted(&name)
    }
}
