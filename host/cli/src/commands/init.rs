//! `init`: a new repository, from nothing or around an endpoint. Files that are there stay as they are.

use super::OK;
use crate::args::{AdoptArgs, Global, InitArgs, Output};
use crate::say;
use crate::{open, prompt};
use anyhow::{Context as _, bail};
use proxops_adopt::{SCHEMAS, schema_file};
use proxops_kinds::Kinds;
use proxops_model::kind::{KindInfo, Target};
use proxops_model::text::printable;
use proxops_secrets::{IdentitySources, Secret};
use std::fs;
use std::path::{Path, PathBuf};

/// Stands for an address that is not known yet; no two clusters may share one.
fn placeholder(cluster: &str) -> String {
    format!("https://{cluster}.pve.example.org:8006")
}

pub async fn run(global: &Global, args: &InitArgs) -> anyhow::Result<u8> {
    if global.output != Output::Text {
        bail!("init speaks to people only: leave -o out");
    }
    let name = match global.cluster.as_slice() {
        [] => prompt::line("Name of the cluster", Some("main"))?,
        [name] => name.clone(),
        _ => bail!("init makes one cluster: give --cluster once"),
    };
    if !proxops_repo::is_resource_name(&name) || name == "base" {
        bail!(
            "--cluster {name}: use lower-case letters, digits and hyphens; `base` is the folder of shared manifests"
        );
    }
    let root = root(args.dir.as_deref())?;
    let folder = root.join("clusters").join(&name);
    if folder.join("config.yaml").exists() {
        bail!(
            "{} is there already: cluster {name} is configured. `proxops adopt --cluster {name}` goes on from there",
            folder.join("config.yaml").display()
        );
    }
    // Whatever may be refused is refused before anything is written.
    let endpoint = Endpoint::find(args, &name)?;
    let kinds = open::kinds(global, &[])?.kinds;
    let recipients = recipients(&root)?;
    let new = make_tree(&root)?;
    let mut site = Site { root: root.clone(), written: Vec::new(), kept: Vec::new() };
    if let Err(error) = fill(&mut site, &endpoint, &kinds, &recipients, &name) {
        if new {
            let _ = fs::remove_dir_all(root.join(".git"));
        }
        return Err(error);
    }
    site.tell(&endpoint, &name);
    if !endpoint.known
        || endpoint.credentials.is_empty()
        || !prompt::yes(&format!("Adopt what cluster {name} has now (PVE is only read)?"))?
    {
        return Ok(OK);
    }
    let global = Global { cluster: vec![name], git_path: Some(root), ..global.clone() };
    super::adopt::run(&global, &AdoptArgs { adopt_secrets: true, ..AdoptArgs::default() }).await
}

/// Writes what is not there yet.
fn fill(
    site: &mut Site,
    endpoint: &Endpoint,
    kinds: &Kinds,
    recipients: &[String],
    name: &str,
) -> anyhow::Result<()> {
    site.write(".sops.yaml", &sops_config(recipients))?;
    site.write(
        ".gitignore",
        "# Private keys and decrypted secrets stay out.\nkeys.txt\n*.agekey\n*.dec.yaml\n",
    )?;
    site.write("ci/proxops.yaml", &ci(name))?;
    let file = format!("clusters/{name}/secrets.sops.yaml");
    let credentials: Vec<(&str, Secret)> =
        endpoint.credentials.iter().map(|(_, key, secret)| (*key, secret.clone())).collect();
    let document =
        proxops_secrets::cluster_document(&file, recipients, &credentials, jiff::Timestamp::now())?;
    site.write(&file, &document)?;
    site.write(&format!("clusters/{name}/resources.yaml"), "resources: []\n")?;
    site.schemas(kinds, name)?;
    // Last: a cluster that has this file is configured.
    site.write(&format!("clusters/{name}/config.yaml"), &endpoint.config(name))
}

/// The tree: the one around the folder, or a new one in it, which is not made yet.
fn root(dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let dir = proxops_repo::resolved(&dir.map_or(here.clone(), |dir| here.join(dir)));
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(&dir);
    Ok(proxops_repo::discover(there).unwrap_or(dir))
}

/// Makes the tree a git repository. `true` = it was none.
fn make_tree(root: &Path) -> anyhow::Result<bool> {
    if root.join(".git").exists() {
        return Ok(false);
    }
    fs::create_dir_all(root).with_context(|| format!("can't make the folder {}", root.display()))?;
    let mut git = std::process::Command::new("git");
    proxops_secrets::without_secrets(&mut git);
    match git.args(["init", "--quiet"]).current_dir(root).status() {
        Ok(status) if status.success() => Ok(true),
        Ok(status) => bail!("`git init` in {} ended with {status}", root.display()),
        Err(error) => bail!("{} is no git repository, and `git init` can't be run: {error}", root.display()),
    }
}

