//! Tasks: their ids, waiting for their end, and what the end means.

use crate::class::Class;
use crate::client::Client;
use crate::error::{PveError, joined};
use crate::lenient::Scalar;
use crate::path::path;
use serde::Deserialize;
use std::fmt;
use std::time::{Duration, Instant};

/// Id of a task (fact U1). Displays as PVE wrote it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Upid {
    /// Where the task runs, and whom to ask about it.
    pub node: String,
    /// Such as "qmcreate".
    pub task_type: String,
    /// Mostly a vmid; the SOURCE's for a clone (fact U8); may be empty.
    pub id: String,
    /// `user@realm`, or `user@realm!token`.
    pub user: String,
    /// Seconds since 1970.
    pub start_time: u64,
    text: String,
}

impl Upid {
    /// From PVE's text.
    pub fn parse(text: &str) -> Result<Self, PveError> {
        let refuse =
            || PveError::setup(Class::Invalid, format!("{text:?} is not a task id (UPID:node:...:)"));
        let parts: Vec<&str> = text.split(':').collect();
        let ["UPID", node, pid, pstart, start, task_type, id, user, ""] = parts.as_slice() else {
            return Err(refuse());
        };
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic() && c != '/');
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let name = |text: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        };
        let start_time = hex(start).ok_or_else(refuse)?;
        let sound = name(node)
            && hex(pid).is_some()
            && hex(pstart).is_some()
            && [task_type, user].iter().all(|text| !text.is_empty() && plain(text))
            && !id.contains(char::is_whitespace)
            && !matches!(*node, "." | "..");
        if !sound {
            return Err(refuse());
        }
        Ok(Self {
            node: (*node).to_owned(),
            task_type: (*task_type).to_owned(),
            id: (*id).to_owned(),
            user: (*user).to_owned(),
            start_time,
            text: text.to_owned(),
        })
    }

    /// PVE's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a task ended (fact U3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// Done.
    Ok,
    /// Done, and PVE has something to say.
    Warnings {
        /// As PVE counts them.
        count: u32,
        /// The log's warning lines; empty if the log can't be read.
        lines: Vec<String>,
    },
    /// Not done, as far as PVE knows.
    Failed {
        /// What the text means; `UnknownOutcome` for a task that was killed.
        class: Class,
        /// PVE's text.
        text: String,
    },
    /// Still running when the time was up. The task goes on.
    Timeout,
    /// Its node has been out of reach for too long. A node that lost power takes the task along, one that
    /// lost its network may finish it: nobody can tell from here.
    Lost {
        /// What is known of the node.
        why: String,
    },
}

/// For how long a task that exists may be unreadable (fact R8).
const UNREADABLE: Duration = Duration::from_secs(5);
/// For how long a node may be called offline by its own cluster before nobody waits for its tasks any more,
/// at most an eighth of the time limit. Long enough for a membership that only flaps.
const OFFLINE: Duration = Duration::from_secs(10);
/// The same for a node that can't be asked while nobody says why: its pveproxy restarts, the endpoint is
/// gone, a proxy in between is in trouble. At most half of the time limit.
const SILENT: Duration = Duration::from_secs(120);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    status: Scalar,
    #[serde(default)]
    exitstatus: Scalar,
}

/// A node that does not answer.
struct Silence {
    since: Instant,
    /// Since when its cluster calls it offline.
    offline: Option<Instant>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    n: Scalar,
    #[serde(default)]
    t: Scalar,
}

impl Client {
    /// Waits for a task's end, asking the node inside its id: first at once, then in pauses that grow with
    /// the time waited (an eighth of it), up to 2 s. `on_progress` hears after each look how long it has
    /// been.
    ///
    /// Polling is never given up for faults in passing, only when `timeout` is over or the node is lost: called
    /// offline by its cluster, or silent, for a good while ([`TaskEnd::Lost`]). `UnknownOutcome` means that the
    /// task's end can't be read any more (its log is gone): re-read the live state.
    pub async fn wait_task(
        &self,
        upid: &Upid,
        timeout: Duration,
        on_progress: &mut (dyn FnMut(Duration) + Send),
    ) -> Result<TaskEnd, PveError> {
        let at = path(&["nodes", &upid.node, "tasks", upid.as_str(), "status"])?;
        let started = Instant::now();
        let mut unreadable: Option<(Instant, PveError)> = None;
        let mut silence: Option<Silence> = None;
        loop {
            let left = timeout.saturating_sub(started.elapsed());
            let pause = (started.elapsed() / 8).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            tokio::time::sleep(pause.min(left)).await;
            let asked = Instant::now();
            let answer = self.read::<Status>(&at, &[]).await.map(|answer| answer.data);
            match &answer {
                Err(error) if error.is_transient() => {
                    let silence = silence.get_or_insert(Silence { since: asked, offline: None });
                    let over = started.elapsed() >= timeout;
                    if let Some(why) = self.lost(upid, timeout, over, silence, error).await {
                        return Ok(TaskEnd::Lost { why });
                    }
                }
                _ => silence = None,
            }
            let trouble = match answer {
                Ok(now) if now.status == Scalar::from("stopped") => match now.exitstatus.filled() {
                    Some(text) => return Ok(self.task_end(upid, &text).await),
                    None => {
                        Some(PveError::request(Class::Server, "GET", &at, "the task ended without a result"))
                    }
                },
                Ok(_) => {
                    unreadable = None;
                    None
                }
                Err(error) if error.is_transient() => None,
                Err(error) => match error.class {
                    Class::Auth | Class::Forbidden | Class::Tls => return Err(error),
                    _ => Some(error),
                },
            };
            if let Some(error) = trouble {
                let (since, mut error) = unreadable.take().unwrap_or_else(|| (Instant::now(), error));
                if since.elapsed() >= UNREADABLE {
                    error.class = Class::UnknownOutcome;
                    error.message = format!("how task {upid} ended can't be read: {}", error.message);
                    return Err(error);
                }
                unreadable = Some((since, error));
            }
            if started.elapsed() >= timeout {
                return Ok(TaskEnd::Timeout);
            }
            on_progress(started.elapsed());
        }
    }

