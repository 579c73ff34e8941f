//! One request: intent, answer, task, and what it means for the action.

use crate::journal::Debt;
use crate::params::Form;
use crate::run::{Flow, Run, Stop, failed};
use proxops_model::kind::Method;
use proxops_pve::{Class, PveError, TaskEnd, Upid, path};
use std::collections::BTreeMap;

/// What became of one request and its task.
#[derive(Debug)]
pub(crate) enum Reply {
    /// PVE said so, or its task did.
    Done,
    /// PVE said no, or its task did.
    Refused(Refusal),
    /// It may or may not have happened: look before anything else.
    Unknown(String),
}

/// PVE's no.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub class: Class,
    /// What failed, PVE's text, what to do.
    pub text: String,
    /// A task said it: something may have been done before it failed.
    pub by_task: bool,
}

impl Refusal {
    /// The end of an action that can do nothing about it. A lock defers: no hot retry, never `skiplock`.
    pub(crate) fn stop(self) -> Stop {
        match self.class {
            Class::Locked(_) => Stop::Deferred(self.text),
            _ => Stop::Failed(self.text),
        }
    }
}

/// What failed and what to do.
pub(crate) fn describe(error: &PveError) -> String {
    format!("{error}; {}", error.help())
}

/// The same for the end of a task.
fn describe_end(upid: &Upid, class: &Class, text: &str) -> String {
    let error = PveError {
        class: class.clone(),
        method: "",
        path: String::new(),
        status: None,
        message: text.to_owned(),
        errors: BTreeMap::new(),
    };
    format!("task {} on {} ended with: {text}; {}", upid.task_type, upid.node, error.help())
}

impl Run<'_> {
    /// Sends one request to a path made of these segments and waits for its task.
    pub(crate) async fn write(
        &mut self,
        seq: u32,
        method: Method,
        segments: &[&str],
        form: Form,
        debt: Option<Debt>,
    ) -> Flow<Reply> {
        let path = path(segments).map_err(|error| Stop::Failed(describe(&error)))?;
        self.write_at(seq, method, &path, form, debt).await
    }

    /// The same with the path as it is.
    pub(crate) async fn write_at(
        &mut self,
        seq: u32,
        method: Method,
        path: &str,
        form: Form,
        debt: Option<Debt>,
    ) -> Flow<Reply> {
        self.intent(seq, debt).await?;
        match self.env.client.send(method, path, &form).await {
            Ok(answer) => match answer.upid() {
                Some(upid) => self.watch(seq, &upid).await,
                None => {
                    self.step_done(seq);
                    Ok(Reply::Done)
                }
            },
            Err(error) if error.outcome_unknown() => {
                self.open = true;
                Ok(Reply::Unknown(describe(&error)))
            }
            Err(error) => {
                let text = describe(&error);
                self.step_failed(seq, &text);
                Ok(Reply::Refused(Refusal { class: error.class, text, by_task: false }))
            }
        }
    }

    /// Writes a task's id down and waits for its end.
    pub(crate) async fn watch(&mut self, seq: u32, upid: &Upid) -> Flow<Reply> {
        self.sent(seq, upid.as_str());
        if !self.upids.iter().any(|known| known == upid.as_str()) {
            self.upids.push(upid.to_string());
        }
        self.env.progress.step(self.action, &upid.task_type, Some(upid.as_str()));
        match self.env.client.wait_task(upid, self.task_time()).await {
            Ok(TaskEnd::Ok) => {}
            Ok(TaskEnd::Warnings { count, lines }) if lines.is_empty() => {
                self.warnings.push(format!(
                    "task {} on {} ended with {count} warnings; its log says which",
                    upid.task_type, upid.node
                ));
            }
            Ok(TaskEnd::Warnings { lines, .. }) => self.warnings.extend(lines),
            Ok(TaskEnd::Failed { class: class @ Class::UnknownOutcome, text }) => {
                self.open = true;
                return Ok(Reply::Unknown(describe_end(upid, &class, &text)));
            }
            Ok(TaskEnd::Failed { class, text }) => {
                let text = describe_end(upid, &class, &text);
                self.step_failed(seq, &text);
                return Ok(Reply::Refused(Refusal { class, text, by_task: true }));
            }
            Ok(TaskEnd::Timeout) => {
                self.open = true;
                return failed(format!(
                    "task {} on {} still runs after {} s; it goes on in PVE and is looked for in the next run (raise \
                     reconcile.task-timeout if this is normal): {upid}",
                    upid.task_type,
                    upid.node,
                    self.task_time().as_secs()
                ));
            }
            Ok(TaskEnd::Lost { why }) => {
                // whatever could be asked now lies behind the same node
                self.open = true;
                return failed(format!(
                    "what became of task {} is not known: {why}. Nothing more is sent for {}; the next run looks for it \
                     once the node answers: {upid}",
                    upid.task_type,
                    self.what()
                ));
            }
            Err(error) => {
                self.open = true;
                return Ok(Reply::Unknown(describe(&error)));
            }
        }
        self.step_done(seq);
        Ok(Reply::Done)
    }
}
