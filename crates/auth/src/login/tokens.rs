//! What a login gives and a renewal renews.

use serde_json::{Value, json};

use super::auth_file::AuthEntry;
use super::fields::{Fields, Member};
use super::token_server::Answer;
use super::{LoginError, clock};
use crate::Secret;

/// Lifetime of a token that does not name its own, in seconds.
const DEFAULT_LIFETIME: f64 = 3600.0;

/// Members of an entry beyond tokens and expiry that a refresh needs.
const KNOWN: [&str; 4] = ["accountId", "enterpriseUrl", "clientId", "hostId"];

/// Tokens, as they go into `auth.json` (providers.md 9).
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    /// Sent with requests.
    pub(super) access: Secret,
    /// Buys the next.
    pub(super) refresh: Secret,
    /// From when on it should be renewed, in ms since 1970.
    pub(super) expires: i64,
    /// Further members, such as `accountId`.
    pub(super) extra: Vec<(&'static str, Value)>,
}

impl Tokens {
    /// The tokens of a response (RFC 6749, 5.1). The refresh token of `old` stays if the response has none (RFC 6749, 6).
    pub(super) fn of_answer(answer: &Answer, old: Option<&Self>) -> Result<Self, LoginError> {
        let access = Secret::new(answer.need("access_token")?);
        let refresh = match (answer.word("refresh_token"), old) {
            (None, Some(old)) => old.refresh.clone(),
            _ => Secret::new(answer.need("refresh_token")?),
        };
        let lifetime = answer.number("expires_in").unwrap_or(DEFAULT_LIFETIME);
        Ok(Self {
            access,
            refresh,
            expires: clock::after(clock::now_ms(), lifetime),
            extra: Vec::new(),
        })
    }

    /// The tokens of an entry; none for a key.
    pub(super) fn of(entry: &AuthEntry) -> Option<Self> {
        let AuthEntry::Oauth {
            access,
            refresh,
            expires,
            ..
        } = entry
        else {
            return None;
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates; times are whole"
        )]
        let expires = *expires as i64;
        let extra = KNOWN
            .into_iter()
            .filter_map(|name| Some((name, json!(entry.extra(name)?))));
        Some(Self {
            access: access.clone(),
            refresh: refresh.clone(),
            expires,
            extra: extra.collect(),
        })
    }

    /// One of the further fields.
    pub(super) fn extra(&self, name: &str) -> Option<&str> {
        let found = self.extra.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value.as_str())
    }

    /// The entry of `auth.json`: over what stands there when that is a login too, else in its place.
    pub(super) fn entry(&self, old: Option<&Member>) -> Fields {
        let mut entry = kept(old, "oauth");
        // What a refresh reads must come from these tokens. A domain of the login before would get the next refresh token.
        for name in KNOWN {
            if !self.extra.iter().any(|(known, _)| *known == name) {
                entry.remove(name);
            }
        }
        let mut set = |name: &str, value: Value| entry.set(name, Member::New(value));
        set("type", json!("oauth"));
        set("access", json!(self.access.expose()));
        set("refresh", json!(self.refresh.expose()));
        set("expires", json!(self.expires));
        for (name, value) in &self.extra {
            set(name, value.clone());
        }
        entry
    }
}

/// What of an old entry stays when one of kind `kind` is stored: all of it, or of another kind only the variables.
pub(super) fn kept(old: Option<&Member>, kind: &str) -> Fields {
    let old = old.and_then(Fields::of_member).unwrap_or_default();
    if is_kind(&old, kind) {
        return old;
    }
    let mut fields = Fields::default();
    if let Some(env) = old.get("env") {
        fields.set("env", env.clone());
    }
    fields
}

/// Returns true if an entry has this kind: `oauth` or `api_key`.
pub(super) fn is_kind(entry: &Fields, kind: &str) -> bool {
    match entry.get("type") {
        Some(Member::Raw(raw)) => serde_json::from_str::<String>(raw.get()).is_ok_and(|found| found == kind),
        _ => false,
    }
}
