//! What must not be written down: all credentials this process has seen, and how they are taken out of texts. Where they
//! come from is known in `models`; which texts leave the process is known to those who write them.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memmem;

use crate::limits::{MAX_SECRETS, SHORTEST_SECRET};

/// What stands where a credential was.
pub const REPLACEMENT: &str = "[key]";

/// Placeholders in place of a key that are no secrets.
const HARMLESS: [&str; 4] = [
    "<authenticated>",
    "not-required",
    "no-key-needed",
    "placeholder-key",
];

/// Request headers whose values are never secret: what a program is and can do.
const PROGRAM_HEADERS: [&str; 21] = [
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "content-length",
    "content-type",
    "copilot-integration-id",
    "copilot-vision-request",
    "editor-plugin-version",
    "editor-version",
    "host",
    "http-referer",
    "openai-beta",
    "openai-intent",
    "originator",
    "user-agent",
    "x-app",
    "x-github-api-version",
    "x-initiator",
    "x-title",
];

/// Request headers with ids of sessions and times. They are no secrets unless the user has configured them: a server may take
/// its key under any of these names.
const ID_HEADERS: [&str; 8] = [
    "session-id",
    "session_id",
    "x-affinity",
    "x-amz-date",
    "x-client-request-id",
    "x-opencode-session",
    "x-session-affinity",
    "x-session-id",
];

/// Start of a signature of AWS. Each request has another one, which opens nothing else; the keys are learnt by those who sign.
const SIGNATURE: &str = "AWS4-HMAC-SHA256 ";

/// Credentials that are redacted from texts. Clones are cheap and share one list.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    /// Each in all the forms it takes in texts: first the configured ones, then the others in the order in which they were
    /// learnt.
    needles: Vec<memmem::Finder<'static>>,
    /// How many of them are configured.
    configured: usize,
}

impl Known {
    fn position(&self, form: &[u8]) -> Option<usize> {
        self.needles.iter().position(|finder| finder.needle() == form)
    }

    fn add(&mut self, finder: memmem::Finder<'static>) {
        // Tokens are refreshed without end; the oldest one has long expired.
        if self.needles.len() >= MAX_SECRETS {
            self.needles.remove(self.configured);
        }
        self.needles.push(finder);
    }

    fn add_configured(&mut self, finder: memmem::Finder<'static>) {
        match self.position(finder.needle()) {
            Some(at) if at < self.configured => return,
            Some(at) => drop(self.needles.remove(at)),
            None => {}
        }
        self.add(finder);
        // Files are read again and again, so these need a bound, too.
        if self.configured < MAX_SECRETS / 2 {
            if let Some(others) = self.needles.get_mut(self.configured..) {
                others.rotate_right(1);
            }
            self.configured += 1;
        }
    }
}

/// Shows how many, not which.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.read(|known| known.needles.len()))
    }
}

impl Secrets {
    /// Remembers a credential. Short ones are not looked for: they would hit ordinary words.
    pub fn learn(&self, text: &str) {
        let text = text.trim();
        if text.len() < SHORTEST_SECRET || HARMLESS.contains(&text) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for form in forms(text) {
            if known.position(form.as_bytes()).is_none() {
                known.add(memmem::Finder::new(form.as_bytes()).into_owned());
            }
        }
    }

    /// Remembers the credentials of another list as configured ones. Credentials that are learnt later never displace them.
    pub fn keep(&self, configured: &Self) {
        let found = configured.read(|known| known.needles.clone());
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for finder in found {
            known.add_configured(finder);
        }
    }

    /// Remembers what a request header carries, unless it is known to be no secret: the value, and what follows a scheme
    /// (`Bearer`).
    pub fn learn_header(&self, name: &str, value: &str) {
        if !is_open_header(name) && !value.starts_with(SIGNATURE) {
            self.learn_header_value(value);
        }
    }

    /// As [`Self::learn_header`], for a header that the user has configured: it carries no id of a session of this program.
    pub fn learn_configured_header(&self, name: &str, value: &str) {
        if !is_one_of(&PROGRAM_HEADERS, name) {
            self.learn_header_value(value);
        }
    }

