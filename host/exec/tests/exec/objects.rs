//! Objects of third-party kinds: the wiring names the path, the executor does the rest.

use crate::support::*;
use futures::FutureExt;
use futures::future::BoxFuture;
use proxops_exec::{CallTarget, Replanned, Replanner};
use proxops_model::kind::{KindStep, Method, ObjectId, Pairs};
use proxops_model::plan::Subject;
use proxops_model::{Action, Outcome, ResourceId, Step, Verb};
use proxops_pve::Client;
use proxops_sim::{FaultAnswer, seed};
use std::sync::Arc;

/// Knows one pool: it should be there.
struct Pools(Client);

impl Pools {
    async fn is_there(&self) -> Result<bool, String> {
        let pools = self.0.get("/pools", &[]).await.map_err(|error| error.to_string())?;
        Ok(pools.data.as_array().is_some_and(|rows| rows.iter().any(|row| row["poolid"] == "web")))
    }
}

impl Replanner for Pools {
    fn replan<'a>(
        &'a self,
        _: &'a Action,
        _: Option<&'a ResourceId>,
    ) -> BoxFuture<'a, Result<Replanned, String>> {
        async { Ok(Replanned { present: self.is_there().await?, matches: true, ..Replanned::default() }) }
            .boxed()
    }

    fn resolve_call(&self, _: &Action, operation: &str, _: &Pairs) -> Result<CallTarget, String> {
        let method = match operation {
            "create" => Method::Post,
            "delete" => Method::Delete,
            other => return Err(format!("no {other}")),
        };
        Ok(CallTarget {
            method,
            path: "/pools".into(),
            id: Some(("poolid".into(), "web".into())),
            digest: false,
        })
    }
}

fn call(verb: Verb, operation: &str) -> Action {
    let step =
        KindStep::Call { operation: operation.into(), vars: Vec::new(), set: Vec::new(), unset: Vec::new() };
    let subject = Subject::Object { id: ObjectId { id: "web".into(), vars: Vec::new() } };
    let mut action = action(verb, 0, "web", vec![Step::Kind(step)]);
    (action.vmid, action.node, action.subject) = (None, None, Some(subject));
    action.kind = "Pool".into();
    action
}

async fn pools() -> Bench {
    let mut bench = bench(seed::empty()).await;
    bench.env.replanner = Arc::new(Pools(bench.client.clone()));
    bench
}

#[tokio::test]
async fn an_object_is_made_and_deleted_and_each_is_read_back() {
    let bench = pools().await;
    ok(&bench.run_one(call(Verb::Create, "create")).await);
    assert_eq!(bench.sent(0, "poolid").as_deref(), Some("web"));
    ok(&bench.run_one(call(Verb::Delete, "delete")).await);
    assert_eq!(bench.writes(), ["POST /pools", "DELETE /pools"]);
}

#[tokio::test]
async fn an_object_whose_answer_is_lost_is_looked_for_first() {
    let bench = pools().await;
    bench.fault("POST", "/pools", FaultAnswer::DropAfter);
    ok(&bench.run_one(call(Verb::Create, "create")).await);
    assert_eq!(bench.writes(), ["POST /pools"]);
    bench.fault("DELETE", "/pools", FaultAnswer::DropBefore);
    ok(&bench.run_one(call(Verb::Delete, "delete")).await);
    assert_eq!(bench.writes(), ["POST /pools", "DELETE /pools", "DELETE /pools"]);
}

#[tokio::test]
async fn an_operation_that_nobody_granted_is_not_sent() {
    let bench = pools().await;
    error(&bench.run_one(call(Verb::Update, "rename")).await, Outcome::Failed);
    assert_eq!(bench.writes(), [] as [&str; 0]);
}
