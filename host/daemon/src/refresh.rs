//! A long-running process before each cycle: what changed on the disk or at the source takes effect, what broke
//! does not.

use crate::Process;
use proxops_repo::LoadOptions;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What came of looking again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// The process works on what is there now.
    Taken,
    /// Something that concerns every cluster is broken: the last good tree and configuration stay, whole. The text
    /// says what is broken.
    Kept(String),
}

impl Process {
    /// Looks at files and source again. Call it before every cycle.
    ///
    /// A process that was good stays good: when `proxops.yaml` or any cluster's `config.yaml` is broken (which stops
    /// every cluster at a start), when the tree is gone, or when kinds can't be loaded, everything stays as it was,
    /// and every plan says `stale`. A mistake in one cluster's composition or manifests is taken over: that cluster
    /// aborts and says why, the others go on. Secrets documents are looked at when a cluster connects; a broken one
    /// leaves the last good secrets (see [`proxops_secrets::ClusterSecrets`]).
    pub fn refresh(
        &mut self,
        options: &LoadOptions<'_>,
        kinds_dir: Option<&Path>,
        stop: &AtomicBool,
    ) -> Refreshed {
        let next = Self::build(options, kinds_dir, false, self.secrets.clone(), Some(self), stop);
        let broken = match next {
            Ok(next) => {
                let errors: Vec<String> = next.repository.global_errors().map(ToString::to_string).collect();
                let good = self.repository.global_errors().next().is_none();
                if errors.is_empty() || !good {
                    *self = next;
                    return Refreshed::Taken;
                }
                errors.join("\n")
            }
            Err(error) => format!("{error:#}"),
        };
        tracing::warn!("the last good configuration is kept: {broken}");
        self.kept = Some(broken.clone());
        Refreshed::Kept(broken)
    }
}
