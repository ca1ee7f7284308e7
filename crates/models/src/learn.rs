//! All credentials are collected before they are used, so that no text reveals even unused ones. Here: collecting them
//! from files and environment. `secrets` removes them from texts.

use auth::login::AuthEntry;

use crate::store::Registry;
use crate::value::Lookup;

impl Registry {
    /// Notes everything that is or may be a credential, as far as one can tell without running commands.
    pub(crate) fn learn_secrets(&self) {
        let secrets = self.secrets();
        let env = |name: &str| (self.sources().env)(name);
        for name in self.key_variables() {
            env(&name).iter().for_each(|value| secrets.learn(value));
        }
        // A text that names nothing is the credential itself.
        let literal = |text: &str| {
            let lookup = Lookup {
                env: &env,
                run: &|_| None,
            };
            lookup.resolve(text, "").ok().filter(|value| !is_name(value))
        };
        for (_, entry) in self.auth().entries() {
            match entry {
                AuthEntry::ApiKey { key, env, .. } => {
                    literal(key.expose()).iter().for_each(|key| secrets.learn(key));
                    let values = env.iter().filter(|(name, _)| holds_key(name));
                    values
                        .filter_map(|(_, value)| value.as_str())
                        .for_each(|value| secrets.learn(value));
                }
                AuthEntry::Oauth { access, refresh, .. } => {
                    secrets.learn(access.expose());
                    secrets.learn(refresh.expose());
                }
            }
        }
        for def in self.definitions() {
            let own = def.api_key.as_deref().and_then(literal);
            own.iter().for_each(|key| secrets.learn(key));
            let urls = def.models.iter().filter_map(|model| model.base_url.as_deref());
            urls.chain(def.base_url.as_deref())
                .for_each(|url| secrets.learn_url(url));
            let models = def.models.iter().flat_map(|model| &model.headers);
            let changes = def.overrides.iter().flat_map(|(_, change)| &change.headers);
            for (name, value) in def.headers.iter().chain(models).chain(changes) {
                let value = value.as_str().and_then(literal);
                value.iter().for_each(|value| secrets.learn_header(name, value));
            }
        }
    }
}

/// Returns true if a variable of `auth.json` holds a credential, judged by its name.
fn holds_key(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD"]
        .iter()
        .any(|part| name.contains(part))
}

/// A variable that is not set, rather than a key.
fn is_name(text: &str) -> bool {
    text.contains('_')
        && text
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit())
}
