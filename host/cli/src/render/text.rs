//! Plans for people.

use super::{Paint, count};
use crate::args::Color;
use proxops_model::Severity;
use proxops_model::plan::{Action, Change, ClusterPlan, ClusterState, Noted, Outcome, Summary, Verb};
use proxops_model::text::printable;
use std::fmt::Write as _;
use std::io::Write as _;

/// `diff`
pub fn diff(plans: &[ClusterPlan], color: Color) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = String::new();
    for plan in plans {
        cluster(&mut out, plan, paint)?;
    }
    writeln!(out, "{}", summary(plans))?;
    emit(&out)
}

/// `apply`: what failed or was not done, then the counts; each action was a progress line already.
pub fn apply(plans: &[ClusterPlan], color: Color) -> anyhow::Result<()> {
    let paint = Paint::new(color);
    let mut out = String::new();
    for plan in plans {
        header(&mut out, plan, paint)?;
        for action in &plan.actions {
            let Some(ended) = &action.ended else { continue };
            let word = match ended.result {
                Outcome::Ok => paint.green("ok"),
                Outcome::Failed => paint.red("failed"),
                Outcome::Deferred => paint.yellow("deferred"),
                Outcome::NotStarted => paint.yellow("not started"),
            };
            writeln!(out, "  {word} {}", printable(&title(action)))?;
            if let Some(error) = &ended.error {
                block(&mut out, "      ", error)?;
            }
            for warning in &ended.warnings {
                block(&mut out, "      warning: ", warning)?;
            }
        }
        findings(&mut out, plan, paint)?;
    }
    let ended = |wanted| {
        plans
            .iter()
            .flat_map(|p| &p.actions)
            .filter(|a| a.ended.as_ref().is_some_and(|e| e.result == wanted))
            .count()
    };
    let (ok, failed, deferred) = (ended(Outcome::Ok), ended(Outcome::Failed), ended(Outcome::Deferred));
    let idle = ended(Outcome::NotStarted);
    if ok + failed + deferred + idle == 0 && plans.iter().all(|p| p.state == ClusterState::Ok) {
        writeln!(out, "Nothing to do.")?;
    } else {
        let mut line = format!("{} done, {failed} failed, {deferred} deferred", count(ok, "action"));
        if idle > 0 {
            write!(line, ", {idle} not started")?;
        }
        writeln!(out, "{line}.")?;
    }
    emit(&out)
}

fn cluster(out: &mut String, plan: &ClusterPlan, paint: Paint) -> anyhow::Result<()> {
    header(out, plan, paint)?;
    for action in &plan.actions {
        let line = printable(&title(action));
        let (sign, line) = match action.verb {
            Verb::Create | Verb::Clone | Verb::Download => (paint.green("+"), paint.green(&line)),
            Verb::Delete => (paint.red("-"), paint.red(&line)),
            Verb::Start | Verb::Stop => (paint.yellow(">"), line),
            _ => (paint.yellow("~"), paint.yellow(&line)),
        };
        let disruptive = if action.disruptive { paint.red("  (disruptive)") } else { String::new() };
        writeln!(out, "  {sign} {line}{disruptive}")?;
        writeln!(out, "      {}", paint.dim(&printable(&action.reason)))?;
        for change in &action.changes {
            field(out, change, paint)?;
        }
    }
    findings(out, plan, paint)?;
    if plan.is_clean() {
        writeln!(out, "  converged, nothing to do")?;
    }
    writeln!(out)?;
    Ok(())
}

fn header(out: &mut String, plan: &ClusterPlan, paint: Paint) -> anyhow::Result<()> {
    let mut about = Vec::new();
    if let Some(commit) = &plan.commit {
        let short: String = commit.chars().take(10).collect();
        about.push(format!("commit {short}{}", if plan.dirty { " with local changes" } else { "" }));
    }
    if plan.stale {
        about.push("the tree is stale".to_owned());
    }
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    writeln!(out, "{}{}", paint.bold(&format!("cluster {}", printable(&plan.cluster))), paint.dim(&about))?;
    if let Some(error) = &plan.error {
        writeln!(out, "  {}", paint.red("aborted:"))?;
        block(out, "    ", error)?;
    }
    Ok(())
}

