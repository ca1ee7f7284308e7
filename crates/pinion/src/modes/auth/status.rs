//! `pinion auth status`: which providers can be used, by what, and until when. Never a key, not even part of one.

use auth::login::{AuthEntry, NEVER_MS, renews};
use models::{KeySource, Registry};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::modes::doctor::{keys, now_ms};

/// Columns for a provider's name.
const NAME: usize = 24;
/// Columns for the kind.
const KIND: usize = 8;

/// What opens one provider.
struct Line {
    provider: String,
    /// `key`, `login` or `ambient`.
    kind: &'static str,
    from: String,
    /// When the token of a login ends, in ms since 1970.
    expires: Option<i64>,
    /// True if a refresh token is stored.
    renews: bool,
}

pub(super) fn report(registry: &Registry, env: &Environment, as_json: bool) -> String {
    let lines: Vec<Line> = registry
        .provider_ids()
        .filter_map(|provider| line(registry, provider))
        .collect();
    let now = now_ms();
    if as_json {
        let providers: Vec<Value> = lines.iter().map(|line| line.json(now)).collect();
        let error = registry.auth().error();
        return json!({"authFile": env.auth_file(), "error": error, "providers": providers}).to_string();
    }
    let mut out: Vec<String> = lines.iter().map(|line| line.text(now)).collect();
    if out.is_empty() {
        out.push("No provider has a key or login. To log in: pinion auth login PROVIDER".to_owned());
    }
    out.extend(registry.auth().error().map(str::to_owned));
    out.join("\n")
}

fn line(registry: &Registry, provider: &str) -> Option<Line> {
    let source = registry
        .key_source(provider)
        .filter(|source| *source != KeySource::None)?;
    let expires = match (&source, registry.auth().entry(provider)) {
        (KeySource::Oauth, Some(AuthEntry::Oauth { expires, .. })) => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the cast saturates; times are whole"
            )]
            let expires = *expires as i64;
            Some(expires)
        }
        _ => None,
    };
    Some(Line {
        provider: provider.to_owned(),
        kind: match source {
            KeySource::Oauth => "login",
            KeySource::Ambient => "ambient",
            _ => "key",
        },
        from: keys::from(&source),
        expires,
        renews: expires.is_some() && renews(provider),
    })
}

impl Line {
    fn text(&self, now: i64) -> String {
        let mut text = format!("{:<NAME$} {:<KIND$} {}", self.provider, self.kind, self.from);
        if let Some(expires) = self.expires {
            text.push_str(&format!(", {}", keys::ends(expires, now)));
            text.push_str(if self.renews {
                ", renewed when needed"
            } else if expires < NEVER_MS {
                ", not renewed here"
            } else {
                ""
            });
        }
        text
    }

    fn json(&self, now: i64) -> Value {
        let (provider, kind, source) = (&self.provider, self.kind, &self.from);
        match self.expires {
            None => json!({"provider": provider, "kind": kind, "source": source}),
            Some(expires) => json!({
                "provider": provider, "kind": kind, "source": source,
                "expires": expires, "expired": expires <= now, "renews": self.renews,
            }),
        }
    }
}
