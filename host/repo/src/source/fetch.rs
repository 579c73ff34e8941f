//! One look at the source: which commit is wanted, and its tree if it is not here yet.

use super::{Address, Source, Trouble, store::Store, transport, tree};
use gix::ObjectId;
use gix::progress::Discard;
use gix::remote::fetch::{Shallow, Tags};
use gix::remote::{Direction, ref_map};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

/// Local names of what is fetched, the one that wins first.
const WANTED: &str = "refs/proxops/wanted";
const SECOND: &str = "refs/proxops/second";

/// Makes sure that the wanted tree is in the store, and says which commit it is.
pub(crate) fn newest(source: &Source, store: &Store, stop: &AtomicBool) -> Result<String, Trouble> {
    let address = Address::parse(&source.url).map_err(|(why, help)| Trouble::new(why, help))?;
    let specs = specs(source.revision.as_deref());
    // A commit never changes: once here, nobody needs to be asked.
    if let Some(commit) = source.revision.as_deref().filter(|text| is_commit(text))
        && store.has(&commit.to_ascii_lowercase())
    {
        return Ok(commit.to_ascii_lowercase());
    }
    match attempt(source, &address, &specs, store, stop, true) {
        // A server may only serve whole histories.
        Err(trouble) if trouble.why.contains("\"shallow\"") => {
            attempt(source, &address, &specs, store, stop, false)
        }
        done => done,
    }
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// What to ask for. A branch wins over a tag of the same name.
fn specs(revision: Option<&str>) -> Vec<String> {
    match revision {
        None => vec![format!("+HEAD:{WANTED}")],
        Some(commit) if is_commit(commit) => vec![format!("{}:{WANTED}", commit.to_ascii_lowercase())],
        Some(full) if full.starts_with("refs/") => vec![format!("+{full}:{WANTED}")],
        Some(name) => vec![format!("+refs/heads/{name}:{WANTED}"), format!("+refs/tags/{name}:{SECOND}")],
    }
}

fn attempt(
    source: &Source,
    address: &Address,
    specs: &[String],
    store: &Store,
    stop: &AtomicBool,
    shallow: bool,
) -> Result<String, Trouble> {
    let scratch = store.scratch()?;
    let options = gix::open::Options::isolated();
    let repo = gix::ThreadSafeRepository::init_opts(
        scratch.path().join("objects.git"),
        gix::create::Kind::Bare,
        gix::create::Options::default(),
        options,
    )
    .map_err(|error| {
        Trouble::new(
            format!("no repository can be made in the data-dir: {}", chain(&error)),
            "see to the data-dir",
        )
    })?
    .to_thread_local();
    let line = transport::open(source, address)?;
    let said = line.said.clone();
    let failed = |error: &gix::Error| explained(source, address, error, &said.text());

    let revision = source.revision.as_deref().unwrap_or("HEAD");
    let remote = repo
        .remote_at_without_url_rewrite(source.url.as_str())
        .map_err(|error| failed(&error))?
        .with_fetch_tags(Tags::None)
        .with_refspecs(specs.iter().map(String::as_str), Direction::Fetch)
        .map_err(|_| {
            Trouble::new(
                format!("{revision:?} can't be the name of a branch or tag"),
                "set git.branch to a branch, a tag, or the 40 digits of a commit",
            )
        })?;
    let mut connection = remote.to_connection_with_transport(line.transport);
    // No helper program and no question on a terminal.
    connection.set_credentials(|_| Ok(None));
    if let Some(options) = line.options {
        connection.set_transport_options(options);
    }
    let prepared =
        connection.prepare_fetch(Discard, ref_map::Options::default()).map_err(|error| failed(&error))?;
    let Some(wanted) = wanted(&prepared.ref_map().mappings) else {
        let why = match &source.revision {
            None => "the repository is empty: its HEAD names no commit".to_owned(),
            Some(name) => format!("it has no branch or tag {name:?}"),
        };
        return Err(Trouble::new(why, "push the branch, or correct git.branch"));
    };
    let known = wanted.to_hex().to_string();
    if store.has(&known) {
        return Ok(known);
    }
    let depth = match shallow {
        true => NonZeroU32::new(1).map_or(Shallow::NoChange, Shallow::DepthAtRemote),
        false => Shallow::NoChange,
    };
    prepared.with_shallow(depth).receive(Discard, stop).map_err(|error| failed(&error))?;

    let commit = repo
        .find_object(wanted)
        .and_then(|object| object.peel_to_commit())
        .map_err(|error| failed(&error))?;
    let id = commit.id.to_hex().to_string();
    if !store.has(&id) {
        let finished = scratch.path().join("tree");
        tree::write(&commit, &finished)?;
        store.adopt(&id, &finished)?;
    }
    Ok(id)
}

/// The commit that the best of the refs points to, tags peeled.
fn wanted(mappings: &[gix::remote::fetch::refmap::Mapping]) -> Option<ObjectId> {
    let named = |name: &str| {
        mappings.iter().find(|m| m.local.as_ref().is_some_and(|local| local == name))?.remote.peeled_id()
    };
    named(WANTED).or_else(|| named(SECOND)).map(Into::into)
}

/// An error with everything that caused it, each once.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    parts.join(": ")
}

