//! Random answers of components through the host's checks: nothing panics, and what is accepted keeps the
//! rules that the rest of the host relies on. `PROXOPS_FUZZ_ROUNDS` and `PROXOPS_FUZZ_SEED` set how many and which.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::bindings::proxops::kind::types as wit;
use crate::lift::{self, Lift};
use crate::limits::Limits;
use crate::steps::{self, Origin, Owner};
use crate::{describe, lift_steps};
use proxops_model::kind::{
    Identity, KindStep, Manifest, ObjectTarget, Ownership, ParamValue, Target, Validated,
};
use proxops_model::object;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// Texts that mean something to somebody.
const TEXTS: &[&str] = &[
    "",
    "a",
    "web",
    "VM",
    "Pool",
    "comment",
    "tags",
    "poolid",
    "delete",
    "digest",
    "vmid",
    "skiplock",
    "rename",
    "cipassword",
    "password",
    "ops",
    "description",
    "node",
    "id",
    "pos",
    "pve01",
    "proxops",
    "web;proxops",
    "proxops:proxops:Evil/web",
    "x\nproxops:proxops:Evil/web",
    "proxops:proxops:Pool/web",
    "/spec",
    "/spec/a",
    "/spec/list/0",
    "/spec/list/9",
    "/spec/password-ref",
    "/metadata/name",
    "/nope",
    "..",
    ".",
    "a/b",
    "a//b",
    "%2e%2e",
    "a?b=c",
    "a#b",
    "/pools",
    "/pools/{id}",
    "/pools/{id}/{pos}",
    "/access/users",
    "/nodes/{node}/qemu",
    "/pools/../access",
    "/",
    "{id}",
    "create",
    "update",
    "part",
    "a\0b",
    "\u{1b}[2J",
    "\u{202e}",
    "é",
    "{}",
    "[",
    "{\"kind\":\"Evil\"}",
    "proxops/v1alpha1",
    "iso",
    ".iso",
    "import",
    "evil",
    "clusters",
    "1.0",
];