    fn learn_header_value(&self, value: &str) {
        self.learn(value);
        if let Some((_, credential)) = value.trim().rsplit_once(' ') {
            self.learn(credential);
        }
    }

    /// Remembers what an address carries: a login, and the values of parameters.
    pub fn learn_url(&self, url: &str) {
        for secret in url_secrets(url) {
            self.learn(secret);
            self.learn(&percent_decoded(secret));
        }
    }

    /// The text without the credentials.
    #[must_use]
    pub fn redact(&self, text: String) -> String {
        match self.redact_bytes(text.as_bytes()) {
            // Whole credentials were cut out of valid text, so it stays valid.
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => text,
        }
    }

    /// The bytes without the credentials; none when there is nothing to take out.
    #[must_use]
    pub fn redact_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let found = self.find(bytes);
        if found.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for (start, end) in found {
            out.extend_from_slice(bytes.get(from..start).unwrap_or_default());
            out.extend_from_slice(REPLACEMENT.as_bytes());
            from = end;
        }
        out.extend_from_slice(bytes.get(from..).unwrap_or_default());
        Some(out)
    }

    /// Where credentials stand, first to last, none overlapping; of several at one place the longest.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, usize)> = self.read(|known| {
            let places = known.needles.iter().flat_map(|finder| {
                let length = finder.needle().len();
                finder.find_iter(bytes).map(move |at| (at, at + length))
            });
            places.collect()
        });
        all.sort_unstable_by_key(|(start, end)| (*start, usize::MAX - end));
        let mut free = 0;
        all.retain(|(start, end)| {
            let keep = *start >= free;
            if keep {
                free = *end;
            }
            keep
        });
        all
    }

    /// Length of the longest end of `bytes` that may be the beginning of a credential.
    #[must_use]
    pub fn open_end(&self, bytes: &[u8]) -> usize {
        // Of each only the places where its first byte stands are looked at: this runs for every piece of a recording.
        let open = |finder: &memmem::Finder<'_>| {
            let needle = finder.needle();
            let window = bytes.get(bytes.len().saturating_sub(needle.len() - 1)..)?;
            let begins = |at: &usize| needle.starts_with(window.get(*at..).unwrap_or_default());
            let at = memchr::memchr_iter(*needle.first()?, window).find(begins)?;
            Some(window.len() - at)
        };
        self.read(|known| known.needles.iter().filter_map(open).max())
            .unwrap_or(0)
    }

    fn read<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns true if the header is known to carry no secret, unless the user has configured it.
#[must_use]
pub fn is_open_header(name: &str) -> bool {
    is_one_of(&PROGRAM_HEADERS, name) || is_one_of(&ID_HEADERS, name)
}

fn is_one_of(headers: &[&str], name: &str) -> bool {
    headers.iter().any(|header| name.eq_ignore_ascii_case(header))
}

/// Returns an address without login and without the values of its parameters, except words of a protocol.
#[must_use]
pub fn open_url(url: &str) -> String {
    let mut out = url.to_owned();
    for secret in url_secrets(url) {
        if !secret.is_empty() {
            out = out.replace(secret, REPLACEMENT);
        }
    }
    out
}

/// Parameters whose values everybody may see.
const OPEN_PARAMETERS: [&str; 4] = ["alt", "api-version", "beta", "version"];

/// The parts of an address that may be secrets: the login, the values of parameters.
fn url_secrets(url: &str) -> Vec<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let login = authority.rsplit_once('@').map(|(login, _)| login);
    let password = login.map(|login| login.split_once(':').map_or(login, |(_, password)| password));
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let values = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| !OPEN_PARAMETERS.contains(name))
        .map(|(_, value)| value);
    login.into_iter().chain(password).chain(values).collect()
}