/// Where the cluster is and how to log in.
struct Endpoint {
    url: String,
    /// Not the placeholder.
    known: bool,
    fingerprint: Option<String>,
    ca_file: Option<PathBuf>,
    nodes: Vec<String>,
    /// Field of `secrets.pve`, name in the document, value.
    credentials: Vec<(&'static str, &'static str, Secret)>,
}

impl Endpoint {
    /// With the checks of whoever reads `config.yaml`. What is refused is not repeated: a password may be in it.
    fn find(args: &InitArgs, name: &str) -> anyhow::Result<Self> {
        let placeholder = placeholder(name);
        let url = match &args.base_url {
            Some(url) => url.clone(),
            None => prompt::line("Address of PVE", Some(&placeholder))?,
        };
        if let Err((message, help)) = proxops_repo::Endpoint::parse(&url) {
            bail!("--base-url can't be used: {message}; {help}");
        }
        let known = url != placeholder;
        for (i, node) in args.nodes.iter().enumerate() {
            if !proxops_repo::is_node_name(node) {
                bail!("--nodes: `{}` is not a node's name; as `pvecm nodes` shows it", printable(node));
            }
            if args.nodes.iter().take(i).any(|other| other == node) {
                bail!("--nodes: node {node} is named twice");
            }
        }
        let fingerprint = match (&args.fingerprint, &args.ca_file) {
            (None, None) if url.starts_with("https://") && known => {
                let text = prompt::line(
                    "SHA-256 fingerprint of its certificate (`pvenode cert info`; empty: its CA is trusted)",
                    Some(""),
                )?;
                Some(text).filter(|text| !text.is_empty())
            }
            (given, _) => given.clone(),
        };
        if fingerprint.as_deref().is_some_and(|text| proxops_repo::fingerprint(text).is_none()) {
            bail!(
                "--fingerprint is not a SHA-256 fingerprint: 32 hex pairs joined by colons, as `pvenode cert info` shows it"
            );
        }
        let ca_file = args.ca_file.as_ref().map(|file| file.canonicalize().unwrap_or_else(|_| file.clone()));
        let credentials = credentials(known)?;
        Ok(Self { url, known, fingerprint, ca_file, nodes: args.nodes.clone(), credentials })
    }

    fn config(&self, name: &str) -> String {
        let mut text = format!("pve:\n  clusters:\n    {name}:\n      base-url: {}\n", quoted(&self.url));
        if !self.known {
            text.push_str("      # TODO: the address of one of its nodes\n");
        }
        match (&self.fingerprint, &self.ca_file) {
            (Some(print), _) => text.push_str(&format!("      fingerprint: {}\n", quoted(print))),
            (None, Some(file)) => text.push_str(&format!("      ca-file: {}\n", quoted(&file.display().to_string()))),
            (None, None) => text.push_str(
                "      # For a certificate of PVE's own authority: ca-file: pve-root-ca.pem, or fingerprint: \"AB:CD:...\"\n",
            ),
        }
        if !self.nodes.is_empty() {
            let nodes: Vec<String> = self.nodes.iter().map(|node| quoted(node)).collect();
            text.push_str(&format!("      nodes: [{}]\n", nodes.join(", ")));
        }
        if self.credentials.iter().any(|(field, ..)| *field == "password") {
            text.push_str("      auth: ticket\n");
        }
        text.push_str("      secrets-file: secrets.sops.yaml\n");
        if !self.credentials.is_empty() {
            text.push_str("      secrets:\n        pve:\n");
            for (field, key, _) in &self.credentials {
                text.push_str(&format!("          {field}: {key}\n"));
            }
        }
        text
    }
}

/// From the environment, as every command takes them; else asked for on a terminal.
fn credentials(known: bool) -> anyhow::Result<Vec<(&'static str, &'static str, Secret)>> {
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty()).map(Secret::new);
    let whole = env("PROXOPS_PVE_TOKEN_VALUE");
    if let (None, Some(user), Some(password)) = (&whole, env("PROXOPS_PVE_USER"), env("PROXOPS_PVE_PASSWORD"))
    {
        return Ok(vec![("user", "pve-user", user), ("password", "pve-password", password)]);
    }
    let whole = match whole {
        Some(whole) => whole,
        None if !known || !prompt::is_terminal() => return Ok(Vec::new()),
        None => prompt::secret("API token (user@realm!name=secret; empty: later)")?,
    };
    if whole.is_empty() {
        return Ok(Vec::new());
    }
    let parts = whole.expose().split_once('=').and_then(|(id, secret)| Some((id.split_once('!')?, secret)));
    let Some(((user, id), secret)) =
        parts.filter(|((user, id), secret)| user.contains('@') && !id.is_empty() && !secret.is_empty())
    else {
        bail!("the API token is not of the form user@realm!name=secret");
    };
    Ok(vec![
        ("user", "pve-user", Secret::new(user)),
        ("token-id", "pve-token-id", Secret::new(id)),
        ("token", "pve-token", Secret::new(secret)),
    ])
}

