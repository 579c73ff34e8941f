//! What a run stands on: repositories in temporary folders, the simulator and the real binary as processes of their
//! own.

use anyhow::{Context as _, Result, bail, ensure};
use proxops_sim::{Sim, SimOptions, seed};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Name of the cluster of every repository.
pub const CLUSTER: &str = "fleet";

/// The API token of every simulated cluster.
pub fn token() -> String {
    format!("{}={}", seed::TOKEN_ID, seed::TOKEN_SECRET)
}

/// A simulator in a process of its own, over plain HTTP.
pub struct Served {
    child: Child,
    /// Such as `http://127.0.0.1:41234`.
    pub url: String,
}

impl Served {
    /// `estate:<clusters>:<guests>` (addresses with spaces between), `fleet:<n>`, `soak:<n>` (a fleet that is changed
    /// and disturbed), `empty` or `demo`, with tasks of this length.
    pub fn start(world: &str, task: Duration) -> Result<Self> {
        Self::slow(world, task, Duration::ZERO)
    }

    /// The same, with every answer held back this long.
    pub fn slow(world: &str, task: Duration, answer: Duration) -> Result<Self> {
        let millis = |time: Duration| time.as_millis().to_string();
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", world, &millis(task), &millis(answer)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().context("no stdout")?;
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        ensure!(!url.is_empty(), "the simulator did not start");
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It ends when its stdin does.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The simulator's side of [`Served::start`].
pub async fn serve(world_name: &str, task_ms: &str, answer_ms: &str) -> Result<()> {
    if let Some((clusters, guests)) = world_name.strip_prefix("estate:").and_then(|rest| rest.split_once(':'))
    {
        let mut sims = Vec::new();
        for _ in 0..clusters.parse::<u32>()? {
            sims.push(Sim::start(seed::fleet(guests.parse()?).0, SimOptions::default()).await?);
        }
        println!("{}", sims.iter().map(proxops_sim::SimHandle::url).collect::<Vec<_>>().join(" "));
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        return Ok(());
    }
    let world = match world_name.split_once(':') {
        // also soak:<n>
        Some((_, n)) => seed::fleet(n.parse()?).0,
        None if world_name == "demo" => seed::demo(),
        None => {
            let mut world = seed::empty();
            if let Some(storage) = world.storages.get_mut("local-lvm") {
                storage.total = 1 << 50;
            }
            world
        }
    };
    let task_duration = Some(Duration::from_millis(task_ms.parse()?));
    let sim = Sim::start(world, SimOptions { task_duration, ..SimOptions::default() }).await?;
    let answer = f64::from(answer_ms.parse::<u32>()?) / 1000.0;
    if answer > 0.0 {
        sim.inject(serde_json::from_value(json!({"path": "**", "delay": answer}))?);
    }
    println!("{}", sim.url());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    if world_name.starts_with("soak:") {
        tokio::select! {
            ended = ended => ended??,
            () = crate::soak::disturb(&sim) => 0,
        };
    } else {
        ended.await??;
    }
    Ok(())
}

/// A repository with one cluster.
pub struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    /// One file for each manifest. `url` is the cluster's address, `config` further lines of its entry.
    pub fn new(manifests: &[Value], url: &str, config: &[&str]) -> Result<Self> {
        let ground = Self::bare()?;
        let mut list = String::from("resources:\n");
        for manifest in manifests {
            let mut whole = manifest.clone();
            if let Some(whole) = whole.as_object_mut() {
                whole.insert("apiVersion".to_owned(), json!("proxops/v1alpha1"));
            }
            let name = manifest.pointer("/metadata/name").and_then(Value::as_str).context("no name")?;
            ground.write(&format!("vm/{CLUSTER}/{name}.yaml"), &yaml(&whole))?;
            list.push_str(&format!("  - ../../vm/{CLUSTER}/{name}.yaml\n"));
        }
        ground.write(&format!("clusters/{CLUSTER}/resources.yaml"), &list)?;
        let mut text = format!("pve:\n  clusters:\n    {CLUSTER}:\n      base-url: {url}\n");
        for line in config {
            text.push_str(&format!("      {line}\n"));
        }
        ground.write(&format!("clusters/{CLUSTER}/config.yaml"), &text)?;
        ground.git(&["init", "--quiet"])?;
        Ok(ground)
    }

    /// A cluster for each address, all with these manifests; `process` is proxops.yaml.
    pub fn estate(manifests: &[Value], urls: &[&str], process: &str) -> Result<Self> {
        let ground = Self::bare()?;
        ground.write("proxops.yaml", process)?;
        for (n, url) in urls.iter().enumerate() {
            let name = format!("c{n:02}");
            let mut all = String::new();
            for manifest in manifests {
                let mut whole = manifest.clone();
                if let Some(whole) = whole.as_object_mut() {
                    whole.insert("apiVersion".to_owned(), json!("proxops/v1alpha1"));
                }
                all.push_str(&format!("---\n{}", yaml(&whole)));
            }
            ground.write(&format!("vm/{name}/all.yaml"), &all)?;
            ground.write(
                &format!("clusters/{name}/resources.yaml"),
                &format!("resources: [../../vm/{name}/all.yaml]\n"),
            )?;
            let config = format!("pve:\n  clusters:\n    {name}:\n      base-url: {url}\n");
            ground.write(&format!("clusters/{name}/config.yaml"), &config)?;
        }
        ground.git(&["init", "--quiet"])?;
        Ok(ground)
    }

    /// The example repository, its cluster at `url`, all committed.
    pub fn example(url: &str) -> Result<Self> {
        let ground = Self::bare()?;
        let from = workspace().join("examples/home-lab");
        copy(&from, &ground.repo())?;
        let config = ground.repo().join("clusters/lab/config.yaml");
        let text = std::fs::read_to_string(&config)?;
        let address = "https://pve.example.org:8006";
        ensure!(text.contains(address), "the example's address changed");
        std::fs::write(&config, text.replace(address, url))?;
        ground.git(&["init", "--quiet"])?;
        ground.git(&["add", "-A"])?;
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"];
        ground.git(&[&who[..], &["commit", "--quiet", "-m", "Example"]].concat())?;
        Ok(ground)
    }

    fn bare() -> Result<Self> {
        let ground = Self { folder: tempfile::tempdir()? };
        std::fs::create_dir_all(ground.repo())?;
        Ok(ground)
    }

    /// The tree.
    pub fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// Journal and compiled kinds.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.repo().join(path);
        std::fs::create_dir_all(file.parent().context("no folder")?)?;
        Ok(std::fs::write(file, text)?)
    }

