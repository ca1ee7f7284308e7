//! Where servers are looked for: the usual ports of this machine, the variables that say otherwise, the user's settings.

use super::{Kind, LocalSources, Place};

/// The variables that name a server's address, best first.
pub(crate) const fn variables(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Ollama => &["OLLAMA_BASE_URL", "OLLAMA_HOST"],
        Kind::LlamaCpp => &["LLAMA_CPP_BASE_URL"],
        Kind::LmStudio => &["LMSTUDIO_BASE_URL"],
        Kind::Vllm => &["VLLM_BASE_URL"],
    }
}

/// The port a server listens on unless told otherwise.
const fn port(kind: Kind) -> u16 {
    match kind {
        Kind::Ollama => 11434,
        Kind::LlamaCpp => 8080,
        Kind::LmStudio => 1234,
        Kind::Vllm => 8000,
    }
}

/// All places, those of the settings last. A server of the settings with the id of a usual one takes its place, and so does
/// a `baseUrl` that `models.json` gives a provider of that id (`file`).
pub(crate) fn places(
    sources: &LocalSources,
    env: &dyn Fn(&str) -> Option<String>,
    file: &dyn Fn(&str) -> Option<String>,
) -> Vec<Place> {
    let named = |id: &str, url: String| Place {
        id: id.to_owned(),
        url,
        kind: Kind::of_id(id),
        is_named: true,
        key: None,
    };
    let given = |id: &str| {
        let mut servers = sources.servers.iter();
        servers
            .find(|(name, _)| name == id)
            .and_then(|(_, url)| address(url, None))
    };
    let usual = |kind: Kind| {
        let id = kind.id();
        let variable = || {
            let mut values = variables(kind).iter().filter_map(|name| env(name));
            values.find_map(|value| address(&value, Some(port(kind))))
        };
        match given(id).or_else(|| address(&file(id)?, None)).or_else(variable) {
            Some(url) => named(id, url),
            None => Place {
                is_named: false,
                ..named(id, format!("http://127.0.0.1:{}", port(kind)))
            },
        }
    };
    let more = sources.servers.iter().filter(|(id, _)| Kind::of_id(id).is_none());
    let more = more.filter_map(|(id, url)| Some(named(id, address(url, None)?)));
    Kind::ALL.into_iter().map(usual).chain(more).collect()
}

/// The address in a text such as `http://host:1234/v1/`, `host`, `:1234` or `0.0.0.0` (as `OLLAMA_HOST` may say, where a
/// missing port is the server's own): with a scheme, without `/v1`. A server that listens on all addresses is asked here.
pub(crate) fn address(text: &str, port: Option<u16>) -> Option<String> {
    let text = text.trim().trim_end_matches('/');
    let text = text.strip_suffix("/v1").unwrap_or(text).trim_end_matches('/');
    if text.is_empty() {
        return None;
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) => (host, format!("/{path}")),
        None => (rest, String::new()),
    };
    // Ollama takes an IPv6 address without brackets, too.
    let is_ipv6 = host.matches(':').count() > 1 && !host.contains(['[', '@']);
    let (name, own_port) = match host.rsplit_once(':') {
        Some((name, port)) if !is_ipv6 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, Some(port))
        }
        _ => (host, None),
    };
    let name = match name {
        "" | "0.0.0.0" | "[::]" | "::" => "127.0.0.1".to_owned(),
        name if is_ipv6 => format!("[{name}]"),
        name => name.to_owned(),
    };
    // A scheme without a port means the scheme's port, as it does to the server's own tools.
    let port = port
        .filter(|_| !text.contains("://"))
        .map(|port| port.to_string());
    let port = own_port.map(str::to_owned).or(port);
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{scheme}://{name}{port}{path}"))
}
