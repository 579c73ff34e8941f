//! `sim`: the PVE simulator on loopback, until a signal.

use super::OK;
use crate::args::{Global, SimArgs};
use crate::{open, say, signals};
use anyhow::Context as _;
use proxops_sim::{Faults, Sim, SimOptions, Tls, World, seed};
use std::time::Duration;

pub async fn run(global: &Global, args: &SimArgs) -> anyhow::Result<u8> {
    open::logging(global, None, false);
    let cancel = signals::listen();
    let world = world(args.guests);
    let tls = (!args.http).then(|| Tls { ca_file: args.ca_file.clone(), ..Tls::default() });
    let options = SimOptions {
        port: args.port,
        tls,
        task_duration: Some(Duration::from_millis(300)),
        ..SimOptions::default()
    };
    let sim = Sim::start(world, options)
        .await
        .with_context(|| format!("the simulator can't listen on 127.0.0.1:{}", args.port))?;
    if let Some(file) = &args.faults {
        let text = proxops_model::file::text(file, proxops_repo::yaml::MAX_BYTES)
            .with_context(|| format!("can't read {}", file.display()))?;
        let parsed = proxops_repo::yaml::parse(text.as_bytes());
        if let Some(p) = parsed.problems.first() {
            anyhow::bail!("{}:{}:{}: {}", file.display(), p.at.line, p.at.column, p.message);
        }
        let value = parsed.documents.into_iter().next().map(|d| d.value).unwrap_or_default();
        let faults: Faults = serde_json::from_value(value)
            .with_context(|| format!("{} is not a list of faults", file.display()))?;
        sim.apply(faults);
    }
    say::out!("serving PVE 9.2 on {}", sim.url());
    if let (false, Some(ca)) = (args.http, &args.ca_file) {
        say::out!("ca-file: {}", ca.display());
    }
    say::out!("PROXOPS_PVE_TOKEN_VALUE='{}={}'", seed::TOKEN_ID, seed::TOKEN_SECRET);
    cancel.cancelled().await;
    Ok(OK)
}

fn world(guests: u32) -> World {
    if guests == 0 { seed::demo() } else { seed::fleet(guests).0 }
}
