//! Text for the model after the sandbox refused an access: it lists the permitted paths, so that the model need not guess.

use std::path::{Path, PathBuf};

use super::policy::{Access, Policy};

/// What programs say when a file may not be opened or changed.
// In lower case, here and below, since the output is compared in lower case.
const FILES: [&str; 5] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "eacces",
    "erofs",
];
/// What they say without a network.
const NETWORK: [&str; 16] = [
    "could not resolve",
    "couldn't resolve",
    "failed to lookup",
    "name resolution",
    "name or service not known",
    "network is unreachable",
    "connection refused",
    "econnrefused",
    "enotfound",
    "enetunreach",
    "failed to connect",
    "could not connect",
    "couldn't connect",
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

/// How a command in the sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an exit code of zero. That of a pipe is the code of its last command, so another one can have been refused.
    Succeeded,
    /// With another exit code, by a signal, or by an abort.
    Failed,
    /// It ran into its timeout.
    TimedOut,
}

/// A line about the sandbox if it may have been in the way of a command that printed `text`.
pub(crate) fn hint(policy: &Policy, text: &str, outcome: Outcome) -> Option<String> {
    let from = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT));
    let said = text.get(from..).unwrap_or_default().to_ascii_lowercase();
    let says = |words: &[&str]| match outcome {
        // A command that succeeds may print such words as its data; as an error they end a line after the program's name.
        Outcome::Succeeded => said.lines().any(|line| {
            let line = line.trim_end_matches(['.', '\'', '"', ')']);
            let ends = |words: &&str| line.strip_suffix(words).is_some_and(|start| start.contains(": "));
            // The program curl names the host after these words, so they do not end its line.
            line.starts_with("curl: (") && words.iter().any(|words| line.contains(words))
                || words.iter().any(ends)
        }),
        Outcome::Failed | Outcome::TimedOut => words.iter().any(|words| said.contains(words)),
    };
    // Programs try again when the network is gone, until the timeout, and may print nothing meanwhile.
    let about_network = !policy.network && (outcome == Outcome::TimedOut || says(&NETWORK));
    if !about_network && !says(&FILES) {
        return None;
    }
    let network = match (policy.network, about_network) {
        (true, _) => "on",
        (false, true) => "off, also for servers on this machine (setting sandbox.network)",
        (false, false) => "off",
    };
    Some(format!(
        "[Commands run in a sandbox. The network is {network}. {}]",
        allowed(policy)
    ))
}

/// What the sandbox forbids, as a rule of the system prompt.
pub(crate) fn rules(policy: &Policy) -> String {
    let network = match policy.network {
        true => "have network access",
        false => "have no network access, not even to this machine (setting sandbox.network)",
    };
    format!("Tools run in a sandbox. Commands {network}. {}", allowed(policy))
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
        "Writing is allowed below {}{but} (settings sandbox.mode and sandbox.writable). Only the user can change this; do not try to get around it.",
        places.join(", ")
    )
}
