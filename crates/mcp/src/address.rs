//! Which addresses the login at a server may ask. The server names them, so without this it could make the agent send requests to
//! programs on this machine and to machines of the local network that the server itself cannot reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use net::Reach;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Checks an address that the login at `server` wants to ask.
///
/// # Errors
/// A text that says why it is not asked.
pub(crate) async fn check(server: &Url, asked: &Url) -> Result<(), String> {
    let is_web = matches!(asked.scheme(), "http" | "https");
    if !is_web || server.scheme() == "https" && asked.scheme() != "https" {
        return Err(format!("{} is no https address", shown(asked)));
    }
    if server.host() == asked.host() {
        return Ok(());
    }
    // Names that cannot be resolved here are left to the proxy, or fail.
    let found = addresses(asked.host_str().unwrap_or_default()).await;
    if is_near_enough(server, &found).await {
        return Ok(());
    }
    Err(refusal(&shown(asked)))
}

/// Returns true if none of the addresses is nearer to this machine than those of the server.
async fn is_near_enough(server: &Url, asked: &[IpAddr]) -> bool {
    let Some(farthest) = asked.iter().copied().map(Reach::of).max() else {
        return true;
    };
    let own = addresses(server.host_str().unwrap_or_default()).await;
    let own = own.iter().copied().map(Reach::of).min().unwrap_or(Reach::Public);
    farthest == Reach::Public || farthest != Reach::Special && farthest <= own
}

fn refusal(asked: &str) -> String {
    format!(
        "{asked} is an address of this machine or of the local network, which the login of a server elsewhere must not ask"
    )
}

/// Resolves names for the login at a server. A connection goes to the addresses that were checked, so that a name server cannot give
/// others after the check. The server's own name is free: requests to the server itself are not checked either.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) server: Url,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let server = self.server.clone();
        Box::pin(async move {
            let found = addresses(name.as_str()).await;
            if server.host_str() != Some(name.as_str()) && !is_near_enough(&server, &found).await {
                return Err(refusal(&crate::text::line(name.as_str(), crate::limits::NAME)).into());
            }
            let found: Vec<SocketAddr> = found.into_iter().map(|address| (address, 0).into()).collect();
            if found.is_empty() {
                return Err("the name has no address".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host; none if it cannot be resolved.
async fn addresses(host: &str) -> Vec<IpAddr> {
    let host = host.trim_matches(['[', ']']);
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    // Reserved for this machine, so no resolver is asked (RFC 6761).
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return vec![Ipv4Addr::LOCALHOST.into()];
    }
    let found = tokio::net::lookup_host((host, 0)).await;
    found.map_or_else(
        |_| Vec::new(),
        |found| found.map(|address| address.ip()).collect(),
    )
}

fn shown(url: &Url) -> String {
    crate::text::line(&url.origin().ascii_serialization(), crate::limits::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_go_to_checked_addresses() {
        let resolve = |server: &str| {
            let server = Url::parse(server).unwrap();
            Checked { server }.resolve("localhost".parse().unwrap())
        };
        let error = resolve("http://8.8.8.8/mcp").await.err().unwrap();
        assert!(error.to_string().contains("must not ask"), "{error}");
        for server in ["http://127.0.0.1/mcp", "http://localhost/mcp"] {
            let found: Vec<_> = resolve(server).await.ok().unwrap().collect();
            assert_eq!(found, [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]);
        }
    }

    #[tokio::test]
    async fn login_asks_no_nearer_addresses_than_its_server() {
        let cases = [
            ("https://8.8.8.8/mcp", "https://9.9.9.9/token", true),
            ("https://8.8.8.8/mcp", "https://8.8.8.8:8443/token", true),
            ("https://8.8.8.8/mcp", "http://9.9.9.9/token", false),
            ("http://8.8.8.8/mcp", "http://9.9.9.9/token", true),
            ("http://8.8.8.8/mcp", "http://127.0.0.1:1/token", false),
            ("http://8.8.8.8/mcp", "http://localhost:1/token", false),
            ("http://8.8.8.8/mcp", "http://x.localhost.:1/token", false),
            ("http://8.8.8.8/mcp", "http://2130706433:1/token", false),
            ("http://8.8.8.8/mcp", "http://[::1]:1/token", false),
            ("http://8.8.8.8/mcp", "http://[::ffff:127.0.0.1]/token", false),
            ("http://8.8.8.8/mcp", "http://[64:ff9b::a00:1]/token", false),
            ("http://8.8.8.8/mcp", "http://[2002:7f00:1::]/token", false),
            ("http://8.8.8.8/mcp", "http://[fd00::1]/token", false),
            ("http://8.8.8.8/mcp", "http://10.0.0.1/token", false),
            ("http://8.8.8.8/mcp", "http://169.254.169.254/token", false),
            ("http://8.8.8.8/mcp", "http://0.0.0.0/token", false),
            ("http://8.8.8.8/mcp", "file:///etc/passwd", false),
            ("http://10.0.0.1/mcp", "http://10.0.0.2/token", true),
            ("http://10.0.0.1/mcp", "http://127.0.0.1/token", false),
            ("http://127.0.0.1/mcp", "http://localhost:1/token", true),
            ("http://127.0.0.1/mcp", "http://10.0.0.1/token", true),
            ("https://8.8.8.8/mcp", "https://198.18.0.1/token", false),
            ("https://198.18.0.2/mcp", "https://198.18.0.1/token", true),
            ("https://8.8.8.8/mcp", "https://[64:ff9b:1::1]/token", false),
            ("http://127.0.0.1/mcp", "http://169.254.169.254/token", false),
        ];
        for (server, asked, is_allowed) in cases {
            let verdict = check(&Url::parse(server).unwrap(), &Url::parse(asked).unwrap()).await;
            assert_eq!(verdict.is_ok(), is_allowed, "{server} {asked}: {verdict:?}");
        }
    }
}
