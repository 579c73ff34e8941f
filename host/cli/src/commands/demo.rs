//! `demo`: the simulator over TLS and the example repository, run through the real command line. Fails
//! if anything is not as it should be.

use super::OK;
use crate::args::{DemoArgs, Global};
use crate::{open, say};
use anyhow::{Context as _, bail, ensure};
use proxops_sim::{Sim, SimHandle, SimOptions, Tls, seed};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The example repository travels in the binary.
const FILES: &[(&str, &str)] = &[
    ("proxops.yaml", include_str!("../../../../examples/home-lab/proxops.yaml")),
    ("clusters/lab/config.yaml", include_str!("../../../../examples/home-lab/clusters/lab/config.yaml")),
    (
        "clusters/lab/resources.yaml",
        include_str!("../../../../examples/home-lab/clusters/lab/resources.yaml"),
    ),
    (
        "diskimage/base/debian-13.yaml",
        include_str!("../../../../examples/home-lab/diskimage/base/debian-13.yaml"),
    ),
    ("iso/lab/rescue.yaml", include_str!("../../../../examples/home-lab/iso/lab/rescue.yaml")),
    ("vm/lab/db-01.yaml", include_str!("../../../../examples/home-lab/vm/lab/db-01.yaml")),
    ("vm/lab/web-01.yaml", include_str!("../../../../examples/home-lab/vm/lab/web-01.yaml")),
];
/// Its cluster's address, which the demo points at the simulator.
const ADDRESS: &str = "https://pve.example.org:8006";

pub async fn run(global: &Global, args: &DemoArgs) -> anyhow::Result<u8> {
    open::logging(global, None, false);
    let folder = std::env::temp_dir().join(format!("proxops-demo-{}", std::process::id()));
    let result = show(&folder).await;
    if args.keep {
        say::out!("\nkept: {}", folder.display());
    } else {
        let _ = std::fs::remove_dir_all(&folder);
    }
    result?;
    say::out!("\nThe demo held: everything was as it should be.");
    Ok(OK)
}

async fn show(folder: &Path) -> anyhow::Result<()> {
    let demo = Demo::start(folder).await?;
    say::out!("A simulated PVE cluster serves {} over TLS, with its own CA.", demo.sim.url());
    say::out!("The repository is {}.", demo.repo.display());

    demo.say("What would be done: everything is new.");
    demo.proxops(&["diff"]).await?;
    let plan = demo.plan().await?;
    let made = verbs(&plan).into_iter().filter(|v| v == "create" || v == "download").count();
    ensure!(made == 5, "expected 2 VMs and 3 downloads to be planned, got {:?}", verbs(&plan));

    demo.say("Do it: downloads first, then the VMs that need them.");
    demo.proxops(&["apply"]).await?;

    demo.say("Nothing is left to do.");
    demo.proxops(&["diff", "--exit-code"]).await?;

    demo.say("Somebody changes a VM behind proxops' back: memory of web-01 goes to 8 GiB.");
    demo.meddle()?;
    demo.proxops(&["diff"]).await?;
    let plan = demo.plan().await?;
    ensure!(verbs(&plan) == ["update"], "expected one update, got {:?}", verbs(&plan));
    let change = plan.pointer("/clusters/0/actions/0/changes/0").cloned().unwrap_or_default();
    ensure!(
        change["key"] == "memory" && change["to"] == "2048",
        "expected memory to go back to 2048, got {change}"
    );

    demo.say("Put it right.");
    demo.proxops(&["apply"]).await?;
    demo.say("And see.");
    demo.proxops(&["status"]).await?;
    demo.proxops(&["diff", "--exit-code"]).await?;
    Ok(())
}

struct Demo {
    sim: SimHandle,
    repo: PathBuf,
    data: PathBuf,
}

impl Demo {
    async fn start(folder: &Path) -> anyhow::Result<Self> {
        let (repo, data) = (folder.join("repo"), folder.join("data"));
        std::fs::create_dir_all(&repo).with_context(|| format!("can't make {}", repo.display()))?;
        let ca_file = folder.join("ca.pem");
        let tls = Some(Tls { ca_file: Some(ca_file.clone()), ..Tls::default() });
        let options =
            SimOptions { tls, task_duration: Some(Duration::from_millis(700)), ..SimOptions::default() };
        let sim = Sim::start(seed::demo(), options).await?;
        for (path, text) in FILES {
            let target = repo.join(path);
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let address = format!("{}\n      ca-file: {}", sim.url(), ca_file.display());
            ensure!(
                !path.ends_with("config.yaml") || text.contains(ADDRESS),
                "the example's address changed"
            );
            std::fs::write(&target, text.replace(ADDRESS, &address))?;
        }
        Ok(Self { sim, repo, data })
    }

    fn say(&self, text: &str) {
        say::out!("\n--- {text}");
    }

    fn command(&self, words: &[&str]) -> anyhow::Result<tokio::process::Command> {
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command
            .args(words)
            .current_dir(&self.repo)
            .env("PROXOPS_GIT_PATH", &self.repo)
            .env("PROXOPS_PVE_TOKEN_VALUE", format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET))
            .arg("--data-dir")
            .arg(&self.data);
        Ok(command)
    }

    /// Runs a command as a person would; it must succeed.
    async fn proxops(&self, words: &[&str]) -> anyhow::Result<()> {
        say::out!("$ proxops {}", words.join(" "));
        let status = self.command(words)?.status().await?;
        if !status.success() {
            bail!("proxops {} ended with {status}", words.join(" "));
        }
        Ok(())
    }

    async fn plan(&self) -> anyhow::Result<Value> {
        let out = self.command(&["diff", "-o", "json"])?.output().await?;
        Ok(serde_json::from_slice(&out.stdout)?)
    }

    /// A change in PVE's own interface.
    fn meddle(&self) -> anyhow::Result<()> {
        let caller = proxops_sim::Caller::root();
        let params = serde_json::json!({"memory": "8192"});
        let mut world = self.sim.world();
        world
            .call(&caller, "PUT", "/nodes/pve01/qemu/111/config", params)
            .map_err(|refused| anyhow::anyhow!("the simulator refused the change: {refused:?}"))?;
        Ok(())
    }
}

fn verbs(plan: &Value) -> Vec<String> {
    let actions = plan.pointer("/clusters/0/actions").and_then(Value::as_array);
    actions.into_iter().flatten().filter_map(|a| a["verb"].as_str()).map(str::to_owned).collect()
}
