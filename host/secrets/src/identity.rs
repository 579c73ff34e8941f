//! Private keys: where they are looked for, in which order, and how they are read.
//!
//! All places are tried; one that fails never hides another, and is reported only if nothing decrypts.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::child;

/// For how long `SOPS_AGE_KEY_CMD` is waited for: somebody may have to touch a hardware key.
const LIMIT: Duration = Duration::from_secs(30);

type Env = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The places where age identities may be: environment variables, SSH keys, key files. Nothing is read
/// before a document needs it.
#[derive(Clone)]
pub struct IdentitySources {
    env: Arc<Env>,
    home: Option<PathBuf>,
}

/// What one place gave.
pub(crate) enum Found {
    Identities(Vec<Box<dyn age::Identity>>),
    /// The place is not set up.
    Nothing,
    /// The place is set up and can not be used; the text says why.
    Failed(String),
}

impl IdentitySources {
    /// Sources for an environment and a home directory of the caller's choice.
    pub fn new(env: impl Fn(&str) -> Option<String> + Send + Sync + 'static, home: Option<PathBuf>) -> Self {
        IdentitySources { env: Arc::new(env), home }
    }

    /// The environment and the home directory of this process.
    pub fn from_process() -> Self {
        IdentitySources::new(
            |name| std::env::var(name).ok(),
            std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
        )
    }

    /// One environment variable.
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    /// Where programs keep their settings.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        self.path("XDG_CONFIG_HOME").or_else(|| self.home.as_ref().map(|home| home.join(".config")))
    }

    /// Every place with its name, in the order of the sops tool, each read when it is reached.
    pub(crate) fn places(&self) -> impl Iterator<Item = (String, Found)> + '_ {
        let home_key = |name: &str| self.home.as_ref().map(|home| home.join(".ssh").join(name));
        let ssh = [
            ("SOPS_AGE_SSH_PRIVATE_KEY_FILE".to_owned(), self.path("SOPS_AGE_SSH_PRIVATE_KEY_FILE"), true),
            ("~/.ssh/id_ed25519".to_owned(), home_key("id_ed25519"), false),
            ("~/.ssh/id_rsa".to_owned(), home_key("id_rsa"), false),
        ];
        let keys = self.default_key_file();
        let keys_name =
            keys.as_ref().map_or("~/.config/sops/age/keys.txt".to_owned(), |k| k.display().to_string());
        ssh.into_iter()
            .map(|(name, path, must_exist)| {
                let found =
                    path.map_or(Found::Nothing, |path| read_file(&name, &path, must_exist, ssh_identity));
                (name, found)
            })
            .chain(std::iter::once_with(|| self.key()))
            .chain(std::iter::once_with(|| {
                let name = "SOPS_AGE_KEY_FILE".to_owned();
                let found = self.path(&name).map_or(Found::Nothing, |path| {
                    read_file(&name, &path, true, |_, text| age_identities(text))
                });
                (name, found)
            }))
            .chain(std::iter::once_with(|| self.command()))
            .chain(std::iter::once_with(move || {
                let found = keys.map_or(Found::Nothing, |path| {
                    read_file(&keys_name, &path, false, |_, text| age_identities(text))
                });
                (keys_name, found)
            }))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.env(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn key(&self) -> (String, Found) {
        let name = "SOPS_AGE_KEY".to_owned();
        let found = match self.env(&name).map(Zeroizing::new).filter(|text| !text.trim().is_empty()) {
            None => Found::Nothing,
            Some(text) => Found::from(&name, age_identities(&text)),
        };
        (name, found)
    }

    /// Runs the command of `SOPS_AGE_KEY_CMD`, split into words but without a shell.
    fn command(&self) -> (String, Found) {
        let name = "SOPS_AGE_KEY_CMD".to_owned();
        let Some(line) = self.env(&name).filter(|line| !line.trim().is_empty()) else {
            return (name, Found::Nothing);
        };
        let found = Found::from(&name, run(&line, LIMIT).and_then(|text| age_identities(&text)));
        (name, found)
    }
}

impl fmt::Debug for IdentitySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentitySources").field("home", &self.home).finish_non_exhaustive()
    }
}

type Identities = Vec<Box<dyn age::Identity>>;