struct Dice(StdRng);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0.random_range(0..most.max(1))
    }
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    fn text(&mut self) -> String {
        match self.below(20) {
            0 => (0..self.below(8)).map(|_| self.0.random::<char>()).collect(),
            1 => "x".repeat(self.below(600)),
            2 => format!("{}{}", TEXTS[self.below(TEXTS.len())], TEXTS[self.below(TEXTS.len())]),
            _ => TEXTS[self.below(TEXTS.len())].to_owned(),
        }
    }
    /// One of these, mostly.
    fn of(&mut self, texts: &[&str]) -> String {
        if self.one_in(6) { self.text() } else { texts[self.below(texts.len())].to_owned() }
    }
    fn maybe<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (!self.one_in(2)).then(|| f(self))
    }
    fn list<T>(&mut self, mut f: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| f(self)).collect()
    }
    fn at(&mut self) -> String {
        self.of(&["", "/spec", "/spec/a", "/spec/list/0", "/spec/password-ref", "/metadata/name"])
    }
    fn ext(&mut self) -> Vec<(String, String)> {
        if self.one_in(40) { vec![(self.text(), self.text())] } else { Vec::new() }
    }
    fn pairs(&mut self) -> Vec<(String, String)> {
        self.list(|d| (d.of(&["pos", "zone", "volid"]), d.of(&["0", "a", "pve01"])))
    }
    fn severity(&mut self) -> wit::Severity {
        [wit::Severity::Error, wit::Severity::Warning, wit::Severity::Info][self.below(3)]
    }

    fn diagnostic(&mut self) -> wit::Diagnostic {
        wit::Diagnostic {
            severity: self.severity(),
            code: self.of(&["bad", "other"]),
            at: self.at(),
            message: self.text(),
            help: self.maybe(Self::text),
            ext: self.ext(),
        }
    }

    fn placement(&mut self) -> wit::PlacementResult {
        let (node, storage) = (self.of(&["pve01"]), self.of(&["local"]));
        wit::PlacementResult { node, storage, filename: self.of(&["a.iso"]), ext: self.ext() }
    }

    fn identity(&mut self) -> wit::Identity {
        match self.below(12) {
            0 => wit::Identity::Other((self.text(), self.text())),
            1..=3 => wit::Identity::Guest(wit::GuestId {
                node: self.of(&["pve01"]),
                vmid: self.0.random_range(0..2000),
                name: self.maybe(Self::text),
                ext: self.ext(),
            }),
            4..=6 => wit::Identity::Artifact(self.list(Self::placement)),
            _ => {
                let (id, vars) = (self.of(&["web", "a/b", "vm:100"]), self.pairs());
                wit::Identity::Object(wit::ObjectIdResult { id, vars, ext: self.ext() })
            }
        }
    }

    fn validation(&mut self) -> wit::Validation {
        let validated = wit::Validated {
            identity: self.identity(),
            power: self.one_in(8).then_some(wit::Power::Running),
            references: self.list(|d| wit::Reference {
                to: wit::ResourceRefResult { kind: d.of(&["VM"]), name: d.of(&["web"]) },
                at: d.at(),
                ext: d.ext(),
            }),
            secrets: self.list(|d| wit::SecretUse {
                name: d.of(&["ops"]),
                class: if d.one_in(9) {
                    wit::SecretClass::Other(d.text())
                } else {
                    wit::SecretClass::Password
                },
                at: d.of(&["/spec/password-ref"]),
                ext: d.ext(),
            }),
            storages: self.list(|d| wit::StorageUse {
                storage: d.of(&["local"]),
                node: d.maybe(|d| d.of(&["pve01"])),
                content: d.of(&["", "iso"]),
                at: d.at(),
                ext: d.ext(),
            }),
            attributes: self.pairs(),
            incomplete: self.list(|d| wit::Hole { at: d.at(), why: d.text(), ext: d.ext() }),
            ext: self.ext(),
        };
        wit::Validation {
            validated: Some(validated),
            diagnostics: self.list(Self::diagnostic),
            ext: self.ext(),
        }
    }

    /// An honest answer for the target, but for one part or none.
    fn near_validation(&mut self, target: &Target) -> wit::Validation {
        let mut near = self.validation();
        if !self.one_in(4) {
            near.ext.clear();
            near.diagnostics.clear();
        }
        let Some(v) = &mut near.validated else { return near };
        v.ext.clear();
        v.identity = match target {
            Target::Guest { .. } => {
                let node = "pve01".to_owned();
                wit::Identity::Guest(wit::GuestId { node, vmid: 100, name: None, ext: Vec::new() })
            }
            Target::Artifact { .. } => wit::Identity::Artifact(vec![wit::PlacementResult {
                node: "pve01".to_owned(),
                storage: "local".to_owned(),
                filename: "a.iso".to_owned(),
                ext: Vec::new(),
            }]),
            Target::Object(_) => {
                let id = "web".to_owned();
                wit::Identity::Object(wit::ObjectIdResult { id, vars: Vec::new(), ext: Vec::new() })
            }
        };
        if !matches!(target, Target::Guest { .. }) {
            v.power = None;
        }
        let kept = self.below(12);
        let clear: [(usize, &mut dyn FnMut()); 5] = [
            (1, &mut || v.references.clear()),
            (2, &mut || v.secrets.clear()),
            (3, &mut || v.storages.clear()),
            (4, &mut || v.attributes.clear()),
            (5, &mut || v.incomplete.clear()),
        ];
        for (part, clear) in clear {
            if part != kept {
                clear();
            }
        }
        near
    }

    fn param(&mut self) -> wit::Param {
        let key =
            self.of(&["comment", "tags", "memory", "cipassword", "delete", "vms", "rename", "poolid", "env"]);
        let value = match self.below(12) {
            0 => wit::Value::Many(self.list(Self::text)),
            1 => wit::Value::Secret(self.of(&["ops", "root"])),
            2 if self.one_in(6) => wit::Value::Other((self.text(), self.text())),
            _ => wit::Value::Text(self.of(&["web;proxops", "x\nproxops:proxops:Evil/web", "1"])),
        };
        wit::Param { key, value, at: self.maybe(Self::at), ext: self.ext() }
    }

    fn refs(&mut self) -> Vec<wit::ParamRef> {
        self.list(|d| wit::ParamRef { key: d.of(&["comment", "tags", "balloon"]), at: None, ext: d.ext() })
    }

    fn step(&mut self) -> wit::Step {
        match self.below(16) {
            0 => wit::Step::Create(self.list(Self::param)),
            1 => wit::Step::Restore(self.list(Self::param)),
            2 => wit::Step::Clone(wit::CloneStep {
                source: wit::ResourceRefResult { kind: self.of(&["TemplateVM"]), name: self.of(&["base"]) },
                params: self.list(Self::param),
                ext: self.ext(),
            }),
            3..=5 => wit::Step::Configure(wit::ConfigureStep {
                set: self.list(Self::param),
                unset: self.refs(),
                revert: self.refs(),
                ext: self.ext(),
            }),
            6 => wit::Step::Resize(wit::ResizeStep {
                disk: self.of(&["scsi0"]),
                bytes: self.0.random(),
                at: self.at(),
                ext: self.ext(),
            }),
            7 => wit::Step::MarkTemplate,
            8 => wit::Step::RebuildCloudInit,
            9 => wit::Step::Download(wit::DownloadStep {
                to: self.placement(),
                params: self.list(Self::param),
                ext: self.ext(),
            }),
            10 if self.one_in(4) => wit::Step::Other((self.text(), self.text())),
            _ => wit::Step::Call(wit::CallStep {
                operation: self.of(&["create", "update", "part", "delete"]),
                vars: self.pairs(),
                set: self.list(Self::param),
                unset: self.refs(),
                ext: self.ext(),
            }),
        }
    }

    /// A call that is nearly right: most rounds differ from an honest one in one place or none.
    fn near_call(&mut self) -> wit::Step {
        let operation = self.of(&["create", "update", "part"]);
        let vars = if operation == "part" { vec![("pos".to_owned(), self.of(&["0", "1"]))] } else { vec![] };
        let mark = self.of(&["x\nproxops:proxops:Evil/web", "x proxops:proxops:Evil/web"]);
        let text = |key: &str, value: String| wit::Param {
            key: key.to_owned(),
            value: wit::Value::Text(value),
            at: None,
            ext: Vec::new(),
        };
        let mut set = vec![text("comment", mark)];
        if self.one_in(3) {
            set.push(self.param());
        }
        let unset = if self.one_in(6) { self.refs() } else { Vec::new() };
        wit::Step::Call(wit::CallStep { operation, vars, set, unset, ext: self.ext() })
    }

    fn report(&mut self) -> wit::DriftReport {
        let change = |d: &mut Self| wit::Change {
            at: d.at(),
            key: d.text(),
            before: d.maybe(Self::text),
            after: d.maybe(Self::text),
            sensitive: d.one_in(2),
            needs_stop: d.one_in(2),
            ext: d.ext(),
        };
        wit::DriftReport {
            changes: self.list(change),
            steps: self.list(Self::step),
            pending: self.list(change),
            anomalies: self.list(|d| wit::Anomaly {
                severity: d.severity(),
                code: d.of(&["odd"]),
                at: d.maybe(Self::at),
                key: d.maybe(Self::text),
                message: d.text(),
                help: d.maybe(Self::text),
                ext: d.ext(),
            }),
            ext: self.ext(),
        }
    }

    fn adopted(&mut self) -> wit::Adopted {
        wit::Adopted {
            labels: self.pairs(),
            annotations: self.pairs(),
            spec: self.of(&["{}", "{\"a\":1}"]),
            gaps: self.list(|d| wit::Gap {
                key: d.text(),
                value: d.maybe(Self::text),
                why: d.text(),
                ext: d.ext(),
            }),
            incomplete: self.list(|d| wit::Hole { at: d.at(), why: d.text(), ext: d.ext() }),
            new_public_keys: self.pairs(),
            masked_secrets: self.0.random(),
            ext: self.ext(),
        }
    }

    fn operation(&mut self) -> wit::Operation {
        use wit::Method::{Delete, Get, Post, Put};
        wit::Operation {
            name: self.of(&["create", "update", "part", "delete"]),
            method: [Get, Post, Put, Delete][self.below(4)],
            path: self.of(&["/pools", "/pools/{id}", "/pools/{id}/{pos}", "/nodes/{node}/network/{id}"]),
            id_param: self.maybe(|d| d.of(&["poolid"])),
            digest: self.one_in(2),
            part: self.one_in(3),
            ext: self.ext(),
        }
    }

    /// An object kind over pools, honest but for one operation or none.
    fn near_info(&mut self) -> wit::Info {
        use wit::Method::{Delete, Get, Post, Put};
        let operation = |name: &str, method, path: &str, part| wit::Operation {
            name: name.to_owned(),
            method,
            path: path.to_owned(),
            id_param: (!path.contains("{id}")).then(|| "poolid".to_owned()),
            digest: false,
            part,
            ext: Vec::new(),
        };
        let mut writes = vec![
            operation("create", Post, "/pools", false),
            operation("update", Put, "/pools/{id}", false),
            operation("part", Put, "/pools/{id}/{pos}", true),
            operation("delete", Delete, "/pools/{id}", false),
        ];
        if self.one_in(3) {
            writes.push(self.operation());
        }
        let ownership = wit::Ownership::Marker(wit::Marker { field: "comment".to_owned(), in_list: true });
        let (list, read) =
            (operation("list", Get, "/pools", false), operation("read", Get, "/pools/{id}", false));
        let id_field = "poolid".to_owned();
        let target = wit::Target::Object(wit::ObjectTarget {
            list,
            read,
            id_field,
            writes,
            ownership,
            ext: Vec::new(),
        });
        wit::Info {
            kind: "Evil".to_owned(),
            version: "1.0".to_owned(),
            api_versions: vec!["proxops/v1alpha1".to_owned()],
            root: "evil".to_owned(),
            summary: self.text(),
            target,
            schema: "{}".to_owned(),
            examples: vec!["{\"kind\":\"Evil\"}".to_owned()],
            ext: self.ext(),
        }
    }

    fn info(&mut self) -> wit::Info {
        let read = |d: &mut Self| wit::Operation { method: wit::Method::Get, ..d.operation() };
        let target = match self.below(8) {
            0 => wit::Target::Other((self.text(), self.text())),
            1 => wit::Target::Artifact(wit::ArtifactTarget {
                content: self.of(&["iso"]),
                extensions: self.list(|d| d.of(&[".iso"])),
                ext: self.ext(),
            }),
            _ => wit::Target::Object(wit::ObjectTarget {
                list: read(self),
                read: read(self),
                id_field: self.of(&["poolid"]),
                writes: self.list(Self::operation),
                ownership: match self.below(4) {
                    0 => wit::Ownership::None,
                    1 => wit::Ownership::Tags(self.of(&["tags"])),
                    _ => wit::Ownership::Marker(wit::Marker {
                        field: self.of(&["comment"]),
                        in_list: self.one_in(2),
                    }),
                },
                ext: self.ext(),
            }),
        };
        wit::Info {
            kind: self.of(&["Evil"]),
            version: self.of(&["1.0"]),
            api_versions: vec![self.of(&["proxops/v1alpha1"])],
            root: self.of(&["evil"]),
            summary: self.text(),
            target,
            schema: self.of(&["{}"]),
            examples: vec![self.of(&["{\"kind\":\"Evil\"}"])],
            ext: self.ext(),
        }
    }
}