/// The ways a text is written in bodies and addresses.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    let quoted = serde_json::to_string(text).unwrap_or_default();
    if let Some(inside) = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        forms.push(inside.to_owned());
        // Inside a text that is itself written inside JSON, as tool arguments are.
        forms.push(inside.replace('\\', "\\\\").replace('"', "\\\""));
    }
    let encoded = percent_encoded(text);
    forms.push(in_small_letters(&encoded));
    forms.push(encoded);
    let every: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    forms.push(every.to_ascii_lowercase());
    forms.push(every);
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hex.to_ascii_uppercase());
    forms.push(hex);
    forms.extend(base64_forms(text));
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Returns the substrings of which one occurs in the base64 form of every text that contains this one, such as
/// `user:key` of a login. There are three, for the three offsets modulo 3. Letters at the ends that also depend on
/// neighbouring bytes are cut off.
fn base64_forms(text: &str) -> impl Iterator<Item = String> {
    let form = |before: usize| {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let encoded = STANDARD_NO_PAD.encode(&bytes);
        let shared = if bytes.len().is_multiple_of(3) { 0 } else { 1 };
        let from = [0, 2, 3].get(before).copied().unwrap_or_default();
        let inside = encoded.get(from..encoded.len().saturating_sub(shared));
        inside.unwrap_or_default().to_owned()
    };
    (0..3).map(form).flat_map(|standard| {
        let in_urls = standard.replace('+', "-").replace('/', "_");
        // In an address, or in a form.
        let encoded = percent_encoded(&standard);
        [in_small_letters(&encoded), encoded, in_urls, standard]
    })
}

