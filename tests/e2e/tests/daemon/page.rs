//! The page in a real browser. `PROXOPS_SCREENSHOTS=<folder>` keeps pictures to look at.

use super::{add_cluster, cycles, settings};
use crate::support::vm;
use proxops_e2e::{Bench, Browser, CLUSTER, Daemon};
use proxops_sim::{GuestKind, TaskRule, seed};
use serde_json::json;
use std::time::Duration;

/// An estate with something of everything: converged, drift, create, delete, anomalies, a failing cluster.
fn estate(interval: &str) -> (Bench, Bench) {
    let mut world = seed::empty();
    world.add_guest(
        GuestKind::Qemu,
        300,
        "pve02",
        &[("name", "old-01"), ("tags", "proxops"), ("memory", "512")],
    );
    world.add_guest(GuestKind::Qemu, 9000, "pve01", &[("name", "somebody-elses"), ("memory", "512")]);
    let mut bench = Bench::new(world);
    settings(&bench, &format!("reconcile: {{poll-interval: {interval}}}\n"));
    let all: Vec<_> = (0..12).map(|n| vm(&format!("web-{n:02}"), 100 + n, json!({}))).collect();
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &all);
    bench.apply().exits(0);
    bench.meddle("PUT", "/nodes/pve01/qemu/100/config", json!({"memory": "4096", "cores": "8"}));
    bench.world().add_guest(
        GuestKind::Qemu,
        301,
        "pve02",
        &[("name", "old-02"), ("tags", "proxops"), ("memory", "512")],
    );
    bench.documents(
        &format!("vm/{CLUSTER}/more.yaml"),
        &[
            vm("db-01", 9000, json!({})),
            vm("api-01", 150, json!({"memory": "4GiB", "pve-description": "<b>bold</b> & \"quoted\""})),
        ],
    );
    let other = Bench::new(seed::empty());
    add_cluster(&bench, "edge", "http://127.0.0.1:1", "resources: []\n");
    add_cluster(&bench, "lab-2", &other.url(), "resources: []\n");
    (bench, other)
}

fn url(daemon: &Daemon, path: &str) -> String {
    format!("http://{}{path}", daemon.address)
}

