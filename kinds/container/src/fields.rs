//! The container's own keys that hold one value each.

use crate::env::Env;
use crate::rows::{Row, flag, store, text};
use crate::spec::{Arch, ConsoleMode, ContainerSpec, Cpu, Dns, Options, OsType};
use crate::startup::{self, Startup};
use proxops_kind::changes::{numeric, trimmed};
use proxops_kind::text::{address, parse_bool, split_list};
use proxops_kind::{Size, Words};

/// cgroup v2 keeps at most this many CPU units, and means this many when there are none (fact L11).
const MOST_UNITS: f64 = 10_000.0;

fn cpu(spec: &ContainerSpec) -> Option<&Cpu> {
    spec.cpu.as_ref()
}
fn cpu_mut(spec: &mut ContainerSpec) -> &mut Cpu {
    spec.cpu.get_or_insert_default()
}
fn dns(spec: &ContainerSpec) -> Option<&Dns> {
    spec.dns.as_ref()
}
fn dns_mut(spec: &mut ContainerSpec) -> &mut Dns {
    spec.dns.get_or_insert_default()
}
fn options(spec: &ContainerSpec) -> Option<&Options> {
    spec.options.as_ref()
}
fn options_mut(spec: &mut ContainerSpec) -> &mut Options {
    spec.options.get_or_insert_default()
}
fn joined(words: &Option<Words>) -> Option<String> {
    words.as_ref().map(|words| words.join(" "))
}
fn mib(text: &str) -> Option<Size> {
    numeric(text).parse().ok().map(Size::from_mib)
}

/// Every key but the host name, tags, features, `unprivileged` and the numbered ones, in the order of the
/// documentation.
pub static FIELDS: &[Row<ContainerSpec>] = &[
    Row::<ContainerSpec>::new(
        "description",
        "/pve-description",
        |s| s.pve_description.as_ref().map(|d| d.trim_end().to_owned()),
        |s, v| store(&mut s.pve_description, Some(v.trim_end().to_owned())),
    )
    .normal(trimmed)
    .at_once(),
    Row::<ContainerSpec>::new(
        "memory",
        "/memory",
        |s| text(s.memory?.mib()),
        |s, v| store(&mut s.memory, mib(v)),
    )
    .number()
    .default("512")
    .at_once(),
    Row::<ContainerSpec>::new("swap", "/swap", |s| text(s.swap?.mib()), |s, v| store(&mut s.swap, mib(v)))
        .number()
        .default("512")
        .at_once(),
    Row::<ContainerSpec>::new(
        "cores",
        "/cpu/cores",
        |s| text(cpu(s)?.cores),
        |s, v| store(&mut cpu_mut(s).cores, numeric(v).parse().ok()),
    )
    .number()
    .at_once(),
    Row::<ContainerSpec>::new(
        "cpulimit",
        "/cpu/limit",
        |s| text(cpu(s)?.limit),
        |s, v| store(&mut cpu_mut(s).limit, v.parse().ok()),
    )
    .number()
    .default("0")
    .at_once(),
    Row::<ContainerSpec>::new(
        "cpuunits",
        "/cpu/units",
        |s| text(cpu(s)?.units),
        |s, v| store(&mut cpu_mut(s).units, numeric(v).parse().ok()),
    )
    .normal(|units| match units.trim().parse::<f64>() {
        Ok(number) => number.min(MOST_UNITS).to_string(),
        Err(_) => units.to_owned(),
    })
    .default("100")
    .at_once(),
    Row::<ContainerSpec>::new(
        "nameserver",
        "/dns/nameservers",
        |s| joined(&dns(s)?.nameservers),
        |s, v| store(&mut dns_mut(s).nameservers, Some(Words::parse(v))),
    )
    .normal(|text| as_set(text, address)),
    Row::<ContainerSpec>::new(
        "searchdomain",
        "/dns/domain",
        |s| joined(&dns(s)?.domain),
        |s, v| store(&mut dns_mut(s).domain, Some(Words::parse(v))),
    )
    .normal(|text| as_set(text, str::to_ascii_lowercase)),
    Row::<ContainerSpec>::new(
        "arch",
        "/arch",
        |s| s.arch.map(|a| a.as_str().to_owned()),
        |s, v| store(&mut s.arch, Arch::parse(v)),
    )
    .default("amd64"),
    Row::<ContainerSpec>::new(
        "ostype",
        "/os-type",
        |s| s.os_type.map(|o| o.as_str().to_owned()),
        |s, v| store(&mut s.os_type, OsType::parse(v)),
    ),
    Row::<ContainerSpec>::new(
        "timezone",
        "/timezone",
        |s| s.timezone.clone(),
        |s, v| store(&mut s.timezone, Some(v.to_owned())),
    ),
    Row::<ContainerSpec>::new(
        "entrypoint",
        "/entrypoint",
        |s| s.entrypoint.clone(),
        |s, v| store(&mut s.entrypoint, Some(v.to_owned())),
    )
    .default("/sbin/init"),
    Row::<ContainerSpec>::new(
        "env",
        "/env",
        |s| s.env.as_ref().map(Env::wire),
        |s, v| store(&mut s.env, Some(Env::parse(v))),
    )
    .normal(|text| Env::parse(text).wire())
    .sensitive(),
    Row::<ContainerSpec>::new(
        "onboot",
        "/options/onboot",
        |s| flag(options(s)?.onboot),
        |s, v| store(&mut options_mut(s).onboot, parse_bool(v)),
    )
    .boolean(Some(false))
    .at_once(),
    Row::<ContainerSpec>::new(
        "startup",
        "/options/startup",
        |s| options(s)?.startup.as_ref().map(|startup| startup.0.clone()),
        |s, v| store(&mut options_mut(s).startup, Some(Startup(v.to_owned()))),
    )
    .normal(startup::canonical)
    .at_once(),
    Row::<ContainerSpec>::new(
        "protection",
        "/options/protection",
        |s| flag(options(s)?.protection),
        |s, v| store(&mut options_mut(s).protection, parse_bool(v)),
    )
    .boolean(Some(false))
    .at_once(),
    Row::<ContainerSpec>::new(
        "console",
        "/options/console",
        |s| flag(options(s)?.console),
        |s, v| store(&mut options_mut(s).console, parse_bool(v)),
    )
    .boolean(Some(true)),
    Row::<ContainerSpec>::new(
        "tty",
        "/options/ttys",
        |s| text(options(s)?.ttys.or(options(s)?.tty)),
        |s, v| store(&mut options_mut(s).ttys, numeric(v).parse().ok()),
    )
    .number()
    .default("2"),
    Row::<ContainerSpec>::new(
        "cmode",
        "/options/cmode",
        |s| options(s)?.cmode.map(|c| c.as_str().to_owned()),
        |s, v| store(&mut options_mut(s).cmode, ConsoleMode::parse(v)),
    )
    .default("tty"),
    Row::<ContainerSpec>::new(
        "hookscript",
        "/options/hookscript",
        |s| options(s)?.hookscript.clone(),
        |s, v| store(&mut options_mut(s).hookscript, Some(v.to_owned())),
    )
    .at_once()
    .root_only(),
];