impl Found {
    fn from(place: &str, result: Result<Identities, String>) -> Found {
        match result {
            Ok(identities) if identities.is_empty() => Found::Nothing,
            Ok(identities) => Found::Identities(identities),
            Err(reason) => Found::Failed(format!("{place}: {reason}")),
        }
    }
}

fn read_file(
    place: &str,
    path: &Path,
    must_exist: bool,
    parse: impl Fn(&Path, &str) -> Result<Identities, String>,
) -> Found {
    match std::fs::read_to_string(path).map(Zeroizing::new) {
        Ok(text) => Found::from(place, parse(path, &text)),
        Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => Found::Nothing,
        Err(error) => Found::Failed(format!("{place}: {}: {error}", path.display())),
    }
}

/// One identity a line or word; lines that begin with `#` are comments.
fn age_identities(text: &str) -> Result<Identities, String> {
    if text.trim_start().starts_with("-----BEGIN AGE ENCRYPTED FILE-----") {
        return Err("the key file is protected by a passphrase, which can not be asked for here".to_owned());
    }
    if text.contains("PRIVATE KEY-----") {
        return Err("holds an SSH key; name its file in SOPS_AGE_SSH_PRIVATE_KEY_FILE instead".to_owned());
    }
    let mut identities: Identities = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#')) {
        for word in line.split_whitespace() {
            if word.starts_with("AGE-PLUGIN-") {
                return Err(format!("line {}: identities of age plugins are not supported", number + 1));
            }
            let identity = age::x25519::Identity::from_str(word)
                .map_err(|_| format!("line {}: not an age secret key", number + 1))?;
            identities.push(Box::new(identity));
        }
    }
    Ok(identities)
}

fn ssh_identity(path: &Path, text: &str) -> Result<Identities, String> {
    let path = path.display();
    match age::ssh::Identity::from_buffer(text.as_bytes(), None) {
        Ok(identity @ age::ssh::Identity::Unencrypted(_)) => Ok(vec![Box::new(identity)]),
        Ok(age::ssh::Identity::Encrypted(_)) => {
            Err(format!("{path} is protected by a passphrase, which can not be asked for here"))
        }
        Ok(age::ssh::Identity::Unsupported(_)) => Err(format!("{path} is neither an ed25519 nor an RSA key")),
        Err(_) => Err(format!("{path} is not an SSH private key")),
    }
}

/// The output of a command. Neither its output nor its error text gets into a message.
fn run(line: &str, limit: Duration) -> Result<Zeroizing<String>, String> {
    let words = split_words(line).ok_or("unbalanced quotes")?;
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let (status, mut stdout) =
        child::output(command, "", limit).map_err(|error| format!("{program}: {error}"))?;
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    String::from_utf8(std::mem::take(&mut *stdout))
        .map(Zeroizing::new)
        .map_err(|_| format!("{program} did not print text"))
}

/// Splits as a shell would, without expanding anything. `None` if a quote or escape is left open.
fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '#' if word.is_none() => {
                let _ = chars.find(|c| *c == '\n');
            }
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_without_a_shell() {
        let split = |line: &str| split_words(line);
        assert_eq!(
            split(r#"pass show "a b" 'c $d' e\ f # no"#).unwrap(),
            ["pass", "show", "a b", "c $d", "e f"]
        );
        assert_eq!(split(r#"x "" ''"#).unwrap(), ["x", "", ""]);
        assert_eq!(split(r#"say "a \"b\" \n""#).unwrap(), ["say", r#"a "b" \n"#]);
        assert!(split("x 'open").is_none());
        assert!(split("x \\").is_none());
    }

    #[test]
    fn a_key_command_that_does_not_end_is_given_up_and_its_arguments_are_not_shown() {
        let error = run("sleep 600", Duration::from_millis(100)).unwrap_err();
        assert_eq!(error, "sleep: no end after 100ms");
    }

    #[test]
    fn an_ssh_key_among_age_keys_is_refused_with_the_variable_to_use() {
        let error = age_identities("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n").err().unwrap();
        assert!(error.contains("SOPS_AGE_SSH_PRIVATE_KEY_FILE"), "{error}");
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_and_not_shown() {
        let error = age_identities("# comment\nAGE-SECRET-KEY-1BROKEN\n").err().unwrap();
        assert_eq!(error, "line 2: not an age secret key");
    }
}