/// Returns the text with `%xx` in place of `%XX`.
fn in_small_letters(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        out.push('%');
        out.push_str(&code.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The text without `%XX`.
#[must_use]
pub fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let byte = code
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(texts: &[&str]) -> Secrets {
        let secrets = Secrets::default();
        texts.iter().for_each(|text| secrets.learn(text));
        secrets
    }

    #[test]
    fn secrets_are_redacted_in_every_encoding_longest_first() {
        let secrets = known(&["sk-0123456789", "sk-0123456789-long", "quo\"te\\d-0123 é"]);
        let text = "a sk-0123456789-long b sk-0123456789 c".to_owned();
        assert_eq!(secrets.redact(text), "a [key] b [key] c");
        let quoted = serde_json::json!({"k": "quo\"te\\d-0123 é"}).to_string();
        assert_eq!(secrets.redact(quoted.clone()), r#"{"k":"[key]"}"#);
        let twice = serde_json::json!({ "arguments": quoted }).to_string();
        assert!(!secrets.redact(twice.clone()).contains("0123"), "{twice}");
        assert_eq!(secrets.redact("x=quo%22te%5Cd-0123%20%C3%A9".into()), "x=[key]");
        assert_eq!(secrets.redact("untouched".into()), "untouched");
    }

    #[test]
    fn base64_encoded_secrets_are_redacted_at_any_offset() {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
        // The second one has every letter in which the alphabets differ.
        for key in [
            "sk-ant-0123456789abcdef",
            "sk~>?~>?>>>???~~~~~~>?>?",
            "exactly12byt",
        ] {
            let secrets = known(&[key]);
            for before in ["", "u", "me", "me:", "user:", "Bearer "] {
                for after in ["", "\n", "==", "xyz"] {
                    let whole = format!("{before}{key}{after}");
                    let standard = STANDARD.encode(&whole);
                    for text in [
                        percent_encoded(&standard),
                        in_small_letters(&percent_encoded(&standard)),
                        standard,
                        STANDARD_NO_PAD.encode(&whole),
                        URL_SAFE.encode(&whole),
                        URL_SAFE_NO_PAD.encode(&whole),
                    ] {
                        let shown = secrets.redact(format!("authorization: {text}!"));
                        assert!(shown.contains(REPLACEMENT), "{shown}");
                        // The only remaining letters also encode neighbouring bytes.
                        let left = shown.len() - "authorization: !".len() - REPLACEMENT.len();
                        assert!(left <= 2 * (before.len() + after.len()) + 10, "{shown}");
                    }
                }
            }
            let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
            let every: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
            for text in [
                hex.to_uppercase(),
                hex,
                percent_encoded(key),
                in_small_letters(&percent_encoded(key)),
                every.to_lowercase(),
                every,
            ] {
                assert_eq!(secrets.redact(format!("a {text} b")), "a [key] b");
            }
        }
        let secrets = known(&["sk-ant-0123456789abcdef"]);
        let other = STANDARD.encode("sk-ant-0123 is no key of ours");
        assert_eq!(secrets.redact(other.clone()), other);
    }

    #[test]
    fn ordinary_words_are_not_secrets() {
        let secrets = known(&["ollama", "<authenticated>", "  "]);
        secrets.learn_header("User-Agent", "a-long-name/1.0.0.0");
        assert_eq!(format!("{secrets:?}"), "Secrets(0)");
        secrets.learn_header("X-Corp", "Bearer abcdefghijklmnop");
        assert_eq!(secrets.redact("abcdefghijklmnop".into()), "[key]");
    }

    #[test]
    fn ids_times_and_signatures_are_not_secrets() {
        let secrets = Secrets::default();
        for name in [
            "session-id",
            "session_id",
            "x-client-request-id",
            "x-opencode-session",
            "x-session-affinity",
            "x-session-id",
            "X-Affinity",
            "x-amz-date",
        ] {
            secrets.learn_header(name, "0198c0de-7e57-7000");
        }
        let signature = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/x, SignedHeaders=host, Signature=0123456789";
        secrets.learn_header("authorization", signature);
        assert_eq!(format!("{secrets:?}"), "Secrets(0)");
    }

    #[test]
    fn configured_ids_are_secrets() {
        let secrets = Secrets::default();
        secrets.learn_configured_header("User-Agent", "a-long-name/1.0.0.0");
        assert_eq!(format!("{secrets:?}"), "Secrets(0)");
        secrets.learn_configured_header("X-Session-Id", "corp-session-0123");
        assert_eq!(secrets.redact("corp-session-0123".into()), "[key]");
    }

    #[test]
    fn configured_secrets_are_never_displaced() {
        let secrets = known(&["sk-learnt-first-01", "sk-configured-0123"]);
        secrets.keep(&known(&["sk-configured-0123", "sk-configured-4567"]));
        let filler = memmem::Finder::new("filler").into_owned();
        secrets.0.write().unwrap().needles.resize(MAX_SECRETS, filler);
        for last in ["sk-learnt-last-012", "sk-learnt-last-345", "sk-learnt-last-678"] {
            secrets.learn(last);
        }
        // A secret that is known already stays where it is.
        secrets.learn("sk-configured-0123");
        assert_eq!(secrets.read(|known| known.needles.len()), MAX_SECRETS);
        let text = "sk-learnt-first-01 sk-configured-0123 sk-configured-4567 sk-learnt-last-012";
        assert_eq!(
            secrets.redact(text.to_owned()),
            "sk-learnt-first-01 [key] [key] [key]"
        );
    }

    #[test]
    fn redacted_urls_keep_public_parts() {
        assert_eq!(
            open_url("https://me:word-of-honour@h:1/v1?key=AIza-x&alt=sse#f"),
            "https://[key]@h:1/v1?key=[key]&alt=sse#f"
        );
        assert_eq!(open_url("http://h/v1/a@b"), "http://h/v1/a@b");
        let secrets = Secrets::default();
        secrets.learn_url("https://h/?token=a%2Fb-0123456789");
        assert_eq!(
            secrets.redact("a/b-0123456789 a%2Fb-0123456789".into()),
            "[key] [key]"
        );
    }

    #[test]
    fn partial_secret_at_text_end_is_detected() {
        let secrets = known(&["sk-0123456789"]);
        for (text, open) in [
            ("qqq", 0),
            ("qqq s", 1),
            ("sk-012345678", 12),
            ("sk-0123456789", 0),
            ("sk-1s", 1),
        ] {
            assert_eq!(secrets.open_end(text.as_bytes()), open, "{text}");
        }
    }
}
