//! `history`: who did what, when, and how it ended.

use crate::support::vm;
use proxops_e2e::{Bench, CLUSTER};
use proxops_sim::{TaskRule, seed};
use serde_json::{Value, json};

fn operations(bench: &Bench, words: &[&str]) -> Vec<Value> {
    let mut all = vec!["history", "-o", "json"];
    all.extend(words);
    let document = bench.run(&all).exits(0).json();
    assert_eq!(document["format"], "proxops.history/v1");
    document["operations"].as_array().unwrap().clone()
}

#[test]
fn every_action_is_found_again_newest_first() {
    let mut bench = Bench::new(seed::empty());
    bench.set("USER", "ops");
    assert!(operations(&bench, &[]).is_empty());
    bench.run(&["history"]).exits(0).says("nothing was done yet");
    assert!(!bench.data_dir().join("journal.sqlite3").exists(), "looking makes no journal");

    bench.documents(&format!("vm/{CLUSTER}/a.yaml"), &[vm("one", 100, json!({"state": "started"}))]);
    bench.apply().exits(0);
    bench.world().task_rules.push(TaskRule::fail("qmcreate", "unable to create VM 101 - no luck"));
    bench.documents(&format!("vm/{CLUSTER}/b.yaml"), &[vm("two", 101, json!({}))]);
    bench.apply().exits(1);
    bench.unlist(&format!("vm/{CLUSTER}/a.yaml"));
    bench.apply().exits(0);

    let all = operations(&bench, &[]);
    let told: Vec<(String, &str)> = all
        .iter()
        .map(|o| {
            (
                format!("{} {}/{}", o["verb"], o["kind"], o["name"]).replace('"', ""),
                o["result"].as_str().unwrap(),
            )
        })
        .collect();
    let (newest, oldest) = (&told[..told.len() - 2], &told[told.len() - 2..]);
    assert_eq!(oldest, [("create VM/two".into(), "failed"), ("create VM/one".into(), "ok")]);
    assert!(
        newest.contains(&("delete VM/one".into(), "ok")) && newest.contains(&("create VM/two".into(), "ok"))
    );
    let failed = &all[all.len() - 2];
    assert!(failed["error"].as_str().unwrap().contains("no luck"), "{failed}");
    assert!(failed["who"].as_str().unwrap().starts_with("ops@"), "{failed}");
    assert_eq!(
        (&failed["cluster"], &failed["node"], &failed["vmid"]),
        (&json!(CLUSTER), &json!("pve01"), &json!(101))
    );
    assert!(failed["upids"][0].as_str().unwrap().contains(":qmcreate:101:"), "{failed}");
    for field in ["started", "finished"] {
        assert!(failed[field].as_str().unwrap().ends_with('Z'), "{failed}");
    }

    assert_eq!(operations(&bench, &["VM/one"]).len(), 2);
    assert_eq!(operations(&bench, &["one", "--limit", "1"])[0]["verb"], "delete");
    assert_eq!(operations(&bench, &["--vmid", "101"]).len(), 2);
    assert!(operations(&bench, &["--cluster", "other"]).is_empty());
    bench.run(&["history"]).exits(0).says("create VM/two").says("no luck");
    bench.run(&["history", "VM/tow"]).exits(0).says("nothing was done to VM/tow; did you mean VM/two?");
    bench.run(&["history", "--cluster", "lba"]).exits(0).says(&format!("did you mean {CLUSTER}?"));
    bench.run(&["history", "one", "--vmid", "101"]).exits(0).says("nothing was done that fits");
}
