//! Text for the model after the sandbox refused an access: it lists the permitted paths, so that the model need not guess.

use std::path::{Path, PathBuf};

use super::policy::{Access, Policy};

/// What programs say when a file may not be opened or changed.
const FILES: [&str; 5] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "eacces",
    "erofs",
];
/// What they say without a network.
const NETWORK: [&str; 9] = [
    "could not resolve",
    "couldn't resolve",
    "failed to lookup",
    "name resolution",
    "name or service not known",
    "network is unreachable",
    "eai_again",
    "socket: operation not permitted",
    "creating socket",
];
/// Bytes of output that are looked through, from its end.
const LOOKED_AT: usize = 16 << 10;

/// A file tool may not do this.
pub(crate) fn refused(policy: &Policy, path: &Path, wanted: Access) -> String {
    match wanted {
        Access::Write => format!(
            "The sandbox refuses this: {} may not be written. {}",
            path.display(),
            allowed(policy)
        ),
        _ => format!("The sandbox refuses this: {} may not be read.", path.display()),
    }
}

/// A failed command's text, with a line about the sandbox if it may have been in the way.
pub(crate) fn explain(policy: &Policy, text: String) -> String {
    let from = text.len().saturating_sub(LOOKED_AT);
    let from = (from..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let said = text.get(from..).unwrap_or_default().to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
    let about_network = !policy.network && says(&NETWORK);
    let about_files = says(&FILES) && !about_network;
    if !about_network && !about_files {
        return text;
    }
    let network = if policy.network { "on" } else { "off" };
    format!(
        "{text}\n[Commands run in a sandbox. The network is {network}. {}]",
        allowed(policy)
    )
}

fn allowed(policy: &Policy) -> String {
    let writable: Vec<PathBuf> = policy.writable().into_iter().map(Path::to_path_buf).collect();
    let places: Vec<String> = writable.iter().map(|path| path.display().to_string()).collect();
    let kept: Vec<String> = policy
        .zones()
        .iter()
        .filter(|zone| zone.access == Access::Read && writable.iter().any(|root| zone.path.starts_with(root)))
        .map(|zone| zone.path.display().to_string())
        .collect();
    let but = if kept.is_empty() {
        String::new()
    } else {
        format!(", but not in {}", kept.join(", "))
    };
    format!(
        "Writing is allowed below {}{but}. The user can change this; do not try to get around it.",
        places.join(", ")
    )
}