fn manifest() -> Manifest {
    Manifest {
        name: "web".to_owned(),
        spec: r#"{"a":1,"list":[1],"password-ref":"ops"}"#.to_owned(),
        ..Manifest::default()
    }
}

fn plain(text: &str) -> bool {
    !text.contains('\0') && proxops_model::text::printable(text) == text
}

const OWNER: Owner<'static> = Owner { kind: "Evil", name: "web", tag: "proxops" };

/// What the rest of the host relies on, of an object kind's steps that were accepted.
fn object_rules(steps: &[KindStep], target: &ObjectTarget, validated: &Validated) {
    let Identity::Object(id) = &validated.identity else {
        panic!("an object kind with {:?}", validated.identity)
    };
    for step in steps {
        let KindStep::Call { operation, vars, set, unset } = step else {
            panic!("{step:?} of an object kind")
        };
        assert_ne!(operation, "delete");
        let write = target.writes.iter().find(|w| w.name == *operation).unwrap();
        let path = object::path(write, id, vars).unwrap();
        assert!(path.split('/').skip(1).all(object::is_segment), "{path}");
        // the object's id is in the request, and it is the manifest's
        let carried = write.path.contains("{id}") || write.id_param.is_some();
        assert!(carried && set.iter().all(|p| Some(&p.key) != write.id_param.as_ref()), "{step:?}");
        if let Ownership::Marker { field, .. } = &target.ownership {
            assert!(write.part || !unset.contains(field), "{step:?}");
            let marker = object::marker("proxops", "Evil", "web");
            for param in set.iter().filter(|p| p.key == *field && !write.part) {
                let ParamValue::Text(text) = &param.value else { panic!("{step:?}") };
                assert_eq!(object::markers(text), [marker.as_str()], "{step:?}");
            }
        }
    }
}

