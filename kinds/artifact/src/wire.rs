//! Downloads, and what a live file says.

use crate::check::{NO_URL, placements};
use crate::content::Content;
use crate::spec::FileSpec;
use proxops_kind::text::bool_text;
use proxops_kind::{
    Adopted, Anomaly, Change, Context, Creation, Diagnostic, DriftReport, Hole, Param, Placement,
    PlacementState, Presence, Refusal, Severity, Step,
};

/// The parameters of a download; the host adds node, storage, content and filename (fact S4). `None`
/// without a URL.
fn download(spec: &FileSpec) -> Option<Vec<Param>> {
    let mut params = vec![Param::text("url", spec.url.as_ref()?).at("/spec/url")];
    if let Some(checksum) = &spec.checksum {
        params.push(Param::text("checksum", checksum.value.to_ascii_lowercase()).at("/spec/checksum/value"));
        params.push(
            Param::text("checksum-algorithm", checksum.algorithm.as_str()).at("/spec/checksum/algorithm"),
        );
    }
    if let Some(compression) = spec.compression {
        params.push(Param::text("compression", compression.as_str()).at("/spec/compression"));
    }
    if let Some(verify) = spec.verify_certificates {
        params.push(Param::text("verify-certificates", bool_text(verify)).at("/spec/verify-certificates"));
    }
    Some(params)
}

pub(crate) fn create(spec: &FileSpec) -> Result<Creation, Refusal> {
    let Some(params) = download(spec) else {
        return Err(vec![
            Diagnostic::error("no-url", "/spec/url", "the file is absent and `url` is left out").help(NO_URL),
        ]);
    };
    let steps = placements(spec).into_iter().map(|(copy, _)| Step::download_to(copy, params.clone()));
    Ok(Creation::new(steps.collect()))
}

/// Where the file is surely absent, once for a storage that its nodes share.
fn absent<'a>(
    spec: &FileSpec,
    states: &'a [PlacementState],
    context: &Context,
) -> impl Iterator<Item = (&'a Placement, String)> {
    let shared = context.storage(&spec.storage).is_some_and(|s| s.shared);
    let there = states.iter().any(|s| s.presence == Presence::Present);
    let most = match (shared, there) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => usize::MAX,
    };
    let wanted = placements(spec);
    states.iter().filter(|s| s.presence == Presence::Absent).take(most).filter_map(move |state| {
        let (_, at) = wanted.iter().find(|(copy, _)| *copy == state.at)?;
        Some((&state.at, at.clone()))
    })
}

pub(crate) fn drift(
    content: Content,
    spec: &FileSpec,
    states: &[PlacementState],
    context: &Context,
) -> DriftReport {
    let mut report = DriftReport::default();
    let params = download(spec);
    for (copy, at) in absent(spec, states, context) {
        let volid = content.volid(&copy.storage, &copy.filename);
        let Some(params) = &params else {
            report.anomalies.push(
                Anomaly::new(
                    Severity::Error,
                    "no-url",
                    format!("{volid} is absent on node {} and `url` is left out", copy.node),
                )
                .at("/spec/url")
                .help("add `url`, or put the file there"),
            );
            continue;
        };
        report.changes.push(Change::new(at, "filename", None, Some(format!("{volid} on {}", copy.node))));
        report.steps.push(Step::download_to(copy.clone(), params.clone()));
    }
    report
}

pub(crate) fn adopt(content: Content, states: &[PlacementState]) -> Result<Adopted, Refusal> {
    let mut copies: Vec<&Placement> =
        states.iter().filter(|s| s.presence == Presence::Present).map(|s| &s.at).collect();
    copies.sort_by(|a, b| (&a.storage, &a.filename, &a.node).cmp(&(&b.storage, &b.filename, &b.node)));
    copies.dedup();
    let Some(first) = copies.first().copied() else {
        return Err(vec![Diagnostic::error("file-absent", "", "the file is on none of the nodes")]);
    };
    if let Err(wrong) = content.check_filename(&first.filename) {
        let message = format!("the file name {:?} can't stand in a manifest: it {wrong}", first.filename);
        return Err(vec![Diagnostic::error("bad-filename", "", message)]);
    }
    let same = |copy: &&Placement| copy.storage == first.storage && copy.filename == first.filename;
    let mut nodes: Vec<String> = copies.into_iter().filter(same).map(|copy| copy.node.clone()).collect();
    let (storage, filename) = (first.storage.clone(), first.filename.clone());
    let mut spec = FileSpec { storage, filename, ..FileSpec::default() };
    if nodes.len() == 1 {
        spec.node = nodes.pop();
    } else {
        spec.nodes = Some(nodes);
    }
    let text = serde_json::to_string(&spec).map_err(|error| {
        vec![Diagnostic::error("not-json", "", format!("the spec can't be written: {error}"))]
    })?;
    let mut adopted = Adopted::new(text);
    adopted.incomplete.push(Hole::new("/spec/url", NO_URL));
    Ok(adopted)
}
