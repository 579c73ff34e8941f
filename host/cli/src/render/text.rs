//! Plans for people.

use super::{Paint, count};
use crate::args::Color;
use crate::say;
use proxops_model::Severity;
use proxops_model::plan::{Action, Change, ClusterPlan, ClusterState, Outcome, Summary, Verb};
use proxops_model::text::printable;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

/// `diff`
pub fn diff(plans: &[ClusterPlan], color: Color) -> anyhow::Result<()> {
    emit(&plan_text(plans, Look::of_stdout(color))?)
}

/// What the output may use.
#[derive(Clone, Copy)]
struct Look {
    paint: Paint,
    /// Box-drawing characters; else their nearest in ASCII.
    boxes: bool,
    /// Columns of the terminal; `None` = not a terminal, lines are as long as they are.
    width: Option<usize>,
}

impl Look {
    fn of_stdout(color: Color) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
        let boxes = locale.is_some_and(|l| l.to_ascii_lowercase().replace('-', "").contains("utf8"));
        let width = std::io::stdout().is_terminal().then(columns).flatten();
        Self { paint: Paint::new(color), boxes, width }
    }
}

impl Look {
    /// Whether so many columns of a branch fit.
    fn fits(self, columns: usize) -> bool {
        self.width.is_none_or(|width| columns + TRUNK <= width)
    }
}

/// Columns of the tree before a branch's own text.
const TRUNK: usize = 3;
/// Text is never squeezed into less.
const NARROWEST: usize = 20;

/// Columns of the terminal.
fn columns() -> Option<usize> {
    comfy_table::Table::new().width().map(usize::from).filter(|columns| *columns >= 20)
}

fn plan_text(plans: &[ClusterPlan], look: Look) -> anyhow::Result<String> {
    let mut out = String::new();
    for plan in plans {
        cluster(&mut out, plan, look)?;
    }
    writeln!(out, "{}", summary(plans, look.paint))?;
    Ok(out)
}

/// `apply`: what failed or was not done, then the counts; each action was a progress line already.
pub fn apply(plans: &[ClusterPlan], color: Color) -> anyhow::Result<()> {
    let look = Look::of_stdout(color);
    let paint = look.paint;
    let mut out = String::new();
    for plan in plans {
        header(&mut out, plan, look)?;
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
                block(&mut out, "      ", error, look)?;
            }
            for warning in &ended.warnings {
                block(&mut out, "      warning: ", warning, look)?;
            }
        }
        for finding in findings(plan, look)? {
            for line in finding.lines() {
                writeln!(out, "  {line}")?;
            }
        }
    }
    let ended = |wanted| {
        plans
            .iter()
            .flat_map(|p| &p.actions)
            .filter(|a| a.ended.as_ref().is_some_and(|e| e.result == wanted))
            .count()
    };
    let put_off: usize = plans.iter().map(|p| p.deferred.len()).sum();
    let (ok, failed) = (ended(Outcome::Ok), ended(Outcome::Failed));
    let deferred = ended(Outcome::Deferred) + put_off;
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

/// One cluster as a tree: each action and each finding is a branch.
fn cluster(out: &mut String, plan: &ClusterPlan, look: Look) -> anyhow::Result<()> {
    header(out, plan, look)?;
    let mut branches: Vec<String> = Vec::new();
    for a in &plan.actions {
        branches.push(action(a, look)?);
    }
    branches.extend(findings(plan, look)?);
    let (fork, last, trunk) =
        if look.boxes { ("├─ ", "└─ ", "│  ") } else { ("|- ", "`- ", "|  ") };
    for (i, branch) in branches.iter().enumerate() {
        let end = i + 1 == branches.len();
        for (n, line) in branch.lines().enumerate() {
            let lead = match (n, end) {
                (0, false) => fork,
                (0, true) => last,
                (_, false) => trunk,
                (_, true) => "   ",
            };
            writeln!(out, "{}{line}", look.paint.dim(lead))?;
        }
    }
    if plan.is_clean() {
        writeln!(out, "  {}", look.paint.green("converged, nothing to do"))?;
    }
    writeln!(out)?;
    Ok(())
}

