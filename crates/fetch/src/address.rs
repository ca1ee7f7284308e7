//! Which addresses may be asked. A name is resolved once, and the connection goes to the addresses that were checked, so that a name server
//! cannot give another answer later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::limits;

/// Reads the URL of a call.
///
/// # Errors
/// The text for the model: no URL of the web, too long, or with a name and password.
pub fn parse(text: &str) -> Result<Url, String> {
    if text.len() > limits::FETCH_URL {
        return Err(format!("The URL is longer than {} bytes", limits::FETCH_URL));
    }
    let url = Url::parse(text.trim()).map_err(|error| format!("Not a URL: {text} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("Not an http or https URL: {text}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("A URL with a user name or password is not fetched".to_owned());
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

/// Returns true for addresses of the public internet (IANA special-purpose address registries). Unknown means no.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || a == 100 && (64..128).contains(&b)
        || a == 192 && b == 0 && c == 0
        || a == 192 && b == 88 && c == 99
        || a == 198 && (18..20).contains(&b)
        || a >= 240;
    !is_special
        && !address.is_private()
        && !address.is_loopback()
        && !address.is_link_local()
        && !address.is_documentation()
        && !address.is_multicast()
}

/// Only global unicast (2000::/3), without documentation, benchmarks and ORCHIDs.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_special = a == 0x2001 && (b < 0x0200 || b == 0x0db8) || a == 0x3fff && b < 0x1000;
    a & 0xe000 == 0x2000 && !is_special
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(from(g, h)),
        (0x2002, ..) => Some(from(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "203.0.113.7",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "100::1",
            "64:ff9b:1::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "172.32.0.1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

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

    #[tokio::test]
    async fn names_that_lead_to_this_machine_are_refused() {
        let resolve = |allowed: Allowed| async move { allowed.resolve("localhost".parse().unwrap()).await };
        let refused = resolve(Allowed::default()).await.err().unwrap();
        assert!(refused.to_string().contains("private address"), "{refused}");
        let allowed = resolve(Allowed::new(["localhost".to_owned()])).await;
        assert!(allowed.is_ok_and(|mut found| found.next().is_some()));
    }
}
