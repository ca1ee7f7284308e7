//! GitHub Copilot's side of a login: a GitHub token buys short-lived tokens, and models may have to be switched on once
//! (providers.md 9). The device flow that gets the GitHub token is in `device`.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::json;
use tokio::time::timeout;

use super::LoginError;
use super::clock;
use super::endpoints::Endpoints;
use super::limits::{POLICIES, POLICIES_AT_ONCE};
use super::token_server::Http;
use super::tokens::Tokens;
use crate::Secret;

/// Provider id.
pub(crate) const PROVIDER: &str = "github-copilot";

/// The domain of everybody who has no other.
pub(super) const GITHUB: &str = "github.com";

/// What Copilot wants to hear from an editor, as with requests (catalogue).
const EDITOR: [(&str, &str); 4] = [
    ("user-agent", "GitHubCopilotChat/0.35.0"),
    ("editor-version", "vscode/1.107.0"),
    ("editor-plugin-version", "copilot-chat/0.35.0"),
    ("copilot-integration-id", "vscode-chat"),
];

/// Lifetime of a token that does not name its end, in seconds.
const DEFAULT_LIFETIME: f64 = 1500.0;

/// Where Copilot's own API is when neither token nor domain says so.
const DEFAULT_ADDRESS: &str = "https://api.individual.githubcopilot.com";

/// A Copilot token for a GitHub token; `enterprise` is a company's domain.
pub(super) async fn exchange(
    http: &Http,
    endpoints: &Endpoints,
    github: &Secret,
    enterprise: Option<&str>,
) -> Result<Tokens, LoginError> {
    let domain = enterprise.unwrap_or(GITHUB);
    let url = Endpoints::at(&endpoints.github_api, domain, "copilot_internal/v2/token");
    let answer = http.get(&url, github, &EDITOR).await?.success()?;
    let access = Secret::new(answer.need("token")?);
    let ends = match answer.number("expires_at") {
        Some(seconds) => clock::after(0, seconds),
        None => clock::after(clock::now_ms(), DEFAULT_LIFETIME),
    };
    Ok(Tokens {
        access,
        refresh: github.clone(),
        expires: ends,
        extra: enterprise
            .map(|domain| ("enterpriseUrl", json!(domain)))
            .into_iter()
            .collect(),
    })
}

/// Switches on models; gives how many could not be. Some plans have them on already or not at all, so this fails nothing.
pub(super) async fn enable(http: &Http, endpoints: &Endpoints, tokens: &Tokens, models: &[String]) -> usize {
    let enterprise = tokens.extra("enterpriseUrl");
    let base = endpoints.copilot.clone();
    let base = base
        .or_else(|| copilot_address(tokens.access.expose(), enterprise))
        .unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
    let mut headers = vec![
        ("openai-intent", "chat-policy"),
        ("x-interaction-type", "chat-policy"),
    ];
    headers.extend(EDITOR);
    let (headers, base) = (&headers, base.trim_end_matches('/'));
    let one = |model: &String| {
        let url = format!("{base}/models/{model}/policy");
        async move {
            let answer = http
                .json(&url, &tokens.access, headers, &json!({"state": "enabled"}))
                .await;
            answer.is_ok_and(|answer| answer.success().is_ok())
        }
    };
    let mut done = 0;
    let requests: Vec<_> = models.iter().map(one).collect();
    let mut results = stream::iter(requests).buffer_unordered(POLICIES_AT_ONCE);
    let all = async {
        while let Some(is_on) = results.next().await {
            done += usize::from(is_on);
        }
    };
    let _late = timeout(POLICIES, all).await;
    models.len().saturating_sub(done)
}

/// The domain a person means: a host name or an address; none for GitHub's own.
pub(super) fn domain(text: &str) -> Result<Option<String>, LoginError> {
    let text = text.trim();
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_name = host.contains('.')
        && !host.starts_with(['.', '-'])
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    if !is_name {
        return Err(LoginError::Domain(text.to_owned()));
    }
    Ok((host != GITHUB).then_some(host))
}

/// GitHub Copilot's address is named in its token (`proxy-ep=proxy.x` means `api.x`), else by the enterprise domain
/// (providers.md 9).
#[must_use]
pub fn copilot_address(access: &str, enterprise: Option<&str>) -> Option<String> {
    let proxy = access.split(';').find_map(|part| part.strip_prefix("proxy-ep="));
    let named = proxy
        .filter(|host| !host.is_empty())
        .map(|host| match host.strip_prefix("proxy.") {
            Some(rest) => format!("https://api.{rest}"),
            None => format!("https://{host}"),
        });
    named.or_else(|| Some(format!("https://copilot-api.{}", enterprise?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copilot_domains_are_validated() {
        let ok = |text: &str| domain(text).unwrap();
        assert_eq!(
            ok("https://Company.ghe.com/login"),
            Some("company.ghe.com".to_owned())
        );
        assert_eq!(ok("company.ghe.com"), Some("company.ghe.com".to_owned()));
        assert_eq!(ok("github.com"), None);
        for bad in ["", "localhost", "a b.c", "evil.com:443@x", "-a.b", "https://"] {
            assert!(domain(bad).is_err(), "{bad}");
        }
    }
}
