//! How secrets are shown: hardly. Everything the doctor prints out of a key or an address goes through here.

use auth::Secret;

/// What stands for a secret of which nothing is shown; it does not tell its length either.
const HIDDEN: &str = "****";
/// Characters a secret must have before its ends are shown.
const LONG_ENOUGH: usize = 20;
/// Shown of its beginning and its end.
const HEAD: usize = 3;
const TAIL: usize = 2;

/// A secret one may recognise but not use: at most its first three and last two characters.
pub(super) fn mask(secret: &str) -> String {
    let length = secret.chars().count();
    if length < LONG_ENOUGH {
        return HIDDEN.to_owned();
    }
    let head: String = secret.chars().take(HEAD).collect();
    let tail: String = secret.chars().skip(length - TAIL).collect();
    format!("{head}…{tail}")
}

/// Returns the parts of an address that cannot hold a secret: scheme, host and port. Text before the last `@` is a
/// login; paths and queries may be tokens.
pub(super) fn origin(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let (login, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("****@", rest),
        None => ("", rest),
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}{login}{host}")
}

/// A key as it stands in a file: a command, a variable or the key itself (pi-core.md 8.3). `lookup` knows the environment.
pub(super) fn key(text: &Secret, lookup: impl Fn(&str) -> Option<String>) -> String {
    let text = text.expose();
    if text.starts_with('!') {
        return "from a command (not run here)".to_owned();
    }
    if text.is_empty() {
        return "empty".to_owned();
    }
    if lookup(text).is_some() {
        return format!("from the variable {text}");
    }
    let Some(name) = text.strip_prefix('$') else {
        return mask(text);
    };
    let name = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'))
        .unwrap_or(name);
    let is_name = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    match lookup(name) {
        Some(_) => format!("from the variable {name}"),
        // Only what cannot be anything else is shown as a name.
        None if name.chars().all(is_name) && name.contains('_') => {
            format!("from the variable {name}, which is not set")
        }
        None => mask(text),
    }
}
