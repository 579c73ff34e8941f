//! Which kind an object is adopted as.

use proxops_model::kind::{GuestType, KindApi, KindSet, Target};

/// Built-in kinds come first: where a third-party kind shares their target, unclaimed objects are theirs.
const BUILT_IN: [&str; 7] = ["VM", "TemplateVM", "LXC", "TemplateCT", "ISO", "CTTemplate", "DiskImage"];

fn find(kinds: &dyn KindSet, fits: impl Fn(&Target) -> bool) -> Option<&dyn KindApi> {
    let all = kinds.all();
    let rank =
        |kind: &dyn KindApi| BUILT_IN.iter().position(|b| *b == kind.info().kind).unwrap_or(usize::MAX);
    all.into_iter().filter(|kind| fits(&kind.info().target)).min_by_key(|kind| rank(*kind))
}

/// The kind of guests of this type and mark.
pub(crate) fn guest(kinds: &dyn KindSet, guest_type: GuestType, template: bool) -> Option<&dyn KindApi> {
    find(
        kinds,
        |t| matches!(t, Target::Guest { guest_type: g, template: m } if *g == guest_type && *m == template),
    )
}

/// The kind of files of this content type.
pub(crate) fn file<'k>(kinds: &'k dyn KindSet, content: &str) -> Option<&'k dyn KindApi> {
    find(kinds, |t| matches!(t, Target::Artifact { content: c, .. } if c == content))
}

/// What a guest is called before its kind is asked.
pub(crate) fn guest_word(guest_type: GuestType, template: bool) -> &'static str {
    match (guest_type, template) {
        (GuestType::Qemu, false) => "VM",
        (GuestType::Qemu, true) => "TemplateVM",
        (GuestType::Lxc, false) => "LXC",
        (GuestType::Lxc, true) => "TemplateCT",
    }
}

/// The same for a file.
pub(crate) fn content_word(content: &str) -> &str {
    match content {
        "iso" => "ISO",
        "vztmpl" => "CTTemplate",
        "import" => "DiskImage",
        other => other,
    }
}
