//! Tasks: UPIDs, life time, log, exit status (facts U1 to U7).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Caller, World};
use crate::faults::TaskRule;
use crate::guest::jobs::{self, Job};
use crate::refused::Refused;

/// One task, running or done.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its identity, colon at the end included.
    pub upid: String,
    /// The node it runs on.
    pub node: String,
    /// Task type such as `qmcreate`.
    pub kind: String,
    /// What it works on: a vmid, a file name, or empty.
    pub id: String,
    /// `user@realm` or `user@realm!token`.
    pub user: String,
    /// Unix time of its start.
    pub start: u64,
    /// Unix time of its end.
    pub end: Option<u64>,
    /// Exit status once it has ended.
    pub exit: Option<String>,
    /// Log lines so far.
    pub log: Vec<String>,
    until: Duration,
    job: Job,
    rule: Option<TaskRule>,
}

/// All tasks of a cluster, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    all: BTreeMap<u64, Task>,
    by_upid: BTreeMap<String, u64>,
    running: Vec<u64>,
    next: u64,
}

impl World {
    /// Forks a task and returns its UPID; its effect comes when it ends.
    pub(crate) fn spawn(
        &mut self,
        caller: &Caller,
        node: &str,
        kind: &str,
        id: impl ToString,
        job: Job,
    ) -> String {
        let id = id.to_string();
        let number = self.tasks.next;
        self.tasks.next += 1;
        let start = self.unix_time();
        let user = caller.identity();
        let (pid, pstart) = (0x1000 + number, 0x0010_0000 + self.now().as_millis() as u64 / 10);
        let upid = format!("UPID:{node}:{pid:08X}:{pstart:08X}:{start:08X}:{kind}:{id}:{user}:");
        let rule = self.task_rules.iter_mut().find(|rule| rule.applies(kind, &id)).map(|rule| rule.take());
        let until = match &rule {
            Some(rule) if rule.hang => Duration::MAX,
            Some(rule) => self.now() + rule.duration().unwrap_or(self.task_duration),
            None => self.now() + self.task_duration,
        };
        let task = Task {
            upid: upid.clone(),
            node: node.to_owned(),
            kind: kind.to_owned(),
            id,
            user,
            start,
            end: None,
            exit: None,
            log: rule.as_ref().map(|rule| rule.log.clone()).unwrap_or_default(),
            until,
            job,
            rule,
        };
        self.tasks.by_upid.insert(upid.clone(), number);
        self.tasks.all.insert(number, task);
        self.tasks.running.push(number);
        upid
    }

    /// Ends every task whose time has come, in the order of their ends.
    pub(crate) fn settle(&mut self) {
        loop {
            let now = self.now();
            let due = self
                .tasks
                .running
                .iter()
                .filter_map(|n| self.tasks.all.get(n).map(|task| (task.until, *n)))
                .filter(|(until, _)| *until <= now)
                .min();
            let Some((_, number)) = due else { return };
            self.finish(number);
        }
    }

    /// Ends all running tasks at once, also those that they start; hanging ones stay.
    pub fn finish_tasks(&mut self) {
        while let Some(number) = self
            .tasks
            .running
            .iter()
            .copied()
            .find(|n| self.tasks.all.get(n).is_some_and(|t| t.until != Duration::MAX))
        {
            self.finish(number);
        }
    }

    /// Kills a task as an operator would (fact U3: `unexpected status`); its effect is undone.
    pub fn kill_task(&mut self, upid: &str) -> bool {
        let Some(number) = self.tasks.by_upid.get(upid).copied() else { return false };
        if !self.tasks.running.contains(&number) {
            return false;
        }
        let job = self.tasks.all.get(&number).map(|task| task.job.clone());
        if let Some(job) = job {
            jobs::undo(self, &job);
        }
        self.close(number, "unexpected status".to_owned());
        true
    }

    /// Ends a node's running tasks as a power cut does: half done and nothing cleaned up (facts U3, Q41).
    pub(crate) fn cut_tasks(&mut self, node: &str) {
        let on_node = |n: &u64| self.tasks.all.get(n).is_some_and(|task| task.node == node);
        let cut: Vec<u64> = self.tasks.running.iter().copied().filter(on_node).collect();
        for number in cut {
            self.close(number, "unexpected status".to_owned());
        }
    }