/// An action with its fields, as lines.
fn action(action: &Action, look: Look) -> anyhow::Result<String> {
    let paint = look.paint;
    let mut out = String::new();
    let line = printable(&title(action));
    let head = match action.verb {
        Verb::Create | Verb::Clone | Verb::Download => paint.green(&format!("+ {line}")),
        // The one line that nobody may overlook, without colours too.
        Verb::Delete => paint.alarm(&format!("- DELETE {}", line.trim_start_matches("delete "))),
        Verb::Start | Verb::Stop => format!("{} {line}", paint.yellow(">")),
        _ => paint.yellow(&format!("~ {line}")),
    };
    const DISRUPTIVE: &str = "(disruptive: the guest is stopped or restarted)";
    if !action.disruptive || action.verb == Verb::Delete {
        writeln!(out, "{head}")?;
    } else if look.fits(2 + line.chars().count() + 2 + DISRUPTIVE.len()) {
        writeln!(out, "{head}  {}", paint.red(DISRUPTIVE))?;
    } else {
        writeln!(out, "{head}\n    {}", paint.red("(disruptive)"))?;
    }
    block(&mut out, "    ", &action.reason, look)?;
    fields(&mut out, &action.changes, look)?;
    Ok(out)
}

fn header(out: &mut String, plan: &ClusterPlan, look: Look) -> anyhow::Result<()> {
    let paint = look.paint;
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
        block(out, "    ", error, look)?;
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

/// Field changes in columns: PVE's key, live, arrow, wanted, the manifest's field.
fn fields(out: &mut String, changes: &[Change], look: Look) -> anyhow::Result<()> {
    /// A long value does not push the others away.
    const WIDEST: usize = 28;
    let paint = look.paint;
    let show = |v: &Option<String>, none: &str| match v {
        Some(v) => printable(&short(v)),
        None => none.to_owned(),
    };
    let rows: Vec<[String; 4]> = changes
        .iter()
        .map(|c| {
            [printable(&c.key), show(&c.from, "(not set)"), show(&c.to, "(removed)"), printable(&c.field)]
        })
        .collect();
    let wide = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0).min(WIDEST);
    let (keys, from, to) = (wide(0), wide(1), wide(2));
    for [key, was, is, field] in &rows {
        // Width is counted before colours are put in.
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
        let line = 4
            + keys
            + 2
            + from.max(was.chars().count())
            + 4
            + to.max(is.chars().count())
            + 2
            + field.chars().count();
        let values = format!("{}{} -> {}", paint.red(was), pad(was, from), paint.green(is));
        if look.fits(line) {
            writeln!(out, "    {key}{}  {values}{}  {}", pad(key, keys), pad(is, to), paint.dim(field))?;
            continue;
        }
        // A narrow terminal gets one part a line.
        if look.fits(4 + key.chars().count() + 2 + field.chars().count()) {
            writeln!(out, "    {key}  {}", paint.dim(field))?;
        } else {
            writeln!(out, "    {key}\n      {}", paint.dim(field))?;
        }
        if look.fits(6 + was.chars().count() + 4 + is.chars().count()) {
            writeln!(out, "      {} -> {}", paint.red(was), paint.green(is))?;
        } else {
            writeln!(out, "      {}\n      -> {}", paint.red(was), paint.green(is))?;
        }
    }
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

/// Everything besides the actions, one text each.
fn findings(plan: &ClusterPlan, look: Look) -> anyhow::Result<Vec<String>> {
    let paint = look.paint;
    let mut all = Vec::new();
    for a in &plan.anomalies {
        let mut out = String::new();
        let word = match a.severity {
            Severity::Error => paint.red("error"),
            Severity::Warning => paint.yellow("anomaly"),
            Severity::Info => paint.dim("info"),
        };
        let vmid = a.vmid.map(|v| format!(" (vmid {v})")).unwrap_or_default();
        writeln!(out, "! {word} {}{vmid} [{}]", printable(&format!("{}/{}", a.kind, a.name)), a.code)?;
        block(&mut out, "    ", &a.message, look)?;
        if let Some(help) = &a.help {
            block(&mut out, "    help: ", help, look)?;
        }
        all.push(out);
    }
    for (word, list) in [("unknown", &plan.unknown), ("deferred", &plan.deferred), ("skipped", &plan.skipped)]
    {
        for n in list {
            let mut out = String::new();
            let vmid = n.vmid.map(|v| format!(" (vmid {v})")).unwrap_or_default();
            writeln!(out, "? {} {}{vmid}", paint.yellow(word), printable(&format!("{}/{}", n.kind, n.name)))?;
            block(&mut out, "    ", &n.why, look)?;
            all.push(out);
        }
    }
    for p in &plan.pending {
        let value = |v: &Option<String>| v.as_ref().map_or_else(|| "(not set)".to_owned(), |v| short(v));
        let id = printable(&format!("{}/{}", p.kind, p.name));
        let what = format!(
            "{} is {} until the guest restarts, then {}",
            p.key,
            value(&p.current),
            value(&p.pending)
        );
        let mut out = format!(". {} {id}: {}\n", paint.yellow("pending"), printable(&what));
        if !look.fits(". pending : ".len() + id.chars().count() + what.chars().count()) {
            out = format!(". {} {id}\n", paint.yellow("pending"));
            block(&mut out, "    ", &what, look)?;
        }
        all.push(out);
    }
    Ok(all)
}

/// A text of one or more lines, each indented; a terminal's lines end between words.
fn block(out: &mut String, indent: &str, text: &str, look: Look) -> anyhow::Result<()> {
    let width = look.width.map(|width| width.saturating_sub(TRUNK + indent.len()).max(NARROWEST));
    let text = printable(text.trim_end());
    let lines = text.lines().flat_map(|line| wrapped(line, width));
    for (i, line) in lines.enumerate() {
        let lead = if i == 0 { indent.to_owned() } else { " ".repeat(indent.len()) };
        writeln!(out, "{lead}{line}")?;
    }
    Ok(())
}

/// A line in pieces of this many columns; a longer word stays whole.
fn wrapped(line: &str, width: Option<usize>) -> Vec<&str> {
    let Some(width) = width else { return vec![line] };
    let (mut pieces, mut rest) = (Vec::new(), line);
    while rest.chars().count() > width {
        // The last blank that leaves a piece that fits, else the first one.
        let fits = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
        let (head, tail) = rest.split_at(fits);
        let end = match tail.starts_with(' ') {
            true => Some(fits),
            false => head.rfind(' ').filter(|at| *at > 0).or(tail.find(' ').map(|at| fits + at)),
        };
        let Some(end) = end else { break };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece.trim_end());
        rest = after.trim_start();
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

fn summary(plans: &[ClusterPlan], paint: Paint) -> String {
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
            let part = format!("{n} {what}");
            parts.push(if what == "to delete" { paint.alarm(&part) } else { part });
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
        return paint.green(&format!("No changes in {}.", count(plans.len(), "cluster")));
    }
    format!("{} {}.", paint.bold("Plan:"), parts.join(", "))
}

fn emit(text: &str) -> anyhow::Result<()> {
    let mut out = say::Stdout;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_model::Anomaly;

    fn change(key: &str, field: &str, from: Option<&str>, to: Option<&str>) -> Change {
        Change {
            field: field.to_owned(),
            key: key.to_owned(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            sensitive: false,
        }
    }

    fn act(verb: Verb, name: &str, vmid: u32, reason: &str, changes: Vec<Change>) -> Action {
        Action {
            id: format!("{verb}:VM/{name}"),
            verb,
            kind: "VM".to_owned(),
            name: name.to_owned(),
            node: Some("pve01".to_owned()),
            vmid: Some(vmid),
            level: 0,
            after: Vec::new(),
            disruptive: verb == Verb::Delete,
            reason: reason.to_owned(),
            changes,
            subject: None,
            steps: Vec::new(),
            digest: None,
            ended: None,
        }
    }

    fn plans() -> Vec<ClusterPlan> {
        let mut plan = ClusterPlan::new("lab");
        plan.commit = Some("0123456789abcdef0123456789abcdef01234567".to_owned());
        plan.actions = vec![
            act(Verb::Create, "api", 101, "no guest 101 exists", vec![]),
            act(
                Verb::Update,
                "web",
                100,
                "it differs from its manifest",
                vec![
                    change("memory", "/spec/memory", Some("8192"), Some("2048")),
                    change("description", "/spec/pve-description", None, Some("two\nlines")),
                    change("onboot", "/spec/options/onboot", Some("1"), None),
                ],
            ),
            act(Verb::Delete, "old", 300, "it is owned and no manifest wants it", vec![]),
        ];
        plan.anomalies = vec![Anomaly {
            code: "foreign".to_owned(),
            severity: Severity::Warning,
            kind: "VM".to_owned(),
            name: "db".to_owned(),
            node: None,
            vmid: Some(9000),
            message: "vmid 9000 is somebody else's".to_owned(),
            help: Some("take another vmid".to_owned()),
        }];
        vec![plan, ClusterPlan::new("quiet")]
    }

    fn look(boxes: bool, color: Color, width: Option<usize>) -> Look {
        Look { paint: Paint::new(color), boxes, width }
    }

    #[test]
    fn a_plan_is_a_tree_with_aligned_fields_and_a_summary() {
        let text = plan_text(&plans(), look(true, Color::Never, None)).unwrap();
        let wanted = "\
cluster lab (commit 0123456789)
├─ + create VM/api on pve01, vmid 101
│      no guest 101 exists
├─ ~ update VM/web on pve01, vmid 100
│      it differs from its manifest
│      memory       8192      -> 2048        /spec/memory
│      description  (not set) -> two\\nlines  /spec/pve-description
│      onboot       1         -> (removed)   /spec/options/onboot
├─ - DELETE VM/old on pve01, vmid 300
│      it is owned and no manifest wants it
└─ ! anomaly VM/db (vmid 9000) [foreign]
       vmid 9000 is somebody else's
       help: take another vmid

cluster quiet
  converged, nothing to do

Plan: 1 to create, 1 to update, 1 to delete, 1 anomaly.
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn without_utf8_the_tree_is_drawn_in_ascii() {
        let text = plan_text(&plans(), look(false, Color::Never, None)).unwrap();
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("|- - DELETE VM/old") && text.contains("`- ! anomaly"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_gets_one_part_of_a_field_a_line() {
        let text = plan_text(&plans(), look(true, Color::Never, Some(50))).unwrap();
        assert!(text.contains("│      memory  /spec/memory\n│        8192 -> 2048\n"), "{text}");
        let long = text.lines().filter(|l| l.contains("->")).map(|l| l.chars().count()).max();
        assert!(long <= Some(50), "{text}");
    }

    #[test]
    fn a_narrow_terminal_gets_its_prose_between_the_words_and_beside_the_trunk() {
        let mut plans = plans();
        let plan = &mut plans[0];
        plan.anomalies[0].message =
            "vmid 9000 is a guest that carries no owner tag and so is not touched".into();
        plan.actions[1].disruptive = true;
        plan.pending = vec![proxops_model::plan::Pending {
            kind: "VM".to_owned(),
            name: "web".to_owned(),
            node: None,
            vmid: Some(100),
            key: "memory".to_owned(),
            current: Some("2048".to_owned()),
            pending: Some("4096".to_owned()),
        }];
        let text = plan_text(&plans, look(true, Color::Never, Some(40))).unwrap();
        let wanted = "\
├─ ! anomaly VM/db (vmid 9000) [foreign]
│      vmid 9000 is a guest that carries
│      no owner tag and so is not
│      touched
│      help: take another vmid
└─ . pending VM/web
       memory is 2048 until the guest
       restarts, then 4096
";
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains("│      (disruptive)\n"), "{text}");
        let wide = text.lines().find(|line| line.chars().count() > 40 && !line.starts_with("Plan:"));
        assert_eq!(wide, None, "{text}");
        // A pipe gets whole lines.
        let piped = plan_text(&plans, look(true, Color::Never, None)).unwrap();
        assert!(piped.contains("that carries no owner tag and so is not touched\n"), "{piped}");
        assert!(piped.contains(". pending VM/web: memory is 2048 until the guest restarts, then 4096\n"));
    }

    #[test]
    fn a_line_is_cut_between_words_and_a_long_word_stays_whole() {
        assert_eq!(wrapped("one two three", Some(7)), ["one two", "three"]);
        assert_eq!(wrapped("one two three", Some(6)), ["one", "two", "three"]);
        assert_eq!(wrapped("/a/very/long/path and more", Some(8)), ["/a/very/long/path", "and more"]);
        assert_eq!(wrapped("größer äöü", Some(6)), ["größer", "äöü"]);
        assert_eq!(wrapped("", Some(6)), [""]);
        assert_eq!(wrapped("one two three", None), ["one two three"]);
    }

    #[test]
    fn a_delete_is_red_bold_and_said_in_capitals() {
        let text = plan_text(&plans(), look(true, Color::Always, None)).unwrap();
        assert!(text.contains("\u{1b}[1;31m- DELETE VM/old on pve01, vmid 300\u{1b}[0m"), "{text:?}");
        assert!(text.contains("\u{1b}[1;31m1 to delete\u{1b}[0m"), "{text:?}");
        // Colours change nothing else.
        let plain: String = text
            .split('\u{1b}')
            .enumerate()
            .map(|(i, part)| if i == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) })
            .collect();
        assert_eq!(plain, plan_text(&plans(), look(true, Color::Never, None)).unwrap());
    }
}
