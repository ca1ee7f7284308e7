//! Which addresses may be asked. A name is resolved once, and the connection goes to the addresses that were checked, so that a name server
//! cannot give another answer later.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use net::Reach;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::limits;

/// Reads the URL of a call. Its host has no dot at the end: rules name the host without one, and the name server gives the same machine.
///
/// # Errors
/// The text for the model: no URL of the web, too long, or with a name and password.
pub fn parse(text: &str) -> Result<Url, String> {
    if text.len() > limits::FETCH_URL {
        return Err(format!("The URL is longer than {} bytes", limits::FETCH_URL));
    }
    let mut url = Url::parse(text.trim()).map_err(|error| format!("Not a URL: {text} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("Not an http or https URL: {text}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("A URL with a user name or password is not fetched".to_owned());
    }
    let host = url.host_str().and_then(|host| host.strip_suffix('.'));
    if let Some(host) = host.map(|host| host.trim_end_matches('.').to_owned()) {
        url.set_host(Some(&host))
            .map_err(|error| format!("Not a URL: {text} ({error})"))?;
    }
    Ok(url)
}

/// Hosts whose private addresses are allowed: names, addresses, or `*.domain`.
#[derive(Debug, Clone, Default)]
pub struct Allowed(Arc<[String]>);

impl Allowed {
    /// The hosts of a setting.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = String>) -> Self {
        Self(hosts.into_iter().map(|host| host.to_lowercase()).collect())
    }

    fn has(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_lowercase();
        self.0.iter().any(|allowed| match allowed.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|name| name.ends_with('.')),
            None => *allowed == host,
        })
    }

    /// Checks a URL whose host is an address; names are checked when they are resolved.
    ///
    /// # Errors
    /// The text for the model.
    pub(crate) fn check(&self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        match address {
            Ok(address) if !is_public(address) && !self.has(host) => Err(refusal(host)),
            _ => Ok(()),
        }
    }
}

fn refusal(host: &str) -> String {
    format!("{host} is a private address, which is not fetched. The user can allow it: fetch.privateHosts")
}

impl Resolve for Allowed {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let is_private = found.iter().any(|address| !is_public(address.ip()));
            if is_private && !allowed.has(host) {
                return Err(refusal(host).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    Reach::of(address) == Reach::Public
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_addresses_are_checked_in_every_form() {
        let none = Allowed::default();
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://[::1]:80/",
            "http://[::ffff:7f00:1]/",
            "http://127.1/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let url = parse(url).unwrap();
            assert!(none.check(&url).unwrap_err().contains("private address"), "{url}");
        }
        let some = Allowed::new(["127.0.0.1".to_owned(), "::1".to_owned()]);
        assert!(some.check(&parse("http://2130706433/").unwrap()).is_ok());
        assert!(some.check(&parse("http://[0::1]/").unwrap()).is_ok());
        assert!(some.check(&parse("http://127.0.0.2/").unwrap()).is_err());
    }

    #[test]
    fn allowed_hosts_are_names_or_domains() {
        let allowed = Allowed::new(["Wiki.Intern".to_owned(), "*.corp.example".to_owned()]);
        for host in [
            "wiki.intern",
            "WIKI.intern.",
            "a.corp.example",
            "a.b.corp.example",
        ] {
            assert!(allowed.has(host), "{host}");
        }
        for host in ["intern", "x.wiki.intern", "corp.example", "evilcorp.example"] {
            assert!(!allowed.has(host), "{host}");
        }
    }

    #[test]
    fn only_plain_web_urls_are_read() {
        for url in [
            "file:///etc/passwd",
            "ftp://example.com/",
            "example.com",
            "http://",
            "https://user:pass@example.com/",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
        assert!(parse(&format!("https://example.com/{}", "x".repeat(5000))).is_err());
        assert_eq!(
            parse(" https://EXAMPLE.com/a b ").unwrap().as_str(),
            "https://example.com/a%20b"
        );
    }

    #[test]
    fn host_loses_dot_at_its_end() {
        for (written, read) in [
            (
                "http://wiki.corp.example./secret",
                "http://wiki.corp.example/secret",
            ),
            (
                "https://wiki.corp.example.:8443/",
                "https://wiki.corp.example:8443/",
            ),
            ("http://wiki%2E/", "http://wiki/"),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://example.com/a.", "http://example.com/a."),
        ] {
            assert_eq!(parse(written).unwrap().as_str(), read, "{written}");
        }
        assert!(parse("http://./").is_err());
    }

    #[tokio::test]
    async fn names_that_lead_to_this_machine_are_refused() {
        let resolve = |allowed: Allowed| async move { allowed.resolve("localhost".parse().unwrap()).await };
        let refused = resolve(Allowed::default()).await.err().unwrap();
        assert!(refused.to_string().contains("private address"), "{refused}");
        let allowed = resolve(Allowed::new(["localhost".to_owned()])).await;
        assert!(allowed.is_ok_and(|mut found| found.next().is_some()));
    }
}