fn title(action: &Action) -> String {
    let place = match (&action.node, action.vmid) {
        (Some(node), Some(vmid)) => format!(" on {node}, vmid {vmid}"),
        (Some(node), None) => format!(" on {node}"),
        _ => String::new(),
    };
    format!("{} {}/{}{place}", action.verb, action.kind, action.name)
}

fn field(out: &mut String, change: &Change, paint: Paint) -> anyhow::Result<()> {
    let show =
        |v: &Option<String>| v.as_ref().map_or_else(|| "(not set)".to_owned(), |v| printable(&short(v)));
    let (from, to) = (show(&change.from), show(&change.to));
    let key = printable(&change.key);
    let values = match (&change.from, &change.to) {
        (None, Some(_)) => to,
        (_, None) => format!("{from} -> (removed)"),
        _ => format!("{from} -> {to}"),
    };
    writeln!(out, "      {key}: {values}  {}", paint.dim(&printable(&change.field)))?;
    Ok(())
}

/// Long and many-lined values on one line.
fn short(value: &str) -> String {
    let line = value.replace('\n', "\\n");
    if line.chars().count() <= 160 {
        line
    } else {
        format!("{}...", line.chars().take(157).collect::<String>())
    }
}

fn findings(out: &mut String, plan: &ClusterPlan, paint: Paint) -> anyhow::Result<()> {
    for a in &plan.anomalies {
        let word = match a.severity {
            Severity::Error => paint.red("error"),
            Severity::Warning => paint.yellow("anomaly"),
            Severity::Info => paint.dim("info"),
        };
        let vmid = a.vmid.map(|v| format!(" (vmid {v})")).unwrap_or_default();
        writeln!(out, "  ! {word} {}{vmid} [{}]", printable(&format!("{}/{}", a.kind, a.name)), a.code)?;
        block(out, "      ", &a.message)?;
        if let Some(help) = &a.help {
            block(out, "      help: ", help)?;
        }
    }
    let noted = |out: &mut String, word: &str, list: &[Noted]| -> anyhow::Result<()> {
        for n in list {
            let vmid = n.vmid.map(|v| format!(" (vmid {v})")).unwrap_or_default();
            writeln!(
                out,
                "  ? {} {}{vmid}",
                paint.yellow(word),
                printable(&format!("{}/{}", n.kind, n.name))
            )?;
            block(out, "      ", &n.why)?;
        }
        Ok(())
    };
    noted(out, "unknown", &plan.unknown)?;
    noted(out, "deferred", &plan.deferred)?;
    noted(out, "skipped", &plan.skipped)?;
    for p in &plan.pending {
        let value = |v: &Option<String>| v.as_ref().map_or_else(|| "(not set)".to_owned(), |v| short(v));
        let line = format!(
            "{}/{}: {} is {} until the guest restarts, then {}",
            p.kind,
            p.name,
            p.key,
            value(&p.current),
            value(&p.pending)
        );
        writeln!(out, "  . {} {}", paint.yellow("pending"), printable(&line))?;
    }
    Ok(())
}

/// A text of one or more lines, each indented.
fn block(out: &mut String, indent: &str, text: &str) -> anyhow::Result<()> {
    for (i, line) in printable(text.trim_end()).lines().enumerate() {
        let lead = if i == 0 { indent.to_owned() } else { " ".repeat(indent.len()) };
        writeln!(out, "{lead}{line}")?;
    }
    Ok(())
}

fn summary(plans: &[ClusterPlan]) -> String {
    let s = Summary::of(plans);
    let aborted = plans.iter().filter(|p| p.state == ClusterState::Aborted).count();
    let mut parts = Vec::new();
    for (n, what) in [
        (s.create, "to create"),
        (s.update, "to update"),
        (s.delete, "to delete"),
        (s.download, "to download"),
        (s.power, "to start or stop"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    for (n, one) in [
        (s.anomalies, "anomaly"),
        (s.deferred, "deferred"),
        (s.unknown, "unknown"),
        (aborted, "aborted cluster"),
    ] {
        if n > 0 {
            parts.push(match one {
                "anomaly" if n > 1 => format!("{n} anomalies"),
                "aborted cluster" => count(n, one),
                _ => format!("{n} {one}"),
            });
        }
    }
    if parts.is_empty() {
        return format!("No changes in {}.", count(plans.len(), "cluster"));
    }
    format!("Plan: {}.", parts.join(", "))
}

fn emit(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