/// For whom secrets are encrypted: whom the repository's rules name, else the age keys of this user, else a new key,
/// which is made outside the repository.
fn recipients(root: &Path) -> anyhow::Result<Vec<String>> {
    let rules = fs::read(root.join(".sops.yaml")).unwrap_or_default();
    let named: Vec<String> = String::from_utf8_lossy(&rules)
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.starts_with("age1") && word.len() > 50)
        .map(str::to_owned)
        .collect();
    if !named.is_empty() {
        return Ok(named);
    }
    if !rules.is_empty() {
        bail!(".sops.yaml names no age key (age1...): add one to it, or take the file away");
    }
    let sources = IdentitySources::from_process();
    let known = sources.age_recipients()?;
    if !known.is_empty() {
        return Ok(known);
    }
    let file = sources
        .default_key_file()
        .context("there is no home directory for a new age key: set HOME, or SOPS_AGE_KEY")?;
    if proxops_repo::resolved(&file).starts_with(root) {
        bail!("{} lies in the repository: a private key must not", file.display());
    }
    let public = proxops_secrets::create_age_key(&file, jiff::Timestamp::now())?;
    say::out!("A new age key was made: {} (public key {public}).", printable(&file.display().to_string()));
    say::out!("Keep a copy of it elsewhere: without it nobody can read the secrets of this repository.\n");
    Ok(vec![public])
}

fn sops_config(recipients: &[String]) -> String {
    format!(
        "# Who can read secrets: `sops updatekeys FILE` after a change here.\ncreation_rules:\n  - path_regex: \
         clusters/.*/secrets\\.sops\\.yaml$\n    age: {}\n",
        recipients.join(",")
    )
}

fn ci(name: &str) -> String {
    format!(
        "# An example: move it to .github/workflows/, or say the same in your CI.\n\
         name: proxops\n\
         on: [pull_request]\n\
         jobs:\n\
         \x20 validate:\n\
         \x20   runs-on: ubuntu-latest\n\
         \x20   steps:\n\
         \x20     - uses: actions/checkout@v4\n\
         \x20     # Put the proxops binary on PATH here.\n\
         \x20     - run: proxops validate       # offline: needs neither PVE nor secrets\n\
         \x20     # With network access to the cluster and the age key as a CI secret, the plan as a comment:\n\
         \x20     # - run: proxops diff --cluster {name} -o markdown >> \"$GITHUB_STEP_SUMMARY\"\n\
         \x20     #   env: {{SOPS_AGE_KEY: \"${{{{ secrets.SOPS_AGE_KEY }}}}\"}}\n"
    )
}

/// A text as YAML takes it in any case.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Files of the new repository.
struct Site {
    root: PathBuf,
    written: Vec<String>,
    kept: Vec<String>,
}

impl Site {
    fn write(&mut self, file: &str, text: &str) -> anyhow::Result<()> {
        let path = self.root.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("can't make the folder {}", folder.display()))?;
        }
        let new = fs::OpenOptions::new().write(true).create_new(true).open(&path);
        match new {
            Ok(mut new) => {
                std::io::Write::write_all(&mut new, text.as_bytes())
                    .with_context(|| format!("can't write {}", path.display()))?;
                self.written.push(file.to_owned());
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.kept.push(file.to_owned())
            }
            Err(error) => return Err(error).with_context(|| format!("can't write {}", path.display())),
        }
        Ok(())
    }

    /// Folders of the kinds, and what editors need to know of their fields.
    fn schemas(&mut self, kinds: &Kinds, cluster: &str) -> anyhow::Result<()> {
        let infos: Vec<&KindInfo> =
            kinds.infos().filter(|info| !matches!(info.target, Target::Object(_))).collect();
        for info in infos {
            let folder = self.root.join(&info.root).join(cluster);
            fs::create_dir_all(&folder)
                .with_context(|| format!("can't make the folder {}", folder.display()))?;
            let schema = serde_json::to_string_pretty(&proxops_kit::schema::manifest(info))?;
            self.write(&format!("{SCHEMAS}/{}", schema_file(&info.kind)), &format!("{schema}\n"))?;
        }
        Ok(())
    }

    fn tell(&self, endpoint: &Endpoint, name: &str) {
        say::out!("The repository is {}.", printable(&self.root.display().to_string()));
        for file in &self.written {
            say::out!("+ {}", printable(file));
        }
        for file in &self.kept {
            say::out!("= {} was there and stays as it is", printable(file));
        }
        say::out!("\nNext:");
        if !endpoint.known {
            say::out!("  put the cluster's address into clusters/{name}/config.yaml");
        }
        if endpoint.credentials.is_empty() {
            say::out!(
                "  `sops edit clusters/{name}/secrets.sops.yaml`: add pve-user, pve-token-id and pve-token below secrets:,"
            );
            say::out!(
                "  and name them in config.yaml: secrets: {{pve: {{user: pve-user, token-id: pve-token-id, token: pve-token}}}}"
            );
        }
        say::out!(
            "  `proxops adopt --cluster {name} --adopt-secrets` writes manifests for what the cluster has"
        );
        say::out!("  `proxops validate`, `git add -A`, `git commit`\n");
    }
}