/// A list in which neither order nor repetition matters.
fn as_set(text: &str, one: fn(&str) -> String) -> String {
    let mut items: Vec<String> = split_list(text).map(one).collect();
    items.sort_unstable();
    items.dedup();
    items.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str) -> &'static Row<ContainerSpec> {
        FIELDS.iter().find(|row| row.key == key).unwrap()
    }

    #[test]
    fn equal_values_have_many_spellings() {
        for (key, live, want) in [
            ("cpulimit", None, "0"),
            ("cpulimit", Some("0"), "0"),
            ("cpulimit", Some("1.50"), "1.5"),
            ("cpuunits", None, "100"),
            ("cpuunits", Some("10000"), "50000"),
            ("onboot", None, "0"),
            ("console", None, "1"),
            ("tty", None, "2"),
            ("cmode", None, "tty"),
            ("swap", None, "512"),
            ("description", Some("note\n"), "note"),
            ("description", None, ""),
            ("nameserver", Some("1.1.1.1,2606:4700::1111"), "2606:4700:0::1111 1.1.1.1"),
            ("startup", Some("down=60,order=2"), "2,down=60"),
            ("env", Some("B=2\0A=1"), "A=1\0B=2"),
        ] {
            assert!(row(key).same(live, want), "{key}: {live:?} is {want:?}");
        }
        for (key, live, want) in [
            ("cpulimit", Some("2"), "0"),
            ("onboot", Some("1"), "0"),
            ("description", Some("one\nthree\n"), "one\n\nthree"),
            ("description", Some("x\n"), ""),
            ("cores", None, "1"),
            ("startup", Some("order=2"), "order=2,up=30"),
            ("env", Some("A=1"), "A=1\0B=2"),
        ] {
            assert!(!row(key).same(live, want), "{key}: {live:?} is not {want:?}");
        }
    }

    #[test]
    fn what_waits_for_a_restart_is_known() {
        // Fact L15.
        let mut at_once: Vec<&str> = FIELDS.iter().filter(|row| row.at_once).map(|row| row.key).collect();
        at_once.sort_unstable();
        assert_eq!(
            at_once,
            [
                "cores",
                "cpulimit",
                "cpuunits",
                "description",
                "hookscript",
                "memory",
                "onboot",
                "protection",
                "startup",
                "swap"
            ]
        );
    }
}
