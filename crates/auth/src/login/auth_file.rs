//! `auth.json`: stored keys and OAuth tokens (pi-core.md 8.4). Read without a lock and never created by reading. Not here:
//! logging in, renewing tokens, writing the file.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::alias::new_name;
use super::json_file::{describe, plain_json, read_text};
use crate::Secret;

/// A stored credential.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AuthEntry {
    /// A key: literal, variable or command. The command runs once per file that is read.
    ApiKey {
        /// What to look up; empty if the entry holds only variables (pi 1.5.2).
        #[serde(default = "no_secret", deserialize_with = "secret")]
        key: Secret,
        /// Variables that apply to this provider only (pi-1.5-delta.md 6).
        #[serde(default)]
        env: Map<String, Value>,
        /// The looked-up key.
        #[serde(skip)]
        resolved: OnceLock<Secret>,
    },
    /// Tokens of a login.
    Oauth {
        /// Sent with requests.
        #[serde(deserialize_with = "secret")]
        access: Secret,
        /// Buys the next access token.
        #[serde(deserialize_with = "secret")]
        refresh: Secret,
        /// When the access token ends, in ms since 1970.
        expires: f64,
        /// Everything else, for example `accountId` and `enterpriseUrl`.
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
}

fn secret<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Secret, D::Error> {
    String::deserialize(input).map(Secret::from)
}

fn no_secret() -> Secret {
    Secret::new("")
}

/// Hides everything but the kind.
impl fmt::Debug for AuthEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::ApiKey { .. }) {
            "ApiKey(..)"
        } else {
            "Oauth(..)"
        })
    }
}

impl AuthEntry {
    /// Returns false for an entry without key and variables, such as one with a misspelled `key`.
    fn has_content(&self) -> bool {
        !matches!(self, Self::ApiKey { key, env, .. } if key.expose().is_empty() && env.is_empty())
    }

    /// A provider-scoped variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let env = match self {
            Self::ApiKey { env, .. } => env,
            Self::Oauth { extra, .. } => extra.get("env")?.as_object()?,
        };
        env.get(name)?.as_str().filter(|value| !value.is_empty())
    }

    /// All members, as the file has them.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        match self {
            Self::ApiKey { key, env, .. } => {
                fields.insert("type".to_owned(), "api_key".into());
                fields.insert("key".to_owned(), key.expose().into());
                fields.insert("env".to_owned(), Value::Object(env.clone()));
            }
            Self::Oauth {
                access,
                refresh,
                expires,
                extra,
            } => {
                fields.clone_from(extra);
                fields.insert("type".to_owned(), "oauth".into());
                fields.insert("access".to_owned(), access.expose().into());
                fields.insert("refresh".to_owned(), refresh.expose().into());
                fields.insert("expires".to_owned(), (*expires).into());
            }
        }
        fields
    }

    /// A field of an OAuth entry beyond tokens and expiry.
    #[must_use]
    pub fn extra(&self, name: &str) -> Option<&str> {
        match self {
            Self::Oauth { extra, .. } => extra.get(name)?.as_str(),
            Self::ApiKey { .. } => None,
        }
    }
}

/// All stored credentials.
#[derive(Debug, Default)]
pub struct AuthFile {
    entries: Vec<(String, AuthEntry)>,
    error: Option<String>,
}

impl AuthFile {
    /// Reads the file; a missing one is an empty one.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        match read_text(path) {
            Ok(Some(text)) => {
                let mut file = Self::parse(&text);
                file.error = file
                    .error
                    .map(|error| format!("{error}\n\nFile: {}", path.display()));
                file
            }
            Ok(None) => Self::default(),
            Err(error) => Self {
                entries: Vec::new(),
                error: Some(describe("Failed to read", &error.to_string(), path)),
            },
        }
    }

    /// Parses the text of the file. An entry of an unknown shape is left out and named in the error, the others stay;
    /// the error never quotes the file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let root: Map<String, Value> = match serde_json::from_str(&plain_json(text)) {
            Ok(root) => root,
            Err(error) => {
                let place = format!("line {} column {}", error.line(), error.column());
                return Self {
                    entries: Vec::new(),
                    error: Some(format!("Failed to parse auth.json: {place}")),
                };
            }
        };
        let mut file = Self::default();
        for (provider, value) in root {
            let entry = AuthEntry::deserialize(value).ok();
            match entry.filter(AuthEntry::has_content) {
                Some(entry) => file.entries.push((provider, entry)),
                None => file.error = Some(format!("Invalid auth.json: entry {provider} was ignored")),
            }
        }
        file
    }

    /// The credential of a provider.
    #[must_use]
    pub fn entry(&self, provider: &str) -> Option<&AuthEntry> {
        let named = |name: &str| self.entries.iter().find(|(id, _)| id == name);
        let found = named(provider).or_else(|| named(new_name(provider)?));
        found.map(|(_, entry)| entry)
    }

    /// All credentials with their provider ids, in file order.
    #[must_use]
    pub fn entries(&self) -> &[(String, AuthEntry)] {
        &self.entries
    }

    /// The error that leaves no entry to be used.
    pub(super) fn fatal_error(&self) -> Option<&str> {
        self.error().filter(|_| self.entries.is_empty())
    }

    /// The error that names ignored entries.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}