#[test]
fn random_answers_never_panic_and_what_is_accepted_keeps_the_rules() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|t| t.parse().ok()).unwrap_or(default);
    let rounds = number("PROXOPS_FUZZ_ROUNDS", 20_000);
    let mut dice = Dice(StdRng::seed_from_u64(number("PROXOPS_FUZZ_SEED", 7)));
    let limits = Limits::standard();
    let manifest = manifest();
    // how many of each were accepted: a fuzzer that only meets refusals shows nothing
    let (mut infos, mut validations, mut reports, mut calls, mut adoptions) = (0, 0, 0, 0, 0);
    let mut target = Target::Guest { guest_type: proxops_model::kind::GuestType::Qemu, template: false };
    for _ in 0..rounds {
        let info = if dice.one_in(2) { dice.near_info() } else { dice.info() };
        if let Ok(info) = lift_steps::info(info, &limits) {
            infos += 1;
            describe::check(&info).unwrap();
            assert!(plain(&info.kind) && plain(&info.root) && plain(&info.version), "{info:?}");
            target = info.target;
        }
        if dice.one_in(5) {
            target = Target::Guest { guest_type: proxops_model::kind::GuestType::Qemu, template: false };
        }
        let answer = if dice.one_in(2) { dice.near_validation(&target) } else { dice.validation() };
        let validation = Lift::new(&manifest, &limits).validation(answer, &target);
        let validated = match validation {
            Ok(validation) => {
                validations += 1;
                for d in &validation.diagnostics {
                    assert!(plain(&d.message) && plain(&d.code) && plain(&d.at), "{d:?}");
                }
                validation.validated
            }
            Err(_) => None,
        };
        if let Some(v) = &validated {
            assert!(
                v.secrets.iter().all(|s| s.name == "ops"),
                "only what the manifest lists: {:?}",
                v.secrets
            );
        }
        let mut answer = dice.report();
        if matches!(target, Target::Object(_)) && dice.one_in(2) {
            answer.steps = (0..1 + dice.below(2)).map(|_| dice.near_call()).collect();
        }
        if let Ok(report) = Lift::new(&manifest, &limits).report(answer) {
            reports += 1;
            let origin = if dice.one_in(2) { Origin::Create } else { Origin::Drift };
            let judged = steps::check(&report.steps, &target, origin, OWNER, validated.as_ref());
            if let (Ok(()), Target::Object(target), Some(v)) = (judged, &target, &validated)
                && !report.steps.is_empty()
            {
                calls += 1;
                object_rules(&report.steps, target, v);
            }
        }
        adoptions += u32::from(lift::adopted(dice.adopted(), "web", &limits).is_ok());
    }
    let least = |n: u64| u32::try_from(rounds / n).unwrap();
    assert!(
        infos > least(1000) && validations > least(100) && reports > least(100),
        "{infos} {validations} {reports}"
    );
    assert!(calls > least(10_000) && adoptions > least(100), "{calls} {adoptions}");
}
