//! Downloads. A file that is there is converged, whoever put it there; none is ever deleted.

use crate::params;
use crate::run::{Flow, Queued, Run, Stop, failed};
use crate::write::{Reply, describe};
use proxops_model::kind::{Method, Param};
use proxops_model::plan::Subject;
use proxops_pve::Class;

impl Run<'_> {
    pub(crate) async fn download(
        &mut self,
        queued: &Queued,
        (node, storage, filename): (&str, &str, &str),
        params: &[Param],
    ) -> Flow {
        let Some(Subject::Artifact { content }) = &self.action.subject else {
            return failed("internal: a download needs an artifact");
        };
        let mut form = self.form(params, &["node", "storage", "content", "filename"])?;
        params::push(&mut form, "content", content.clone());
        params::push(&mut form, "filename", filename);
        let segments = ["nodes", node, "storage", storage, "download-url"];
        let (text, again) = match self.write(queued.seq, Method::Post, &segments, form, None).await? {
            Reply::Done => ("PVE reported success, but the file is not there".to_owned(), false),
            Reply::Unknown(text) => {
                for upid in self.running(&queued.step).await? {
                    // what lies there afterwards counts
                    self.watch(queued.seq, &upid).await?;
                }
                self.tries.resends += 1;
                (text, self.tries.resends <= 1)
            }
            Reply::Refused(refusal) => match refusal.class {
                // S5: somebody else put it there
                Class::Taken => (refusal.text, false),
                Class::Busy if refusal.by_task => {
                    let again = self.busy_pause().await;
                    (refusal.text, again)
                }
                _ => return Err(refusal.stop()),
            },
        };
        let files = self.env.client.storage_content(node, storage, content).await;
        let files = files.map_err(|error| Stop::Failed(describe(&error)))?;
        self.open = false;
        let volid = format!("{storage}:{content}/{filename}");
        if files.iter().any(|file| file.volid == volid) {
            self.step_done(queued.seq);
            return Ok(());
        }
        if again {
            self.queue.push_front(queued.clone());
            return Ok(());
        }
        self.step_failed(queued.seq, &text);
        failed(format!("{text} ({volid} on {node})"))
    }
}
