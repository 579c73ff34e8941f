//! Answers that PVE never gives, but proxies, firewalls and broken lines do: a clear error, no guess, no second guest.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{FaultAnswer, GuestKind, RequestFault, seed};
use serde_json::json;

fn bench() -> Bench {
    let mut world = seed::empty();
    let config = [("name", "old"), ("memory", "512"), ("cores", "1"), ("tags", "proxops")];
    world.add_guest(GuestKind::Qemu, 200, "pve01", &config);
    let mut bench = Bench::new(world);
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench
}

fn status(status: u16, message: &str) -> FaultAnswer {
    FaultAnswer::Status { status, message: message.to_owned(), errors: [].into(), effect: false }
}

fn always(method: &str, path: &str, answer: FaultAnswer) -> RequestFault {
    RequestFault { times: 0, ..RequestFault::once(method, path, answer) }
}

#[test]
fn an_inventory_that_is_no_inventory_aborts_the_cluster() {
    for (what, answer) in [
        ("a page of a proxy", FaultAnswer::Html),
        ("half an answer", FaultAnswer::Truncated),
        ("an error", status(500, "internal error")),
        ("not found", status(404, "Not Found")),
    ] {
        let bench = bench();
        bench.sim().inject(always("GET", "/cluster/resources", answer));
        let run = bench.diff().exits(1);
        let document = run.json();
        assert_eq!(document["clusters"][0]["state"], "aborted", "{what}: {run}");
        let error = document["clusters"][0]["error"].as_str().unwrap();
        assert!(!error.is_empty() && error.len() < 1000, "{what}: {error}");
        assert!(error.contains("/cluster/resources"), "{what}: it names the call: {error}");
        bench.apply().exits(1);
        assert!(bench.writes().is_empty(), "{what}");
        bench.run(&["status"]).exits(1);
    }
}

#[test]
fn a_guest_that_can_not_be_read_is_unknown_not_absent() {
    for (what, answer) in [
        ("a page of a proxy", FaultAnswer::Html),
        ("half an answer", FaultAnswer::Truncated),
        ("an error", status(500, "internal error")),
        ("an unreachable node", status(595, "No route to host")),
    ] {
        let bench = bench();
        bench.apply().exits(0);
        bench.writes();
        bench.sim().inject(always("GET", "/nodes/*/qemu/100/config", answer));
        let run = bench.diff();
        assert_eq!(run.actions(), [""; 0], "{what}: {run}");
        let unknown = run.list("unknown");
        assert_eq!(unknown.len(), 1, "{what}: {run}");
        assert_eq!(unknown[0]["name"], "web", "{what}: {run}");
        bench.apply();
        assert!(bench.writes().is_empty(), "{what}");
    }
}

#[test]
fn a_create_whose_answer_is_lost_makes_one_guest() {
    for (what, answer) in [
        ("the connection drops after it was done", FaultAnswer::DropAfter),
        ("the connection drops before it was done", FaultAnswer::DropBefore),
        ("half an answer", FaultAnswer::Truncated),
        ("a page of a proxy", FaultAnswer::Html),
        (
            "a timeout of the proxy after it was done",
            FaultAnswer::Status {
                status: 596,
                message: "Connection timed out".to_owned(),
                errors: [].into(),
                effect: true,
            },
        ),
    ] {
        let bench = bench();
        bench.sim().inject(RequestFault::once("POST", "/nodes/pve01/qemu", answer));
        let run = bench.apply();
        if run.code != 0 {
            // It may leave the rest to the next cycle, but says so.
            assert!(run.list("actions").iter().any(|a| a["error"].is_string()), "{what}: {run}");
            bench.apply().exits(0);
        }
        let guests: Vec<u32> = bench.world().guests.keys().copied().collect();
        assert_eq!(guests, [100], "{what}");
        assert_eq!(bench.world().guests[&100].name(), "web", "{what}");
        bench.converged();
    }
}

#[test]
fn refused_credentials_are_told_without_showing_them() {
    let mut bench = bench();
    bench.set("PROXOPS_PVE_TOKEN_VALUE", "gitops@pve!proxops=00000000-dead-beef-0000-000000000000");
    let run = bench.diff().exits(1);
    assert!(!run.stdout.contains("dead-beef") && !run.stderr.contains("dead-beef"), "{run}");
    assert_eq!(run.json()["clusters"][0]["state"], "aborted");
    let error = run.json()["clusters"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("401") || error.to_lowercase().contains("authenticat"), "{error}");
    bench.env.clear();
    let run = bench.diff().exits(1);
    assert_eq!(run.json()["clusters"][0]["state"], "aborted", "{run}");
    assert!(run.stdout.contains("PROXOPS_PVE_TOKEN_VALUE"), "it says what to set: {run}");
}

#[test]
fn a_server_whose_certificate_nobody_signed_is_not_talked_to() {
    let mut bench = Bench::tls(seed::empty());
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({}))]);
    bench.apply().exits(0);
    bench.converged();
    bench.sim().change_certificate(true).unwrap();
    let before = bench.sim().requests();
    let run = bench.diff().exits(1);
    assert_eq!(run.json()["clusters"][0]["state"], "aborted", "{run}");
    assert_eq!(bench.sim().requests(), before, "no request, so no credential, reached it");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let mut bench = bench();
    // Nobody listens on this port any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    bench.point_at(&format!("http://127.0.0.1:{port}"));
    let run = bench.diff().exits(1);
    assert!(run.json()["clusters"][0]["error"].as_str().unwrap().contains(&port.to_string()), "{run}");
}