    fn finish(&mut self, number: u64) {
        let Some(task) = self.tasks.all.get(&number) else { return };
        let (job, rule, node) = (task.job.clone(), task.rule.clone(), task.node.clone());
        let caller = task_caller(&task.user);
        let planned = rule.as_ref().and_then(|rule| rule.exit.clone());
        let effect = rule.as_ref().is_none_or(|rule| rule.has_effect());
        let mut log = Vec::new();
        let result = if effect {
            jobs::run(self, &caller, &node, &job, &mut log)
        } else {
            jobs::undo(self, &job);
            Ok(0)
        };
        let exit = match (planned, result) {
            (_, Err(why)) => {
                jobs::undo(self, &job);
                why
            }
            (Some(exit), Ok(_)) => exit,
            (None, Ok(0)) => "OK".to_owned(),
            (None, Ok(warnings)) => format!("WARNINGS: {warnings}"),
        };
        if let Some(task) = self.tasks.all.get_mut(&number) {
            task.log.extend(log);
        }
        self.close(number, exit.replace('\n', " ").trim_end().to_owned());
    }

    fn close(&mut self, number: u64, exit: String) {
        let end = self.unix_time();
        if let Some(task) = self.tasks.all.get_mut(&number) {
            let good = exit == "OK" || exit.starts_with("WARNINGS");
            task.log.push(if good { format!("TASK {exit}") } else { format!("TASK ERROR: {exit}") });
            task.exit = Some(exit);
            task.end = Some(end);
            task.job = Job::Done;
        }
        self.tasks.running.retain(|n| *n != number);
    }

    /// Exit status of a task; `None` while it runs or when it is unknown.
    pub fn exit_status(&self, upid: &Value) -> Option<String> {
        self.task(upid.as_str()?).and_then(|task| task.exit.clone())
    }

    /// A task by its UPID.
    pub fn task(&self, upid: &str) -> Option<&Task> {
        self.tasks.all.get(self.tasks.by_upid.get(upid)?)
    }

    /// All tasks, newest first.
    pub fn all_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.all.values().rev()
    }

    /// A task on a node that the caller may see (facts U2, U7, R14).
    pub(crate) fn visible_task(&self, caller: &Caller, node: &str, upid: &str) -> Result<&Task, Refused> {
        if !well_formed(upid) {
            return Err(Refused::param("upid", "unable to parse worker upid"));
        }
        let task = self
            .task(upid)
            .filter(|task| task.node == node)
            .ok_or_else(|| Refused::param("upid", "no such task"))?;
        if !owns(caller, &task.user) {
            self.need(caller, &format!("/nodes/{node}"), &["Sys.Audit"])?;
        }
        Ok(task)
    }
}

/// A token sees its own tasks, a user also those of its tokens (fact U7).
pub(crate) fn owns(caller: &Caller, user: &str) -> bool {
    user == caller.identity() || (caller.token.is_none() && user.split('!').next() == Some(&caller.user))
}

fn task_caller(identity: &str) -> Caller {
    match identity.split_once('!') {
        Some((user, token)) => Caller::token(user, token),
        None => Caller::user(identity),
    }
}

/// Whether a text has the shape of a UPID (fact U1).
fn well_formed(upid: &str) -> bool {
    crate::grammar::check::matches(
        r"UPID:[a-zA-Z0-9\-]+:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:[^:\s/]+:[^:\s]*:[^:\s/]+:",
        upid,
    )
}

impl Task {
    fn row(&self) -> Value {
        let mut parts = self.upid.split(':').skip(2);
        let mut hex = || parts.next().and_then(|p| u64::from_str_radix(p, 16).ok()).unwrap_or_default();
        let (pid, pstart) = (hex(), hex());
        let (user, token) = match self.user.split_once('!') {
            Some((user, token)) => (user, Some(token)),
            None => (self.user.as_str(), None),
        };
        let mut row = json!({
            "upid": self.upid, "node": self.node, "pid": pid, "pstart": pstart, "starttime": self.start,
            "type": self.kind, "id": self.id, "user": user,
        });
        if let Some(token) = token {
            row["tokenid"] = json!(token);
        }
        row
    }

    /// The answer to `.../status` (fact U2).
    pub(crate) fn status(&self) -> Value {
        let mut row = self.row();
        match &self.exit {
            Some(exit) => {
                row["status"] = json!("stopped");
                row["exitstatus"] = json!(exit);
            }
            None => row["status"] = json!("running"),
        }
        row
    }

    /// A row of a task list (fact U6).
    pub(crate) fn listed(&self) -> Value {
        let mut row = self.row();
        row["user"] = json!(self.user);
        match &self.exit {
            Some(exit) => {
                row["status"] = json!(exit);
                row["endtime"] = json!(self.end);
            }
            None => row["status"] = json!("RUNNING"),
        }
        row
    }
}