    /// What to say of a node that has been out of reach for too long.
    async fn lost(
        &self,
        upid: &Upid,
        timeout: Duration,
        over: bool,
        silence: &mut Silence,
        error: &PveError,
    ) -> Option<String> {
        // only where PVE answered in the node's place can it be asked what it thinks of the node
        let offline = error.class == Class::NodeUnreachable
            && self.nodes().await.is_ok_and(|nodes| {
                nodes.iter().any(|node| node.name == upid.node && node.status == "offline")
            });
        silence.offline = if offline { silence.offline.or_else(|| Some(Instant::now())) } else { None };
        let node = &upid.node;
        let time = silence.since.elapsed();
        let silent = over || time >= SILENT.min(timeout / 2);
        match silence.offline {
            Some(since) if silent || since.elapsed() >= OFFLINE.min(timeout / 8) => {
                Some(format!("node {node} is offline"))
            }
            None if silent => {
                Some(format!("node {node} could not be asked for {} s, last: {error}", time.as_secs()))
            }
            _ => None,
        }
    }

    async fn task_end(&self, upid: &Upid, text: &str) -> TaskEnd {
        let text = joined(text);
        if text == "OK" {
            return TaskEnd::Ok;
        }
        if let Some(count) = text.strip_prefix("WARNINGS: ").and_then(|count| count.trim().parse().ok()) {
            let lines = match self.task_log(upid).await {
                Ok(lines) => lines.into_iter().filter(|line| line.starts_with("WARN")).collect(),
                Err(error) => {
                    tracing::debug!(%error, "the log of a task with warnings can't be read");
                    Vec::new()
                }
            };
            return TaskEnd::Warnings { count, lines };
        }
        // "unexpected status": the worker was killed (fact U3)
        let class = if text == "unexpected status" { Class::UnknownOutcome } else { Class::of_text(&text) };
        TaskEnd::Failed { class, text }
    }

    /// The whole log of a task, in order (fact U5).
    pub async fn task_log(&self, upid: &Upid) -> Result<Vec<String>, PveError> {
        let at = path(&["nodes", &upid.node, "tasks", upid.as_str(), "log"])?;
        let mut lines = self.read::<Vec<Line>>(&at, &[("start", "0"), ("limit", "0")]).await?.data;
        lines.sort_by_key(|line| line.n.whole().unwrap_or(u64::MAX));
        Ok(lines.into_iter().map(|line| proxops_model::text::printable(&line.t.or_empty())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "UPID:pve-01:0003C2B1:0A1B2C3D4:66A1B2C3:qmclone:9000:root@pam!ci:";

    #[test]
    fn a_upid_is_read_and_written_back() {
        let upid = Upid::parse(TEXT).unwrap();
        assert_eq!(
            (upid.node.as_str(), upid.task_type.as_str(), upid.id.as_str()),
            ("pve-01", "qmclone", "9000")
        );
        assert_eq!((upid.user.as_str(), upid.start_time), ("root@pam!ci", 0x66A1_B2C3));
        assert_eq!(upid.to_string(), TEXT);
        let without_id = Upid::parse("UPID:a:0003C2B1:0A1B2C3D:66A1B2C3:download::root@pam:").unwrap();
        assert_eq!(without_id.id, "");
    }

    #[test]
    fn what_is_not_a_upid_is_refused() {
        let without_end = TEXT.strip_suffix(':').unwrap();
        let escaping = TEXT.replace("pve-01", "../../x");
        let dots = TEXT.replace("pve-01", "..");
        for bad in ["", "UPID", without_end, &escaping, &dots, "UPID::1:1:1:t:i:u:", "UPID:a:1:1:zz:t:i:u:"] {
            assert!(Upid::parse(bad).is_err(), "{bad}");
        }
    }
}
