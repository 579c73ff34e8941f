//! The `sops:` block: recipients, the MAC, and the rule that says which values are encrypted.

use std::ops::Range;

use regex::Regex;

use crate::error::SopsError;
use crate::scalar;
use crate::yaml::Node;

/// The key of the block, reserved at the top level of every document.
pub(crate) const KEY: &str = "sops";
/// What the tool writes when nothing else was asked for.
pub(crate) const DEFAULT_UNENCRYPTED_SUFFIX: &str = "_unencrypted";

/// Recipient lists other than `age`: key services that only the `sops` program can reach.
const SERVICES: [&str; 6] = ["pgp", "kms", "gcp_kms", "azure_kv", "hc_vault", "hckms"];

#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) groups: Vec<Group>,
    /// How many groups it takes, where there are several.
    pub(crate) threshold: usize,
    pub(crate) rule: Rule,
    pub(crate) mac_only_encrypted: bool,
    pub(crate) mac: String,
    /// As the MAC's additional data has it.
    pub(crate) last_modified: String,
}

/// Recipients that all hold the same key, or the same share of it.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) age: Vec<AgeKey>,
    pub(crate) services: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct AgeKey {
    pub(crate) recipient: String,
    /// The armoured age file that holds the data key.
    pub(crate) enc: String,
}

/// Which values are encrypted, by the keys of their path or the comments above them.
#[derive(Debug)]
pub(crate) enum Rule {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(Regex),
    EncryptedRegex(Regex),
    UnencryptedCommentRegex(Regex),
    EncryptedCommentRegex(Regex),
}

impl Rule {
    /// Whether the value at this path is encrypted. `comments` are those right above it and right above
    /// each map or list around it.
    pub(crate) fn encrypts(&self, path: &[&str], comments: &[&str]) -> bool {
        match self {
            Rule::UnencryptedSuffix(suffix) => !path.iter().any(|key| key.ends_with(suffix.as_str())),
            Rule::EncryptedSuffix(suffix) => path.iter().any(|key| key.ends_with(suffix.as_str())),
            Rule::UnencryptedRegex(regex) => !path.iter().any(|key| regex.is_match(key)),
            Rule::EncryptedRegex(regex) => path.iter().any(|key| regex.is_match(key)),
            Rule::UnencryptedCommentRegex(regex) => !comments.iter().any(|comment| regex.is_match(comment)),
            Rule::EncryptedCommentRegex(regex) => comments.iter().any(|comment| regex.is_match(comment)),
        }
    }
}

/// Where the two fields stand that every change rewrites.
#[derive(Debug)]
pub(crate) struct Seal {
    pub(crate) mac: Range<usize>,
    pub(crate) last_modified: Range<usize>,
}

impl Seal {
    /// Finds both fields in one document, if its block has them.
    pub(crate) fn find(root: &Node) -> Option<Seal> {
        let block = &root.entry(KEY)?.value;
        Some(Seal {
            mac: block.entry("mac")?.value.span.clone(),
            last_modified: block.entry("lastmodified")?.value.span.clone(),
        })
    }
}