    /// Runs git in the tree.
    pub fn git(&self, words: &[&str]) -> Result<()> {
        let output = Command::new("git").args(words).current_dir(self.repo()).output()?;
        ensure!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The real binary in the tree, in an environment of its own.
    pub fn proxops(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(binary()?);
        command
            .args(words)
            .arg("--data-dir")
            .arg(self.data())
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("PROXOPS_PVE_TOKEN_VALUE", token())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs it; it must succeed. The time of the whole process, and its output.
    pub fn run(&self, words: &[&str]) -> Result<(Duration, Output)> {
        let mut command = self.proxops(words)?;
        let started = Instant::now();
        let output = command.output()?;
        let took = started.elapsed();
        if !output.status.success() {
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let start: String = out.chars().take(2000).collect();
            bail!("proxops {} ended with {}\n{start}{err}", words.join(" "), output.status);
        }
        Ok((took, output))
    }

    /// `diff` must find nothing at all, else the figures mean something else.
    pub fn converged(&self) -> Result<()> {
        self.run(&["diff", "--exit-code"]).map(|_| ()).context("the fleet is not converged")
    }
}

/// A document in block style, as people write it: a JSON scalar is a YAML scalar.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

fn block(value: &Value, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    let child = |value: &Value, text: &mut String| match value {
        Value::Object(_) | Value::Array(_) => {
            text.push('\n');
            block(value, depth + 1, text);
        }
        scalar => text.push_str(&format!(" {scalar}\n")),
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            text.push_str(&format!("{pad}{key}:"));
            child(value, text);
        }),
        Value::Array(items) => items.iter().for_each(|item| {
            text.push_str(&format!("{pad}-"));
            child(item, text);
        }),
        scalar => text.push_str(&format!("{pad}{scalar}\n")),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The top folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// The `proxops` binary beside this one.
fn binary() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("proxops"))
}

/// The `proxops` binary must lie beside this one, as `make bench` builds them.
pub fn need_binary() -> Result<()> {
    let binary = binary()?;
    ensure!(binary.exists(), "there is no {}: build it with `make bench`", binary.display());
    Ok(())
}

/// A kind of `examples/kinds`, as its author builds it.
pub fn build_example(name: &str) -> Result<PathBuf> {
    let binary = binary()?;
    let target = binary.ancestors().nth(2).context("no target folder")?.join("kinds");
    let package = format!("kind-example-{name}");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(workspace())
        .args([
            "build",
            "--quiet",
            "--locked",
            "--profile",
            "kind",
            "--target",
            "wasm32-wasip2",
            "-p",
            &package,
        ])
        .arg("--target-dir")
        .arg(&target)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR");
    ensure!(cargo.status()?.success(), "{package} could not be built");
    Ok(target.join("wasm32-wasip2/kind").join(format!("{}.wasm", package.replace('-', "_"))))
}