#[test]
fn the_page_shows_clusters_objects_drift_and_deletes_with_and_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    let (bench, _other) = estate("1h");
    let daemon = Daemon::start(&bench, &["--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) == 1);
    daemon.until("edge", "looked at", |c| cycles(c) == 1);
    for scripts in [false, true] {
        browser.scripts(scripts);
        let with = if scripts { "scripts" } else { "plain" };
        browser.go(&url(&daemon, "/"));
        let text = browser.eval("document.body.innerText").as_str().unwrap().to_owned();
        for word in ["lab", "edge", "aborted", "converged", "db-01", "web-00", "drift", "desired"] {
            assert!(text.contains(word), "{with}: {word} is not on the page:\n{text}");
        }
        browser.screenshot(&format!("overview-{with}"));
        browser.go(&url(&daemon, "/clusters/lab"));
        let text = browser.eval("document.body.innerText").as_str().unwrap().to_owned();
        for word in ["DELETE", "old-02", "to DELETE", "What to do", "api-01"] {
            assert!(text.contains(word), "{with}: {word} is not on the page:\n{text}");
        }
        browser.screenshot(&format!("cluster-{with}"));
        // One object, field by field, reached by a click.
        browser
            .eval("[...document.querySelectorAll('a')].find(a => a.textContent.includes('web-00')).click()");
        browser.until("the object's page", "document.title.includes('VM/web-00')");
        let text = browser.eval("document.body.innerText").as_str().unwrap().to_owned();
        for word in ["/spec/memory", "4096", "512", "/spec/cpu/cores", "8"] {
            assert!(text.contains(word), "{with}: {word} is not on the page:\n{text}");
        }
        browser.screenshot(&format!("object-{with}"));
        // Without scripts the filter is a form.
        browser.go(&url(&daemon, "/?q=web-1&state=open"));
        let rows = "document.querySelectorAll('[data-live=objects] tbody tr').length";
        assert_eq!(browser.eval(rows), 0, "web-10 and web-11 are converged");
        browser.go(&url(&daemon, "/?q=web-1"));
        assert_eq!(browser.eval(rows), 2);
    }
    assert!(bench.writes().iter().all(|w| w.path.contains("qemu")), "looking writes nothing");
}

#[test]
fn the_page_is_live_filters_as_one_types_and_keeps_the_keyboards_place() {
    let Some(mut browser) = Browser::start() else { return };
    let (bench, _other) = estate("1s");
    let daemon = Daemon::start(&bench, &["--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) >= 1);
    browser.go(&url(&daemon, "/"));
    browser.until("live", "document.querySelector('.live')?.textContent === 'live'");
    let rows = "document.querySelectorAll('[data-live=objects] tbody tr').length";
    browser.key("/", "/");
    assert_eq!(browser.eval("document.activeElement.name"), "q", "the slash leads to the search");
    for c in "db-0".chars() {
        browser.key(&c.to_string(), &c.to_string());
    }
    browser.until("filtered", &format!("{rows} === 1"));
    assert_eq!(browser.eval("document.activeElement.value"), "db-0", "the search keeps its text and place");
    assert_eq!(browser.eval("new URLSearchParams(location.search).get('q')"), "db-0");
    // Something changes behind PVE's back: it appears by itself.
    browser.go(&url(&daemon, "/?state=drift&q=web"));
    browser.until("one drifts", &format!("{rows} === 1"));
    bench.meddle("PUT", "/nodes/pve01/qemu/101/config", json!({"memory": "2048"}));
    browser.until("the second appears by itself", &format!("{rows} === 2"));
    // The focus stays on its link through an update.
    browser.eval("document.querySelector('[data-live=objects] a').focus()");
    let place = browser.eval("document.activeElement.getAttribute('href')");
    bench.meddle("PUT", "/nodes/pve01/qemu/102/config", json!({"memory": "2048"}));
    browser.until("the third appears", &format!("{rows} === 3"));
    assert_eq!(browser.eval("document.activeElement.getAttribute('href')"), place);
}

#[test]
fn running_actions_show_on_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let mut world = seed::empty();
    world.task_duration = Duration::from_secs(3600);
    let mut bench = Bench::new(world);
    settings(&bench, "reconcile: {poll-interval: 1h}\n");
    let all: Vec<_> = (0..6).map(|n| vm(&format!("web-{n:02}"), 100 + n, json!({}))).collect();
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &all);
    bench
        .world()
        .task_rules
        .push(TaskRule { id: Some("100".into()), ..TaskRule::fail("qmcreate", "no space left on device") });
    let daemon = Daemon::start(&bench, &[]);
    daemon.until(CLUSTER, "creating", |c| c["running"][0]["upid"].is_string());
    browser.go(&url(&daemon, "/"));
    let text = browser.eval("document.body.innerText").as_str().unwrap().to_owned();
    assert!(text.contains("UPID:pve01:") && text.contains("running"), "{text}");
    browser.screenshot("running");
    {
        let mut world = bench.world();
        world.task_duration = Duration::ZERO;
        world.advance(Duration::from_secs(7200));
    }
    daemon.until(CLUSTER, "done", |c| cycles(c) == 1);
    browser.go(&url(&daemon, "/clusters/lab/objects/VM/web-00"));
    let text = browser.eval("document.body.innerText").as_str().unwrap().to_owned();
    assert!(text.contains("failed") && text.contains("no space left on device"), "{text}");
    browser.screenshot("failed");
}

/// Contrast of text and its background by the formula of WCAG, for every visible text.
const CONTRAST: &str = r"(() => {
  const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => {
    const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || e.closest('.hidden, .skip, [hidden], script')) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${e.className || e.tagName}: ${walk.currentNode.textContent.trim().slice(0, 40)}`);
  }
  return bad;
})()";

#[test]
fn the_page_is_readable_in_the_dark_and_fits_a_narrow_screen() {
    let Some(mut browser) = Browser::start() else { return };
    let (bench, _other) = estate("1h");
    let daemon = Daemon::start(&bench, &["--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) == 1);
    daemon.until("edge", "looked at", |c| cycles(c) == 1);
    for (dark, width) in [(false, 1280), (true, 1280), (false, 360), (true, 360)] {
        browser.dark(dark);
        browser.size(width, 800);
        for (name, path) in [
            ("overview", "/"),
            ("cluster", "/clusters/lab"),
            ("object", "/clusters/lab/objects/VM/web-00"),
            ("aborted", "/clusters/edge"),
        ] {
            browser.go(&url(&daemon, path));
            let shown = format!("{name}-{}-{width}", if dark { "dark" } else { "light" });
            let bad = browser.eval(CONTRAST);
            assert_eq!(bad, json!([]), "{shown}: too little contrast");
            let wide = browser.eval("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{shown}: {wide} pixels wide");
            browser.screenshot(&shown);
        }
    }
    // Everything that can be clicked has a name, and there is one heading of the first order.
    browser.go(&url(&daemon, "/"));
    let nameless = "[...document.querySelectorAll('a, button, input, select')].filter(e => !(e.textContent.trim() || e.labels?.length || e.getAttribute('aria-label'))).length";
    assert_eq!(browser.eval(nameless), 0);
    assert_eq!(browser.eval("document.querySelectorAll('h1').length"), 1);
    assert_eq!(browser.eval("document.querySelectorAll('table:not(:has(caption))').length"), 0);
}

#[test]
fn html_of_strangers_does_not_run() {
    let Some(mut browser) = Browser::start() else { return };
    let mut bench = Bench::new(seed::empty());
    settings(&bench, "reconcile: {poll-interval: 1h}\n");
    let evil = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">";
    bench.documents(&format!("vm/{CLUSTER}/web.yaml"), &[vm("web", 100, json!({"pve-description": evil}))]);
    let daemon = Daemon::start(&bench, &["--observe"]);
    daemon.until(CLUSTER, "looked at", |c| cycles(c) == 1);
    for path in
        ["/clusters/lab", "/clusters/lab/objects/VM/web", "/?q=<script>document.title='pwned'</script>"]
    {
        browser.go(&url(&daemon, &path.replace('<', "%3C").replace('>', "%3E")));
        browser.until("live", "document.querySelector('.live')?.textContent === 'live'");
        assert_ne!(browser.eval("document.title"), "pwned", "{path}");
        assert_eq!(browser.eval("document.images.length"), 0, "{path}");
        // Even a script that got in would not run.
        browser.eval(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')",
        );
        std::thread::sleep(Duration::from_millis(300));
        assert_ne!(browser.eval("document.title"), "1", "{path}");
    }
}
