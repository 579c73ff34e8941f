//! Processor and memory.

use crate::spec::VmSpec;
use crate::wanted::{Token, Wanted, When, any_case, boolean, exact, number, set};
use proxops_kind::{LiveView, Props, Table, Words, text::bool_text};

/// PVE's `cpu` (fact Q14).
pub static CPU: Table = Table::with_default("cputype");
/// PVE's `memory` (fact Q18).
pub static MEMORY: Table = Table::with_default("current");

/// Flags that a VM may name (fact Q14).
pub const FLAGS: [&str; 13] = [
    "aes",
    "amd-no-ssb",
    "amd-ssbd",
    "hv-evmcs",
    "hv-tlbflush",
    "ibpb",
    "md-clear",
    "nested-virt",
    "pcid",
    "pdpe1gb",
    "spec-ctrl",
    "ssbd",
    "virt-ssbd",
];

/// Whether the guest may run virtual machines, and where the manifest says so.
pub fn nested_virt(spec: &VmSpec) -> Option<(bool, &'static str)> {
    let old = spec.options.nested_virt.map(|v| (v, "/spec/options/nested-virt"));
    spec.cpu.nested_virt.map(|v| (v, "/spec/cpu/nested-virt")).or(old)
}

/// Whether the guest is told that it is virtual, and where the manifest says so.
pub fn hidden(spec: &VmSpec) -> Option<(bool, &'static str)> {
    let old = spec.options.hidden.map(|v| (v, "/spec/options/hidden"));
    spec.cpu.hidden.map(|v| (v, "/spec/cpu/hidden")).or(old)
}

/// The wanted `cpu` and `memory`.
pub fn wanted(spec: &VmSpec, live: Option<&LiveView<'_>>, out: &mut Vec<Wanted>) {
    let mut tokens = vec![Token {
        key: "cputype",
        want: Some(spec.cpu.model.clone()),
        default: Some("kvm64"),
        same: exact,
    }];
    let live = live.and_then(|l| l.text("cpu")).map(|text| Props::parse(text, &CPU));
    if let Some(want) = wanted_flags(spec, live.as_ref().and_then(|p| p.get("flags"))) {
        tokens.push(match want.is_empty() {
            true => Token::gone("flags"),
            false => Token { key: "flags", want: Some(want), default: None, same: set },
        });
    }
    if let Some((hidden, _)) = hidden(spec) {
        let want = Some(bool_text(hidden).to_owned());
        tokens.push(Token { key: "hidden", want, default: Some("0"), same: boolean });
    }
    out.push(Wanted::tokens("/spec/cpu", "cpu", &CPU, tokens, When::Stop).places(vec![
        ("cputype", "/spec/cpu/type"),
        ("flags", flags_place(spec)),
        ("hidden", hidden(spec).map_or("/spec/cpu", |(_, at)| at)),
    ]));

    let mib = spec.memory.mib().unwrap_or_default().to_string();
    let memory = vec![Token { key: "current", want: Some(mib), default: Some("512"), same: number }];
    out.push(Wanted::tokens("/spec/memory", "memory", &MEMORY, memory, When::Hotplug("memory")));
}

/// Where the manifest speaks of flags.
fn flags_place(spec: &VmSpec) -> &'static str {
    match nested_virt(spec) {
        Some((_, at)) if spec.cpu.flags.is_none() => at,
        _ => "/spec/cpu/flags",
    }
}

/// The flags that should be there, `;`-joined; `None` when the manifest says nothing about them.
fn wanted_flags(spec: &VmSpec, live: Option<&str>) -> Option<String> {
    let nested = nested_virt(spec).map(|(v, _)| v);
    if spec.cpu.flags.is_none() && nested.is_none() {
        return None;
    }
    let live = Words::parse(live.unwrap_or_default()).0;
    let is_nested = |f: &String| f.trim_start_matches(['+', '-']) == "nested-virt";
    let mut flags = match &spec.cpu.flags {
        Some(flags) => {
            let mut flags: Vec<String> = flags.iter().map(signed).collect();
            // Not owned by the list: the field `nested-virt` is for that.
            if nested.is_none() && !flags.iter().any(is_nested) {
                flags.extend(live.iter().filter(|f| is_nested(f)).cloned());
            }
            flags
        }
        None => live,
    };
    match nested {
        Some(true) => {
            flags.retain(|f| f == "+nested-virt" || !is_nested(f));
            if !flags.iter().any(is_nested) {
                flags.push("+nested-virt".to_owned());
            }
        }
        Some(false) => {
            flags.retain(|f| f == "-nested-virt" || !is_nested(f));
            // Only the host's own model brings the flag by itself.
            if any_case(&spec.cpu.model, "host") && !flags.iter().any(is_nested) {
                flags.push("-nested-virt".to_owned());
            }
        }
        None => {}
    }
    Some(flags.join(";"))
}

/// Whether PVE lets a VM set this signed flag.
pub fn is_flag(flag: &str) -> bool {
    flag.strip_prefix(['+', '-']).is_some_and(|name| FLAGS.contains(&name))
}

/// A flag with its sign; without one it is switched on.
pub fn signed(flag: &str) -> String {
    if flag.starts_with(['+', '-']) { flag.to_owned() } else { format!("+{flag}") }
}

/// Takes a live `cpu` over; returns what the manifest has no word for.
pub fn adopt(spec: &mut VmSpec, live: Option<&str>) -> Vec<String> {
    let props = Props::parse(live.unwrap_or("kvm64"), &CPU);
    let mut rest = Vec::new();
    spec.cpu.model = "kvm64".to_owned();
    for (key, value) in props.iter() {
        match key {
            "cputype" => spec.cpu.model = value.to_owned(),
            "hidden" => spec.cpu.hidden = proxops_kind::text::parse_bool(value).filter(|b| *b),
            "flags" => {
                let mut flags = Words::parse(value).0;
                // The list owns all flags, so one that it can't name leaves all of them alone.
                if !flags.iter().all(|f| is_flag(f)) {
                    rest.push(format!("flags={value}"));
                    continue;
                }
                if flags.iter().any(|f| f == "+nested-virt") {
                    spec.cpu.nested_virt = Some(true);
                    flags.retain(|f| f != "+nested-virt");
                }
                if !flags.is_empty() {
                    spec.cpu.flags = Some(Words(flags));
                }
            }
            _ => rest.push(format!("{key}={value}")),
        }
    }
    rest
}

/// MiB of a live `memory`; PVE's default is 512.
pub fn live_mib(live: Option<&str>) -> u64 {
    let props = Props::parse(live.unwrap_or("512"), &MEMORY);
    props.get("current").and_then(|t| proxops_kind::text::number(t).parse().ok()).unwrap_or(512)
}
