//! What one run of the binary gave.

use proxops_sim::seed;
use serde_json::Value;
use std::process::Output;

/// Exit code and output of one run.
#[derive(Debug)]
pub struct Run {
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// From what the system gives. Panics on what no run may do: panic, or tell a secret.
    pub fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let run = Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        };
        // A kind may panic, and its words are told in a line of the log; the host may not.
        let panicked = |line: &str| line.starts_with("thread '") && line.contains("panicked at");
        assert!(!run.stderr.lines().any(panicked), "{run}");
        for secret in [seed::TOKEN_SECRET, seed::ROOT_PASSWORD] {
            assert!(
                !run.stdout.contains(secret) && !run.stderr.contains(secret),
                "a secret is in the output: {run}"
            );
        }
        run
    }

    /// The exit code must be this.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// Standard error, or standard output, must hold this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text) || self.stderr.contains(text), "{text:?} is not said: {self}");
        self
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// A list of the only cluster: `actions`, `anomalies`, `unknown`, `deferred`, `skipped`, `pending`.
    #[track_caller]
    pub fn list(&self, name: &str) -> Vec<Value> {
        let document = self.json();
        let clusters = document["clusters"].as_array().expect("clusters");
        assert_eq!(clusters.len(), 1, "{self}");
        assert_eq!(clusters[0]["state"], "ok", "{self}");
        clusters[0][name].as_array().unwrap_or_else(|| panic!("no list {name}: {self}")).clone()
    }

    /// Each action as "verb Kind/name", in plan order.
    #[track_caller]
    pub fn actions(&self) -> Vec<String> {
        self.list("actions")
            .iter()
            .map(|a| format!("{} {}/{}", word(a, "verb"), word(a, "kind"), word(a, "name")))
            .collect()
    }

    /// Actions of an `apply` that did not end well, as "Kind/name: error".
    #[track_caller]
    pub fn failures(&self) -> Vec<String> {
        let list = self.list("actions");
        let bad = list.iter().filter(|a| a["result"] != "ok");
        bad.map(|a| format!("{}/{}: {}", word(a, "kind"), word(a, "name"), word(a, "error"))).collect()
    }

    /// Each anomaly as "code Kind/name".
    #[track_caller]
    pub fn anomalies(&self) -> Vec<String> {
        self.list("anomalies")
            .iter()
            .map(|a| format!("{} {}/{}", word(a, "code"), word(a, "kind"), word(a, "name")))
            .collect()
    }
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cut = |text: &str| text.chars().take(20_000).collect::<String>();
        write!(f, "exit {}\n--- stdout\n{}\n--- stderr\n{}", self.code, cut(&self.stdout), cut(&self.stderr))
    }
}