/// What an operator can do about the usual failures.
fn explained(source: &Source, address: &Address, error: &gix::Error, said: &str) -> Trouble {
    let mut why = chain(error);
    let what_to_do = help(source, address, &why, said);
    if !said.is_empty() {
        why = format!("{said} ({why})");
    }
    if let Some(token) = &source.token {
        why = why.replace(token.expose(), proxops_secrets::MASK);
    }
    Trouble::new(why, what_to_do)
}

fn help(source: &Source, address: &Address, why: &str, said: &str) -> &'static str {
    // An address may hold any word or number.
    let words = why.split_inclusive(' ').chain(said.split_inclusive(' '));
    let told: String = words.filter(|word| !word.contains("://")).collect();
    let has = |words: &[&str]| words.iter().any(|word| told.contains(word));
    match address {
        Address::Http { .. } if has(&["certificate", "UnknownIssuer"]) => {
            "set git.ca-file to the authority that signed the server's certificate"
        }
        Address::Http { .. } if has(&["status 401", "status 403", "uthenticat", "redentials", "dentity"]) => {
            match source.token {
                Some(_) => "the server refuses the token: renew it, and let it read this repository",
                None => "set git.token, PROXOPS_GIT_TOKEN or a cluster's secrets.git.token",
            }
        }
        Address::Http { .. } if has(&["status 404"]) => {
            "the server has no such repository, or hides it without a token that may read it"
        }
        Address::Ssh { .. } if has(&["Permission denied", "publickey"]) => {
            "give this user an SSH key that the server accepts; ssh is run without questions"
        }
        Address::Ssh { .. } if has(&["Host key"]) => "add the server's key to known_hosts",
        Address::File { .. } if has(&["dubious ownership"]) => {
            "run as the owner of that repository, or name it in safe.directory"
        }
        _ if has(&["not our ref", "unadvertised"]) => "push the commit, or correct git.branch",
        _ => "check git.url and that the server can be reached from here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxops_secrets::Secret;

    #[test]
    fn digits_and_words_of_an_address_do_not_choose_the_help() {
        let at = "https://git.example.net:40399/credentials.git";
        let source = Source { url: at.into(), revision: None, ca_file: None, token: Some(Secret::new("t")) };
        let Ok(address) = Address::parse(at) else { panic!("an address") };
        let of = |status: &str| {
            let why = format!("HTTP status {status}: client error for url ({at}/info/refs)");
            help(&source, &address, &why, "")
        };
        assert!(of("404").contains("no such repository"));
        assert!(of("403").contains("refuses the token"));
        assert!(of("500").contains("can be reached"));
    }
}