impl Metadata {
    pub(crate) fn read(root: &Node, file: &str) -> Result<Metadata, SopsError> {
        let malformed =
            |reason: String| SopsError::Malformed { file: file.to_owned(), position: None, reason };
        let Some(block) = root.entry(KEY).map(|entry| &entry.value) else {
            return Err(SopsError::NotEncrypted { file: file.to_owned() });
        };
        let field = |name: &str| {
            block.entry(name).and_then(|entry| entry.value.text()).filter(|text| !text.is_empty())
        };
        let needed = |name: &str| {
            field(name)
                .map(str::to_owned)
                .ok_or_else(|| malformed(format!("the `sops:` block has no `{name}`")))
        };
        needed("version")?;
        let mac = needed("mac")?;
        let stamp = needed("lastmodified")?;
        let last_modified = scalar::timestamp(&stamp)
            .map(|full| without_fraction(&full))
            .ok_or_else(|| malformed(format!("sops.lastmodified is not a time: {stamp}")))?;

        let mut groups = vec![Group::read(block).map_err(malformed)?];
        if groups.iter().all(Group::is_empty) {
            groups = match block.entry("key_groups") {
                Some(list) => {
                    list.value.items().iter().map(|item| Group::read(&item.value)).collect::<Result<_, _>>()
                }
                None => Ok(Vec::new()),
            }
            .map_err(malformed)?;
        }
        if groups.is_empty() || groups.iter().all(Group::is_empty) {
            return Err(malformed("the `sops:` block names no recipients".to_owned()));
        }
        let threshold = match field("shamir_threshold").map(str::parse::<usize>) {
            None | Some(Ok(0)) => groups.len(),
            Some(Ok(number)) => number,
            Some(Err(_)) => return Err(malformed("sops.shamir_threshold is not a number".to_owned())),
        };
        Ok(Metadata {
            groups,
            threshold,
            rule: read_rule(&field).map_err(malformed)?,
            mac_only_encrypted: field("mac_only_encrypted")
                .is_some_and(|text| text.eq_ignore_ascii_case("true")),
            mac,
            last_modified,
        })
    }

    /// Public names of all age recipients.
    pub(crate) fn recipients(&self) -> Vec<String> {
        self.groups.iter().flat_map(|group| &group.age).map(|key| key.recipient.clone()).collect()
    }

    /// Key services named anywhere in the block.
    pub(crate) fn services(&self) -> Vec<String> {
        let mut all: Vec<String> = self.groups.iter().flat_map(|group| group.services.clone()).collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Group {
    fn read(block: &Node) -> Result<Group, String> {
        let mut group = Group::default();
        for item in block.entry("age").map(|entry| entry.value.items()).unwrap_or_default() {
            let field = |name: &str| item.value.entry(name).and_then(|entry| entry.value.text());
            match (field("recipient"), field("enc")) {
                (Some(recipient), Some(enc)) => {
                    group.age.push(AgeKey { recipient: recipient.to_owned(), enc: enc.to_owned() });
                }
                _ => return Err("an entry under sops.age lacks `recipient` or `enc`".to_owned()),
            }
        }
        for service in SERVICES {
            if block.entry(service).is_some_and(|entry| !entry.value.items().is_empty()) {
                group.services.push(service.to_owned());
            }
        }
        Ok(group)
    }

    fn is_empty(&self) -> bool {
        self.age.is_empty() && self.services.is_empty()
    }
}

fn read_rule<'a>(field: &impl Fn(&str) -> Option<&'a str>) -> Result<Rule, String> {
    let regex = |name: &str, text: &str| {
        Regex::new(text).map_err(|_| format!("sops.{name} is not a regular expression"))
    };
    let mut rules = Vec::new();
    for name in [
        "unencrypted_suffix",
        "encrypted_suffix",
        "unencrypted_regex",
        "encrypted_regex",
        "unencrypted_comment_regex",
        "encrypted_comment_regex",
    ] {
        let Some(text) = field(name) else { continue };
        rules.push(match name {
            "unencrypted_suffix" => Rule::UnencryptedSuffix(text.to_owned()),
            "encrypted_suffix" => Rule::EncryptedSuffix(text.to_owned()),
            "unencrypted_regex" => Rule::UnencryptedRegex(regex(name, text)?),
            "encrypted_regex" => Rule::EncryptedRegex(regex(name, text)?),
            "unencrypted_comment_regex" => Rule::UnencryptedCommentRegex(regex(name, text)?),
            _ => Rule::EncryptedCommentRegex(regex(name, text)?),
        });
    }
    match (rules.pop(), rules.is_empty()) {
        (None, _) => Ok(Rule::UnencryptedSuffix(DEFAULT_UNENCRYPTED_SUFFIX.to_owned())),
        (Some(rule), true) => Ok(rule),
        (Some(_), false) => Err("the `sops:` block has more than one rule for what is encrypted".to_owned()),
    }
}

/// The MAC's additional data has whole seconds.
fn without_fraction(stamp: &str) -> String {
    match stamp.split_once('.') {
        Some((whole, rest)) => {
            let zone = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{whole}{zone}")
        }
        None => stamp.to_owned(),
    }
}
