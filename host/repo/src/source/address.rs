//! The address of a git source.

use gix::bstr::ByteSlice as _;
use gix::url::Scheme;
use std::path::PathBuf;

/// An address that can be fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// HTTPS, or HTTP on this machine.
    Http { url: gix::Url, secure: bool },
    /// The system's `ssh`.
    Ssh { user: Option<String>, host: String, port: Option<u16>, path: String },
    /// A repository on this machine.
    File { path: PathBuf },
}

type Refusal = (&'static str, &'static str);

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it and what to do. Never quotes it.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        const EXAMPLES: &str = "such as https://git.example.org/infra.git, ssh://git@git.example.org/infra.git, \
                                git@git.example.org:infra.git or file:///srv/git/infra.git";
        let url = gix::url::parse(text).map_err(|_| ("`git.url` is not an address", EXAMPLES))?;
        if url.password().is_some() {
            return Err((
                "`git.url` carries a password, which would show in logs",
                "leave it out of the address and set git.token or PROXOPS_GIT_TOKEN",
            ));
        }
        let path = || {
            url.path.to_str().map(str::to_owned).map_err(|_| ("the path in `git.url` is not text", EXAMPLES))
        };
        let host = url.host().unwrap_or_default().to_owned();
        // What begins with a dash would be an option of the program that gets it.
        let risky = |part: &str| part.starts_with('-');
        match url.scheme {
            Scheme::Https | Scheme::Http => {
                if path()?.contains(['?', '#']) {
                    return Err(("`git.url` must not carry a query or fragment", EXAMPLES));
                }
                let secure = url.scheme == Scheme::Https;
                let local = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]" | "::1");
                if !secure && !local {
                    return Err(("plain http is accepted for loopback addresses only", "use https://"));
                }
                Ok(Self::Http { url, secure })
            }
            Scheme::Ssh => {
                let user = url.user().map(str::to_owned);
                if host.is_empty() || risky(&host) || user.as_deref().is_some_and(risky) || risky(&path()?) {
                    return Err(("`git.url` has no usable host, user or path", EXAMPLES));
                }
                let path = path()?;
                // `/~user/x` is a path in a home directory.
                let path = path.strip_prefix('/').filter(|rest| rest.starts_with('~')).unwrap_or(&path);
                Ok(Self::Ssh { user, host, port: url.port, path: path.to_owned() })
            }
            Scheme::File => {
                let path = PathBuf::from(path()?);
                if !path.is_absolute() {
                    return Err(("a path in `git.url` must be absolute", EXAMPLES));
                }
                Ok(Self::File { path })
            }
            _ => Err(("`git.url` must be https, ssh or file", EXAMPLES)),
        }
    }

    /// For messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Http { url, .. } => {
                let port = url.port.map(|port| format!(":{port}")).unwrap_or_default();
                format!("{}://{}{port}{}", url.scheme.as_str(), url.host().unwrap_or_default(), url.path)
            }
            Self::Ssh { user, host, port, path } => {
                let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                format!("ssh://{user}{host}{port}/{}", path.trim_start_matches('/'))
            }
            Self::File { path } => format!("file://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_ssh_in_both_spellings_and_files_are_addresses() {
        let shown = |text: &str| Address::parse(text).map(|a| a.shown());
        for (text, is) in [
            ("https://git.example.org/infra.git", "https://git.example.org/infra.git"),
            ("https://me@git.example.org:8443/a/b", "https://git.example.org:8443/a/b"),
            ("http://127.0.0.1:9000/x", "http://127.0.0.1:9000/x"),
            ("ssh://git@git.example.org:2222/infra.git", "ssh://git@git.example.org:2222/infra.git"),
            ("git@git.example.org:org/infra.git", "ssh://git@git.example.org/org/infra.git"),
            ("ssh://host/~me/x", "ssh://host/~me/x"),
            ("file:///srv/git/infra.git", "file:///srv/git/infra.git"),
            ("/srv/git/infra.git", "file:///srv/git/infra.git"),
        ] {
            assert_eq!(shown(text), Ok(is.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_can_not_be_fetched_or_would_leak_is_refused_without_being_quoted() {
        for text in [
            "",
            "http://git.example.org/x",
            "https://me:hunter2@git.example.org/x",
            "https://git.example.org/x?token=hunter2",
            "git://git.example.org/x",
            "ftp://git.example.org/x",
            "infra.git",
            "../infra.git",
            "ssh://-oProxyCommand=x/y",
            "ssh://-x@host/y",
        ] {
            let (message, help) = Address::parse(text).unwrap_err();
            assert!(!message.contains("hunter2") && !help.contains("hunter2"), "{text}");
        }
    }
}
