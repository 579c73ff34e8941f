//! What kinds said in a cluster's last cycle. A kind is pure (03-kind-contract §1): the same manifest, live object and
//! context give the same answer. So a guest that nobody touched costs no call.

use proxops_kinds::Session;
use proxops_model::kind::{
    Adopted, Context, Creation, DriftReport, KindApi, KindFault, KindInfo, KindSet, Live, Manifest, Refusal,
    Validation,
};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// By the resource's name: what was asked, as a digest, and the answer.
type Answers = HashMap<String, (u64, DriftReport)>;

/// Answers of one cycle, by kind. They hold for the kinds that gave them and no others.
#[derive(Default)]
pub(crate) struct Answered(BTreeMap<String, Answers>);

/// The kinds of a session, with the answers of the cycle before.
pub(crate) struct Recall {
    kinds: BTreeMap<String, Recalled>,
}

struct Recalled {
    session: Arc<Session>,
    info: KindInfo,
    before: Arc<Answered>,
    now: Mutex<Answers>,
}

impl Recall {
    /// All kinds of the session.
    pub(crate) fn new(session: &Arc<Session>, before: &Arc<Answered>) -> Self {
        let one = |kind: &dyn KindApi| {
            let (session, before) = (Arc::clone(session), Arc::clone(before));
            let info = kind.info().clone();
            (info.kind.clone(), Recalled { session, info, before, now: Mutex::default() })
        };
        Self { kinds: session.all().into_iter().map(one).collect() }
    }

    /// What was answered now, for the next cycle. Resources that were not asked about are forgotten.
    pub(crate) fn answered(self) -> Answered {
        let now = |recalled: Recalled| recalled.now.into_inner().unwrap_or_else(PoisonError::into_inner);
        Answered(self.kinds.into_iter().map(|(name, recalled)| (name, now(recalled))).collect())
    }
}

impl KindSet for Recall {
    fn get(&self, kind: &str) -> Option<&dyn KindApi> {
        self.kinds.get(kind).map(|kind| kind as &dyn KindApi)
    }

    fn all(&self) -> Vec<&dyn KindApi> {
        self.kinds.values().map(|kind| kind as &dyn KindApi).collect()
    }
}

impl Recalled {
    fn kind(&self, function: &str) -> Result<&dyn KindApi, KindFault> {
        self.session.get(&self.info.kind).ok_or_else(|| KindFault {
            kind: self.info.kind.clone(),
            origin: String::new(),
            function: function.to_owned(),
            message: "it is not loaded".to_owned(),
        })
    }
}

impl KindApi for Recalled {
    fn info(&self) -> &KindInfo {
        &self.info
    }

    fn validate(&self, manifest: &Manifest) -> Result<Validation, KindFault> {
        self.kind("validate")?.validate(manifest)
    }

    fn create_params(&self, manifest: &Manifest, context: &Context) -> Result<Creation, Refusal> {
        self.kind("create-params").map_err(Refusal::Fault)?.create_params(manifest, context)
    }

    fn drift(&self, manifest: &Manifest, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        let asked = digest(manifest, live, context);
        let before = self.before.0.get(&self.info.kind).and_then(|answers| answers.get(&manifest.name));
        let report = match before.filter(|(then, _)| *then == asked) {
            Some((_, report)) => report.clone(),
            None => self.kind("drift").map_err(Refusal::Fault)?.drift(manifest, live, context)?,
        };
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.insert(manifest.name.clone(), (asked, report.clone()));
        Ok(report)
    }

    fn adopt(&self, name: &str, live: &Live, context: &Context, secrets: bool) -> Result<Adopted, Refusal> {
        self.kind("adopt").map_err(Refusal::Fault)?.adopt(name, live, context, secrets)
    }
}

/// Keyed anew in each process, so that nobody can aim at another question's digest. One question is compared with
/// one other, the same resource's of the cycle before: 64 bits are plenty.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

fn digest(manifest: &Manifest, live: &Live, context: &Context) -> u64 {
    KEY.hash_one((manifest, live, context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_model::kind::{LiveGuest, LivePower, LiveValue};

    fn live(memory: &str) -> Live {
        Live::Guest(Arc::new(LiveGuest {
            node: "pve01".to_owned(),
            vmid: 100,
            name: None,
            power: LivePower::Stopped,
            template: false,
            lock: None,
            values: [("memory".to_owned(), LiveValue::Text(memory.to_owned()))].into(),
            secrets_present: Vec::new(),
            hidden: Vec::new(),
            pending: Vec::new(),
            fresh_clone_of: None,
        }))
    }

    #[test]
    fn every_part_of_a_question_counts() {
        let manifest = |spec: &str| Manifest { spec: spec.to_owned(), ..Manifest::default() };
        let context = |cluster: &str| Context { cluster: cluster.to_owned(), ..Context::default() };
        let all = [
            digest(&manifest("{}"), &live("1"), &context("a")),
            digest(&manifest("{ }"), &live("1"), &context("a")),
            digest(&manifest("{}"), &live("2"), &context("a")),
            digest(&manifest("{}"), &live("1"), &context("b")),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(digest(&manifest("{}"), &live("1"), &context("a")), all[0]);
    }

    #[test]
    fn a_text_can_not_slip_into_its_neighbour() {
        let named = |name: &str, spec: &str| {
            let manifest = Manifest { name: name.to_owned(), spec: spec.to_owned(), ..Manifest::default() };
            digest(&manifest, &live("1"), &Context::default())
        };
        assert_ne!(named("ab", "c"), named("a", "bc"));
    }
}
