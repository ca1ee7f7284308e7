//! Every key of settings.json that the pi family knows, and what it means to us: one table for those who explain a file
//! (`pinion doctor`). Reading values lives in `typed`.

use serde_json::{Map, Value};

/// What a key of a settings file comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyUse {
    /// It has an effect.
    Used,
    /// It is understood and checked, but nothing depends on it in this version.
    NotYet,
    /// It belongs to a terminal or to a part of other agents that does not exist here.
    NoMeaning,
    /// An old name; the value counts under the name given.
    Renamed(&'static str),
    /// Nobody knows it. The name of a known key that looks alike.
    Unknown(Option<&'static str>),
    /// Left out: the project is not trusted.
    Untrusted,
    /// Left out: only the user's own file may say this.
    GlobalOnly,
}

/// Keys with an effect; those of objects by path.
const USED: [&str; 81] = [
    "packages",
    "extensions",
    "hooks",
    "hookTimeout",
    "customTools",
    "extensionRuntime",
    "keepKeysInToolEnv",
    "modelThinkingLevels",
    "compaction.modelOverrides",
    "branchSummary.reserveTokens",
    "retry.provider.maxRetryDelayMs",
    "defaultProvider",
    "defaultModel",
    "defaultThinkingLevel",
    "thinkingBudgets.minimal",
    "thinkingBudgets.low",
    "thinkingBudgets.medium",
    "thinkingBudgets.high",
    "steeringMode",
    "followUpMode",
    "interruptMode",
    "compaction.enabled",
    "compaction.reserveTokens",
    "compaction.keepRecentTokens",
    "retry.enabled",
    "retry.maxRetries",
    "retry.baseDelayMs",
    "retry.maxAgentDelayMs",
    "retry.provider.timeoutMs",
    "retry.provider.maxRetries",
    "shellPath",
    "shellCommandPrefix",
    "images.autoResize",
    "images.blockImages",
    "enabledModels",
    "defaultTools",
    "sessionDir",
    "httpProxy",
    "httpIdleTimeoutMs",
    "skills",
    "prompts",
    "defaultProjectTrust",
    "todo.enabled",
    "todo.reminders",
    "todo.reminders.enabled",
    "todo.reminders.max",
    "tasks.todoClearDelay",
    "ttsr.enabled",
    "ttsr.interruptMode",
    "ttsr.contextMode",
    "ttsr.repeatMode",
    "ttsr.repeatGap",
    "localServers.enabled",
    "localServers.servers",
    "permissions.mode",
    "permissions.allow",
    "permissions.ask",
    "permissions.deny",
    "sandbox.mode",
    "sandbox.network",
    "sandbox.unixSockets",
    "sandbox.gitWritable",
    "sandbox.userBash",
    "sandbox.writable",
    "sandbox.readable",
    "sandbox.denyRead",
    "dialogTimeoutMs",
    "maxOpenSessions",
    "sessionIdleMs",
    // Objects themselves: their members are what counts.
    "thinkingBudgets",
    "compaction",
    "branchSummary",
    "retry",
    "retry.provider",
    "images",
    "todo",
    "tasks",
    "ttsr",
    "localServers",
    "permissions",
    "sandbox",
];

/// Keys that are read and checked before their effect is there. A key moves to [`USED`] together with its effect.
const NOT_YET: [&str; 0] = [];

/// Keys of terminals, package managers, telemetry and transports that do not exist here.
const NO_MEANING: [&str; 41] = [
    "autocompleteMaxVisible",
    "branchSummary.skipPrompt",
    "cacheWarming",
    "codemode",
    "collapseChangelog",
    "doubleEscapeAction",
    "editorPaddingX",
    "enableAnalytics",
    "enableInstallTelemetry",
    "enableSkillCommands",
    "fullscreenExitOutput",
    "hideThinkingBlock",
    "lastChangelogVersion",
    "markdown",
    "mcp",
    "mcpServers",
    "mouseScroll",
    "npmCommand",
    "outputPad",
    "quietStartup",
    "scrollbar",
    "selfUpdateCommand",
    "sessionShareDestination",
    "shareViewerUrl",
    "showCacheMissNotices",
    "showHardwareCursor",
    "terminal",
    "theme",
    "themes",
    "thinkingBudgets.max",
    "thinkingBudgets.xhigh",
    "todo.eager",
    "trackingId",
    "transport",
    "treeFilterMode",
    "tuiMode",
    "warnings",
    "websocketConnectTimeoutMs",
    "wheelScrollLines",
    "externalEditor",
    // For editors.
    "$schema",
];

/// Old names and today's.
const RENAMED: [(&str, &str); 3] = [
    ("queueMode", "steeringMode"),
    ("websockets", "transport"),
    ("retry.maxDelayMs", "retry.provider.maxRetryDelayMs"),
];

/// Objects whose members are looked at one by one.
const OPENED: [&str; 13] = [
    "thinkingBudgets",
    "compaction",
    "branchSummary",
    "retry",
    "retry.provider",
    "images",
    "todo",
    "todo.reminders",
    "tasks",
    "ttsr",
    "localServers",
    "permissions",
    "sandbox",
];

/// What a key means, given by its path (`retry.provider.maxRetries`).
#[must_use]
pub fn meaning(path: &str) -> KeyUse {
    if USED.contains(&path) {
        return KeyUse::Used;
    }
    if NOT_YET.contains(&path) {
        return KeyUse::NotYet;
    }
    if NO_MEANING.contains(&path) {
        return KeyUse::NoMeaning;
    }
    match RENAMED.iter().find(|(old, _)| *old == path) {
        Some((_, new)) => KeyUse::Renamed(new),
        None => KeyUse::Unknown(alike(path)),
    }
}

/// The paths of all keys in a file, in its order: objects we know are opened, everything else is one key.
pub(crate) fn paths(keys: &Map<String, Value>) -> Vec<String> {
    let mut out = Vec::new();
    collect("", keys, &mut out);
    out
}

fn collect(prefix: &str, keys: &Map<String, Value>, out: &mut Vec<String>) {
    for (key, value) in keys {
        let path = format!("{prefix}{key}");
        match value {
            Value::Object(inner) if OPENED.contains(&path.as_str()) && !inner.is_empty() => {
                collect(&format!("{path}."), inner, out);
            }
            _ => out.push(path),
        }
    }
}

/// The known key that was probably meant.
fn alike(path: &str) -> Option<&'static str> {
    let wanted = path.to_lowercase();
    // A short name resembles too many others.
    let bound = wanted.chars().count() / 5;
    USED.iter()
        .chain(&NOT_YET)
        .map(|known| (distance(&wanted, &known.to_lowercase()), *known))
        .filter(|(distance, _)| *distance <= bound.min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Edits between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (line, left) in a.chars().enumerate() {
        let mut corner = line;
        let mut before = line + 1;
        let mut next = vec![before];
        for (above, right) in row.iter().skip(1).zip(b.chars()) {
            let replaced = corner + usize::from(left != right);
            before = replaced.min(before + 1).min(above + 1);
            corner = *above;
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
