//! Tasks: facts U1 to U7, R14.

use std::time::Duration;

use proxops_sim::{Caller, TaskRule};

use crate::{Lab, VM, json};

#[test]
fn a_upid_has_its_shape_u1() {
    let mut lab = Lab::with_vm();
    let caller = Caller::token("root@pam", "proxops");
    let upid = lab.0.call(&caller, "POST", VM, json!({"cores": "1"})).unwrap();
    let parts: Vec<&str> = upid.as_str().unwrap().split(':').collect();
    assert_eq!(
        (parts[0], parts[1], parts[5], parts[6], parts[7], parts[8]),
        ("UPID", "pve01", "qmconfig", "101", "root@pam!proxops", "")
    );
    for (part, length) in [(2, 8), (3, 8), (4, 8)] {
        assert!(
            parts[part].len() == length
                && parts[part].chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
        );
    }
}

#[test]
fn status_and_log_u2_u5() {
    let mut lab = Lab::with_vm();
    lab.0.task_duration = Duration::from_secs(2);
    let upid = lab.ok("POST", "/nodes/pve01/qemu/101/status/start", json!({}));
    let path = format!("/nodes/pve01/tasks/{}", upid.as_str().unwrap());
    let status = lab.ok("GET", &format!("{path}/status"), json!({}));
    assert_eq!(status["status"], "running");
    assert!(status.get("exitstatus").is_none());
    assert_eq!(lab.ok("GET", &format!("{path}/log"), json!({})), json!([{"n": 1, "t": "no content"}]));
    lab.0.advance(Duration::from_secs(2));
    let status = lab.ok("GET", &format!("{path}/status"), json!({}));
    assert_eq!((&status["status"], &status["exitstatus"]), (&json!("stopped"), &json!("OK")));
    assert_eq!(
        lab.ok("GET", &format!("{path}/log"), json!({"limit": "0"})),
        json!([{"n": 1, "t": "TASK OK"}])
    );
}

#[test]
fn unknown_tasks_are_parameter_errors_r14() {
    let mut lab = Lab::new();
    let upid = "UPID:pve01:00000001:00000001:00000001:qmstart:101:root@pam:";
    assert_eq!(
        lab.param_error("GET", &format!("/nodes/pve01/tasks/{upid}/status"), json!({}), "upid"),
        "no such task"
    );
    assert_eq!(
        lab.param_error("GET", "/nodes/pve01/tasks/nonsense/status", json!({}), "upid"),
        "unable to parse worker upid"
    );
}

#[test]
fn lists_show_finished_tasks_unless_asked_otherwise_u6() {
    let mut lab = Lab::with_vm();
    lab.task("POST", VM, json!({"cores": "1"}));
    lab.task("PUT", "/nodes/pve01/qemu/101/resize", json!({"disk": "scsi9", "size": "1G"}));
    lab.0.task_duration = Duration::from_secs(60);
    lab.ok("POST", "/nodes/pve01/qemu/101/status/start", json!({}));
    let kinds = |lab: &mut Lab, params: serde_json::Value| {
        let rows = lab.ok("GET", "/nodes/pve01/tasks", params);
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", row["type"], row["status"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    let (resize, change) = ("resize disk 'scsi9' does not exist", "qmconfig OK");
    assert_eq!(kinds(&mut lab, json!({})), [resize, change], "newest first");
    assert_eq!(kinds(&mut lab, json!({"source": "active"})), ["qmstart RUNNING"]);
    assert_eq!(kinds(&mut lab, json!({"source": "all"})).len(), 3);
    assert_eq!(kinds(&mut lab, json!({"errors": "1"})), [resize]);
    assert_eq!(kinds(&mut lab, json!({"statusfilter": "ok"})), [change]);
    assert_eq!(kinds(&mut lab, json!({"typefilter": "resize", "limit": "1"})), [resize]);
}

#[test]
fn rules_make_tasks_fail_warn_or_hang() {
    let mut lab = Lab::with_vm();
    lab.0.task_rules.push(TaskRule::fail("qmstart", "start failed: QEMU exited with code 1"));
    let start = "/nodes/pve01/qemu/101/status/start";
    assert_eq!(lab.task("POST", start, json!({})), "start failed: QEMU exited with code 1");
    assert!(!lab.0.guests[&101].running);
    lab.0.task_rules.push(TaskRule {
        kind: "qmstart".into(),
        times: 1,
        exit: Some("WARNINGS: 1".into()),
        ..TaskRule::default()
    });
    assert_eq!(lab.task("POST", start, json!({})), "WARNINGS: 1", "U3");
    assert!(lab.0.guests[&101].running);
    lab.0.task_rules.push(TaskRule { kind: "qm*".into(), times: 1, hang: true, ..TaskRule::default() });
    let upid = lab.ok("POST", "/nodes/pve01/qemu/101/status/stop", json!({}));
    lab.0.advance(Duration::from_secs(3600));
    assert_eq!(lab.0.exit_status(&upid), None);
    lab.ok("DELETE", &format!("/nodes/pve01/tasks/{}", upid.as_str().unwrap()), json!({}));
    assert_eq!(lab.0.exit_status(&upid).as_deref(), Some("unexpected status"));
}

#[test]
fn a_rule_can_lose_or_keep_the_effect() {
    let mut lab = Lab::with_vm();
    lab.0.task_rules.push(TaskRule {
        kind: "qmstart".into(),
        times: 1,
        effect: Some(false),
        ..TaskRule::default()
    });
    assert_eq!(lab.task("POST", "/nodes/pve01/qemu/101/status/start", json!({})), "OK");
    assert!(!lab.0.guests[&101].running, "said OK and did nothing");
    lab.0.task_rules.push(TaskRule { effect: Some(true), ..TaskRule::fail("qmstart", "lost") });
    assert_eq!(lab.task("POST", "/nodes/pve01/qemu/101/status/start", json!({})), "lost");
    assert!(lab.0.guests[&101].running, "failed and did it all the same");
}
