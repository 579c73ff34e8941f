//! The same question has the same answer: in any order, in warm and in fresh instances.

use crate::report::Check;
use proxops_kinds::Kinds;
use proxops_model::kind::{
    Adopted, Context, Creation, DriftReport, KindApi, KindFault, KindInfo, KindSet, Live, Manifest, Refusal,
    Validation,
};
use std::sync::{Mutex, PoisonError};

/// Most calls that are kept.
const MOST: usize = 400;

enum Call {
    Validate(Manifest),
    Create(Manifest, Context),
    Drift(Manifest, Live, Context),
    Adopt(String, Live, Context, bool),
}

#[derive(PartialEq)]
enum Answer {
    Validate(Result<Validation, KindFault>),
    Create(Result<Creation, Refusal>),
    Drift(Result<DriftReport, Refusal>),
    Adopt(Result<Adopted, Refusal>),
}

impl Call {
    fn ask(&self, kind: &dyn KindApi) -> Answer {
        match self {
            Self::Validate(m) => Answer::Validate(kind.validate(m)),
            Self::Create(m, context) => Answer::Create(kind.create_params(m, context)),
            Self::Drift(m, live, context) => Answer::Drift(kind.drift(m, live, context)),
            Self::Adopt(name, live, context, secrets) => {
                Answer::Adopt(kind.adopt(name, live, context, *secrets))
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Validate(_) => "validate",
            Self::Create(..) => "create-params",
            Self::Drift(..) => "drift",
            Self::Adopt(..) => "adopt",
        }
    }
}

/// A kind whose calls are kept, with their answers.
pub(crate) struct Recorder<'a> {
    inner: &'a dyn KindApi,
    calls: Mutex<Vec<(Call, Answer)>>,
}

impl<'a> Recorder<'a> {
    pub fn new(inner: &'a dyn KindApi) -> Self {
        Self { inner, calls: Mutex::default() }
    }

    fn keep(&self, call: Call, answer: Answer) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() < MOST {
            calls.push((call, answer));
        }
    }
}

impl KindApi for Recorder<'_> {
    fn info(&self) -> &KindInfo {
        self.inner.info()
    }

    fn validate(&self, manifest: &Manifest) -> Result<Validation, KindFault> {
        let answer = self.inner.validate(manifest);
        self.keep(Call::Validate(manifest.clone()), Answer::Validate(answer.clone()));
        answer
    }

    fn create_params(&self, manifest: &Manifest, context: &Context) -> Result<Creation, Refusal> {
        let answer = self.inner.create_params(manifest, context);
        self.keep(Call::Create(manifest.clone(), context.clone()), Answer::Create(answer.clone()));
        answer
    }

    fn drift(&self, manifest: &Manifest, live: &Live, context: &Context) -> Result<DriftReport, Refusal> {
        let answer = self.inner.drift(manifest, live, context);
        self.keep(
            Call::Drift(manifest.clone(), live.clone(), context.clone()),
            Answer::Drift(answer.clone()),
        );
        answer
    }

    fn adopt(&self, name: &str, live: &Live, context: &Context, secrets: bool) -> Result<Adopted, Refusal> {
        let answer = self.inner.adopt(name, live, context, secrets);
        self.keep(
            Call::Adopt(name.to_owned(), live.clone(), context.clone(), secrets),
            Answer::Adopt(answer.clone()),
        );
        answer
    }
}

/// Asks all kept questions again: in the warm instance, and in reverse order in a fresh one.
pub(crate) fn check(kinds: &Kinds, recorder: &Recorder<'_>) -> Check {
    let mut check = Check::new("determinism");
    let calls = recorder.calls.lock().unwrap_or_else(PoisonError::into_inner);
    let session = kinds.session();
    let Some(fresh) = session.get(&recorder.info().kind) else {
        check.problem("it is not loaded any more");
        return check.done("nothing asked");
    };
    let mut differs = |call: &Call, how: &str| {
        let text = format!("{} answers differently {how}", call.name());
        if !check.problems.contains(&text) {
            check.problem(text);
        }
    };
    for (call, answer) in calls.iter() {
        if call.ask(recorder.inner) != *answer {
            differs(call, "when it is asked again");
        }
    }
    for (call, answer) in calls.iter().rev() {
        if call.ask(fresh) != *answer {
            differs(call, "in a fresh instance and another order");
        }
    }
    let done = format!("{} calls asked again, warm and fresh, in two orders", calls.len());
    check.done(done)
}
