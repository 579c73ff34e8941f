//! Short constructors for the contract's records.

use crate::types::*;

impl Diagnostic {
    /// One sentence about a place in the manifest.
    pub fn new(severity: Severity, code: &str, at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            code: code.to_owned(),
            at: at.into(),
            message: message.into(),
            help: None,
            ext: Vec::new(),
        }
    }
    /// An error at a place in the manifest.
    pub fn error(code: &str, at: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, at, message)
    }
    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Anomaly {
    /// What a person must know; `key` is the PVE key or slot.
    pub fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        let (at, key, help) = (None, None, None);
        Self { severity, code: code.to_owned(), at, key, message: message.into(), help, ext: Vec::new() }
    }
    /// Adds the place in the manifest.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }
    /// Adds the PVE key or slot.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Param {
    /// A text parameter.
    pub fn text(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: Value::Text(value.into()), at: None, ext: Vec::new() }
    }
    /// A parameter whose value the host takes from the cluster's secrets.
    pub fn secret(key: impl Into<String>, name: impl Into<String>) -> Self {
        Self { key: key.into(), value: Value::Secret(name.into()), at: None, ext: Vec::new() }
    }
    /// Adds where in the manifest it comes from.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }
}

impl ParamRef {
    /// A parameter by name.
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), at: None, ext: Vec::new() }
    }
    /// Adds where in the manifest it comes from.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }
}

impl Change {
    /// One field that differs.
    pub fn new(
        at: impl Into<String>,
        key: impl Into<String>,
        before: Option<String>,
        after: Option<String>,
    ) -> Self {
        let (sensitive, needs_stop) = (false, false);
        Self { at: at.into(), key: key.into(), before, after, sensitive, needs_stop, ext: Vec::new() }
    }
}

impl ResourceRef {
    /// A resource by kind and name.
    pub fn new(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }
}

impl Reference {
    /// This resource needs that one first.
    pub fn new(kind: &str, name: &str, at: impl Into<String>) -> Self {
        Self { to: ResourceRef::new(kind, name), at: at.into(), ext: Vec::new() }
    }
}

impl SecretUse {
    /// A secret that the manifest lists.
    pub fn new(name: &str, class: SecretClass, at: impl Into<String>) -> Self {
        Self { name: name.to_owned(), class, at: at.into(), ext: Vec::new() }
    }
}

impl StorageUse {
    /// A storage on the guest's own node.
    pub fn new(storage: &str, content: &str, at: impl Into<String>) -> Self {
        let (storage, content) = (storage.to_owned(), content.to_owned());
        Self { storage, node: None, content, at: at.into(), ext: Vec::new() }
    }
    /// Says on which node.
    #[must_use]
    pub fn on(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }
}

impl Hole {
    /// Something that a person must fill in.
    pub fn new(at: impl Into<String>, why: impl Into<String>) -> Self {
        Self { at: at.into(), why: why.into(), ext: Vec::new() }
    }
}

impl Gap {
    /// A live key that the manifest can't express; no value = redacted.
    pub fn new(key: impl Into<String>, value: Option<String>, why: impl Into<String>) -> Self {
        Self { key: key.into(), value, why: why.into(), ext: Vec::new() }
    }
}

impl Placement {
    /// One copy of an artifact.
    pub fn new(node: &str, storage: &str, filename: &str) -> Self {
        let (node, storage, filename) = (node.to_owned(), storage.to_owned(), filename.to_owned());
        Self { node, storage, filename, ext: Vec::new() }
    }
}

impl Identity {
    /// A guest.
    pub fn guest_id(node: &str, vmid: u32, name: Option<&str>) -> Self {
        Self::Guest(GuestId { node: node.to_owned(), vmid, name: name.map(str::to_owned), ext: Vec::new() })
    }
}

impl Validated {
    /// What the host needs to know, all lists empty.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            power: None,
            references: Vec::new(),
            secrets: Vec::new(),
            storages: Vec::new(),
            attributes: Vec::new(),
            incomplete: Vec::new(),
            ext: Vec::new(),
        }
    }
}

impl Target {
    /// A virtual machine or its template.
    pub fn qemu(template: bool) -> Self {
        Self::Guest(GuestTarget { guest_type: GuestType::Qemu, template, ext: Vec::new() })
    }
    /// A container or its template.
    pub fn lxc(template: bool) -> Self {
        Self::Guest(GuestTarget { guest_type: GuestType::Lxc, template, ext: Vec::new() })
    }
    /// A file of a content type, such as "iso".
    pub fn artifact_of(content: &str, extensions: &[&str]) -> Self {
        let extensions = extensions.iter().map(|e| (*e).to_owned()).collect();
        Self::Artifact(ArtifactTarget { content: content.to_owned(), extensions, ext: Vec::new() })
    }
}

impl Step {
    /// A clone of another guest.
    pub fn clone_of(source: ResourceRef, params: Vec<Param>) -> Self {
        Self::Clone(CloneStep { source, params, ext: Vec::new() })
    }
    /// Set and remove configuration keys.
    pub fn configure_with(set: Vec<Param>, unset: Vec<ParamRef>) -> Self {
        Self::Configure(ConfigureStep { set, unset, revert: Vec::new(), ext: Vec::new() })
    }
    /// Grow a volume to `bytes`.
    pub fn resize_to(disk: &str, bytes: u64, at: impl Into<String>) -> Self {
        Self::Resize(ResizeStep { disk: disk.to_owned(), bytes, at: at.into(), ext: Vec::new() })
    }
    /// Fetch one copy of an artifact.
    pub fn download_to(to: Placement, params: Vec<Param>) -> Self {
        Self::Download(DownloadStep { to, params, ext: Vec::new() })
    }
}

impl Creation {
    /// Steps without remarks.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, warnings: Vec::new(), anomalies: Vec::new(), ext: Vec::new() }
    }
}

impl Default for DriftReport {
    fn default() -> Self {
        let (changes, steps) = (Vec::new(), Vec::new());
        Self { changes, steps, pending: Vec::new(), anomalies: Vec::new(), ext: Vec::new() }
    }
}

impl Adopted {
    /// A manifest's spec, JSON text with keys in the order of the documentation.
    pub fn new(spec: String) -> Self {
        Self {
            labels: Vec::new(),
            annotations: Vec::new(),
            spec,
            gaps: Vec::new(),
            incomplete: Vec::new(),
            new_public_keys: Vec::new(),
            masked_secrets: 0,
            ext: Vec::new(),
        }
    }
}

impl Default for Context {
    /// A cluster without storages; owner tag `proxops`, an API token, PVE's default tag style.
    fn default() -> Self {
        Self {
            cluster: String::new(),
            pve_version: String::new(),
            owner_tag: "proxops".to_owned(),
            root: false,
            tag_style: TagStyle { case_sensitive: false, keep_order: false, ext: Vec::new() },
            storages: Vec::new(),
            references: Vec::new(),
            public_keys: Vec::new(),
            ext: Vec::new(),
        }
    }
}

impl Context {
    /// An attribute that a resource of this context published.
    pub fn attribute(&self, kind: &str, name: &str, attribute: &str) -> Option<&str> {
        let resolved = self.references.iter().find(|r| r.to.kind == kind && r.to.name == name)?;
        pair(&resolved.attributes, attribute)
    }
    /// A storage by name.
    pub fn storage(&self, name: &str) -> Option<&StorageInfo> {
        self.storages.iter().find(|s| s.name == name)
    }
}

/// The value of a key in ordered pairs.
pub fn pair<'a>(pairs: &'a [(String, String)], key: &str) -> Option<&'a str> {
    pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
}
