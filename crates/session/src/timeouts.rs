//! How long a session waits for the provider of a model.

use std::time::Duration;

use llm::Timeouts;
use wire::Model;

use crate::factory::Agent;

impl Agent {
    /// How long the provider of a model may be silent; a day when the setting switches the limit off, since every wait has one.
    pub(crate) fn timeouts(&self, model: &Model) -> Timeouts {
        let settings = &self.settings;
        // A server on the user's machine is silent while it reads the prompt, which can take minutes (docs/guides/local-models.md).
        let is_local = self.registry.is_local(&model.provider) || is_loopback(&model.base_url);
        let ms = if is_local {
            settings.local_servers.idle_timeout_ms
        } else {
            settings.http_idle_timeout_ms
        };
        let idle = ms.map_or(Duration::from_secs(86_400), Duration::from_millis);
        // As in pi, whose SDKs stop this timeout when the head of the response is there (pi-core.md 4.2).
        let response = settings.retry.provider.timeout_ms;
        Timeouts {
            response: response.map_or(idle, Duration::from_millis),
            idle,
        }
    }
}

/// Returns true for the address of a server on this machine.
fn is_loopback(url: &str) -> bool {
    // Without a scheme there is no host to judge, and the address counts as remote.
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    // A user and a password may come before an `@`.
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_ip = || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    host.eq_ignore_ascii_case("localhost") || is_ip()
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn loopback_addresses_are_recognised() {
        for url in [
            "http://localhost:11434/v1",
            "http://127.0.0.1:8080",
            "https://[::1]:1/v1",
            "http://LOCALHOST/x",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "https://api.example.org",
            "http://localhost.example.org",
            "http://localhost:x@models.example/v1",
            "http://10.0.0.5:8000",
            "",
            "localhost",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
