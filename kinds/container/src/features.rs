//! The `features` key: what a container may do, and who may allow it (facts L6, L7).

use crate::rows::{Row, flag, store};
use crate::spec::{ContainerSpec, Features};
use proxops_kind::text::{parse_bool, split_list};
use proxops_kind::{Props, Table, Words};

/// No key may stand alone.
pub static TABLE: Table = Table { default_key: None, aliases: &[] };

/// The keys inside `features`. Only `nesting` may be set by anybody but root@pam, and only in an
/// unprivileged container.
pub static ROWS: &[Row<Features>] = &[
    Row::<Features>::new(
        "nesting",
        "/nesting",
        |f| flag(f.nesting),
        |f, v| store(&mut f.nesting, parse_bool(v)),
    )
    .boolean(Some(false)),
    Row::<Features>::new("keyctl", "/keyctl", |f| flag(f.keyctl), |f, v| store(&mut f.keyctl, parse_bool(v)))
        .boolean(Some(false))
        .root_only(),
    Row::<Features>::new("fuse", "/fuse", |f| flag(f.fuse), |f, v| store(&mut f.fuse, parse_bool(v)))
        .boolean(Some(false))
        .root_only(),
    Row::<Features>::new("mknod", "/mknod", |f| flag(f.mknod), |f, v| store(&mut f.mknod, parse_bool(v)))
        .boolean(Some(false))
        .root_only(),
    Row::<Features>::new(
        "mount",
        "/mount",
        |f| f.mount.as_ref().map(|types| types.join(";")),
        |f, v| store(&mut f.mount, Some(Words::parse(v))),
    )
    .normal(|text| {
        let mut types: Vec<&str> = split_list(text).collect();
        types.sort_unstable();
        types.join(";")
    })
    .root_only(),
    Row::<Features>::new(
        "force_rw_sys",
        "/force-rw-sys",
        |f| flag(f.force_rw_sys),
        |f, v| store(&mut f.force_rw_sys, parse_bool(v)),
    )
    .boolean(Some(false))
    .root_only(),
];

/// The declared features, whether they stand in `features` or directly under `options`.
pub fn declared(spec: &ContainerSpec) -> Features {
    let Some(options) = &spec.options else { return Features::default() };
    let mut features = options.features.clone().unwrap_or_default();
    features.nesting = features.nesting.or(options.nesting);
    features.keyctl = features.keyctl.or(options.keyctl);
    features.fuse = features.fuse.or(options.fuse);
    features
}

/// Where a declared feature stands.
pub fn place(spec: &ContainerSpec, row: &Row<Features>) -> String {
    let inside =
        spec.options.as_ref().and_then(|o| o.features.as_ref()).is_some_and(|f| (row.get)(f).is_some());
    if inside { format!("/spec/options/features{}", row.at) } else { format!("/spec/options{}", row.at) }
}

/// A feature that a token may not change, with the reason.
pub fn needs_root(row: &Row<Features>, unprivileged: bool) -> Option<&'static str> {
    if !unprivileged {
        Some("features of a privileged container")
    } else if row.root_only {
        Some("features other than nesting")
    } else {
        None
    }
}

/// The features of a new container: those that are on.
pub fn new(features: &Features) -> Props {
    let mut props = Props::new(&TABLE);
    crate::rows::write_new(ROWS, features, &mut props);
    props
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::merge;
    use crate::spec::Options;

    #[test]
    fn foreign_tokens_stay_when_nesting_toggles() {
        let mut live = Props::parse("keyctl=1,some-new=1,nesting=1", &TABLE);
        assert!(merge(ROWS, &Features { nesting: Some(false), ..Features::default() }, &mut live));
        assert_eq!(live.to_string(), "keyctl=1,some-new=1,nesting=0");
    }

    #[test]
    fn an_explicit_false_is_not_sent_at_creation() {
        // Fact L7: even its presence asks for root@pam.
        let features = Features {
            nesting: Some(true),
            keyctl: Some(false),
            mount: Some(Words::default()),
            ..Features::default()
        };
        assert_eq!(new(&features).to_string(), "nesting=1");
        let features =
            Features { force_rw_sys: Some(true), mount: Some(Words::parse("nfs cifs")), ..features };
        assert_eq!(new(&features).to_string(), "nesting=1,mount=nfs;cifs,force_rw_sys=1");
    }

    #[test]
    fn both_places_mean_the_same() {
        let spec = ContainerSpec {
            options: Some(Options {
                nesting: Some(true),
                features: Some(Features { fuse: Some(true), ..Features::default() }),
                ..Options::default()
            }),
            ..ContainerSpec::default()
        };
        let features = declared(&spec);
        assert_eq!((features.nesting, features.fuse, features.keyctl), (Some(true), Some(true), None));
        assert_eq!(place(&spec, &ROWS[0]), "/spec/options/nesting");
        assert_eq!(place(&spec, &ROWS[2]), "/spec/options/features/fuse");
    }
}
