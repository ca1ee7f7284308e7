//! What a login gives and a renewal renews.

use serde_json::{Value, json};

use super::auth_file::AuthEntry;
use super::fields::{Fields, Member};
use crate::Secret;

/// Tokens, as they go into `auth.json` (providers.md 9).
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    /// Sent with requests.
    pub(super) access: Secret,
    /// Buys the next.
    pub(super) refresh: Secret,
    /// From when on it should be renewed, in ms since 1970.
    pub(super) expires: i64,
    /// `accountId`, `enterpriseUrl`.
    pub(super) extra: Vec<(&'static str, String)>,
}

impl Tokens {
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
        let known = ["accountId", "enterpriseUrl"];
        let extra = known
            .into_iter()
            .filter_map(|name| Some((name, entry.extra(name)?.to_owned())));
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
        found.map(|(_, value)| value.as_str())
    }

    /// The entry of `auth.json`: over what stands there when that is a login too, else in its place.
    pub(super) fn entry(&self, old: Option<&Member>) -> Fields {
        let mut entry = kept(old, "oauth");
        let mut set = |name: &str, value: Value| entry.set(name, Member::New(value));
        set("type", json!("oauth"));
        set("access", json!(self.access.expose()));
        set("refresh", json!(self.refresh.expose()));
        set("expires", json!(self.expires));
        for (name, value) in &self.extra {
            set(name, json!(value));
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
