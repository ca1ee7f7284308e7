//! Section: auth.json, models.json, and the providers that have a key, each with the place it comes from.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use auth::login::{AuthEntry, NEVER_MS};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use models::KeySource;
use serde_json::{Value, json};

use super::report::{Mark, Section};
use super::{Patient, mask};

/// Bits of a file's mode that let others in.
const OTHERS: u32 = 0o077;

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("credentials", "Keys and providers");
    let auth = auth_file(&mut section, patient);
    let models = models_file(&mut section, patient);
    let providers = providers(&mut section, patient);
    section.data = json!({"authFile": auth, "modelsFile": models, "providers": providers});
    section
}

fn auth_file(section: &mut Section, patient: &Patient<'_>) -> Value {
    let path = patient.env.agent_dir.join("auth.json");
    let entries = patient.registry.auth().entries();
    let state = state(&path, patient.registry.auth().error(), entries.is_empty());
    head(section, patient, &path, state, entries.len(), "entry", "entries");
    let mut data = Vec::new();
    for (provider, entry) in entries {
        let (kind, shown, expires) = describe(patient, provider, entry);
        let known = patient.registry.provider_ids().any(|id| id == provider);
        let unknown = if known { "" } else { "; no provider has this name" };
        let mark = if known { Mark::None } else { Mark::Odd };
        section.marked(mark, "", format!("{provider}: {kind}, {shown}{unknown}"));
        data.push(
            json!({"provider": provider, "kind": kind, "shown": shown, "expires": expires, "known": known}),
        );
    }
    if let Some(mode) = fs::metadata(&path).ok().map(|meta| meta.permissions().mode())
        && mode & OTHERS != 0
    {
        section.warn(format!(
            "{}: other users of this machine may read it (mode {:03o}); chmod 600 keeps it to yourself",
            path.display(),
            mode & 0o777
        ));
    }
    json!({"path": path, "state": state, "error": patient.registry.auth().error(), "entries": data})
}

/// Kind, what may be shown, and the time in ms at which a login runs out.
fn describe(patient: &Patient<'_>, provider: &str, entry: &AuthEntry) -> (&'static str, String, Option<i64>) {
    match entry {
        AuthEntry::ApiKey { key, .. } => {
            let lookup = |name: &str| patient.registry.variable(provider, name);
            ("API key", mask::key(key, lookup), None)
        }
        AuthEntry::Oauth { access, expires, .. } => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the cast saturates; times are whole"
            )]
            let expires = *expires as i64;
            let when = ends(expires, patient.now);
            (
                "login",
                format!("{}, {when}", mask::mask(access.expose())),
                Some(expires),
            )
        }
    }
}

/// When a token ends, in words.
pub(in crate::modes) fn ends(expires: i64, now: i64) -> String {
    if expires >= NEVER_MS {
        return "does not expire".to_owned();
    }
    let minutes = expires.saturating_sub(now) / 60_000;
    let span = match minutes.unsigned_abs() {
        minutes @ 0..=119 => format!("{minutes} min"),
        minutes @ 120..=2879 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1440),
    };
    let moment = Timestamp::from_millisecond(expires)
        .map(|time| {
            time.to_zoned(TimeZone::system())
                .strftime(" (%Y-%m-%d %H:%M)")
                .to_string()
        })
        .unwrap_or_default();
    if expires > now {
        format!("expires in {span}{moment}")
    } else {
        format!("expired {span} ago{moment}")
    }
}

fn models_file(section: &mut Section, patient: &Patient<'_>) -> Value {
    let path = patient.env.agent_dir.join("models.json");
    let own = patient.registry.models_file().providers();
    let error = patient.registry.models_file().error();
    let state = state(&path, error, own.is_empty());
    head(section, patient, &path, state, own.len(), "provider", "providers");
    let mut data = Vec::new();
    for (provider, def) in own {
        let count = patient.registry.models_of(provider).len();
        let address = def.base_url.as_deref().map(mask::origin);
        let at = address
            .as_deref()
            .map_or_else(String::new, |at| format!(" at {at}"));
        section.row(
            "",
            format!("{provider}: {}{at}", counted(count, "model", "models")),
        );
        data.push(json!({"provider": provider, "models": count, "address": address}));
    }
    json!({"path": path, "state": state, "error": error, "providers": data})
}

fn state(path: &Path, error: Option<&str>, empty: bool) -> &'static str {
    match error {
        Some(_) if empty => "broken",
        Some(_) => "partly-read",
        None if path.exists() => "read",
        None => "missing",
    }
}

fn head(
    section: &mut Section,
    patient: &Patient<'_>,
    path: &Path,
    state: &str,
    count: usize,
    one: &str,
    many: &str,
) {
    let count = counted(count, one, many);
    let (mark, text) = match state {
        "broken" => (
            Mark::Bad,
            "broken, so all of it is left out (see below)".to_owned(),
        ),
        "partly-read" => (Mark::Odd, format!("{count}, the rest is broken (see below)")),
        "missing" => (Mark::None, "not there".to_owned()),
        _ => (Mark::Good, count),
    };
    let label = path.file_name().unwrap_or_default().to_string_lossy();
    section.marked(mark, label, format!("{}  {text}", patient.short(path)));
}

fn providers(section: &mut Section, patient: &Patient<'_>) -> Vec<Value> {
    let registry = &patient.registry;
    let mut data = Vec::new();
    let mut rows = Vec::new();
    for provider in registry.provider_ids() {
        let Some(source) = registry
            .key_source(provider)
            .filter(|source| *source != KeySource::None)
        else {
            continue;
        };
        let models = registry.models_of(provider);
        let speaks = models.iter().any(|model| llm::supports(&model.api));
        let from = from(&source);
        let count = counted(models.len(), "model", "models");
        let (mark, note) = if speaks {
            (Mark::Good, "")
        } else {
            (Mark::Odd, "; its protocol is not built in yet")
        };
        rows.push((
            mark,
            provider.to_owned(),
            format!("{count}, key from {from}{note}"),
        ));
        data.push(json!({
            "provider": provider, "models": models.len(), "keyFrom": from, "supported": speaks,
        }));
    }
    let count = counted(data.len(), "provider has a key", "providers have a key");
    let count = if data.is_empty() {
        "no provider has a key".to_owned()
    } else {
        count
    };
    let mark = if data.is_empty() { Mark::Bad } else { Mark::None };
    section.marked(mark, "providers", count);
    for (mark, label, text) in rows {
        section.marked(mark, label, text);
    }
    data
}

/// Where a key comes from, in words.
pub(in crate::modes) fn from(source: &KeySource) -> String {
    match source {
        KeySource::Runtime => "--api-key".to_owned(),
        KeySource::AuthFile => "auth.json".to_owned(),
        KeySource::Oauth => "auth.json (login)".to_owned(),
        KeySource::Env(name) => name.clone(),
        KeySource::Ambient => "the cloud's own credentials".to_owned(),
        KeySource::ModelsFile => "models.json".to_owned(),
        KeySource::None => "nowhere: none is needed".to_owned(),
    }
}

/// `1 model`, `2 models`.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
