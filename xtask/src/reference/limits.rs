//! `limits.md`: the constants in the `limits.rs` files, with their values in readable units.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{cell, head, read, scan};

/// Headings of the files, in the order of the page.
const TITLES: [(&str, &str); 28] = [
    ("Settings files", "crates/config/src/settings/limits.rs"),
    ("Discovery of hooks", "crates/config/src/limits.rs"),
    (
        "Sessions, dialogs, extensions, hooks",
        "crates/session/src/limits.rs",
    ),
    ("Permission dialogs", "crates/permissions/src/limits.rs"),
    (
        "Context files, skills, templates, rules",
        "crates/config/src/resources/limits.rs",
    ),
    ("Trust decisions", "crates/config/src/trust/limits.rs"),
    ("Runs, todos, rules", "crates/agent/src/limits.rs"),
    ("Compaction", "crates/agent/src/compaction/limits.rs"),
    ("Providers", "crates/llm/src/limits.rs"),
    ("Model lists and local servers", "crates/models/src/limits.rs"),
    ("Credentials", "crates/auth/src/limits.rs"),
    ("Logins", "crates/auth/src/login/limits.rs"),
    ("Tools", "crates/tools/src/limits.rs"),
    ("Web pages", "crates/fetch/src/limits.rs"),
    ("Child processes", "crates/process/src/limits.rs"),
    ("Session files", "crates/store/src/limits.rs"),
    ("Undo", "crates/checkpoints/src/limits.rs"),
    ("Exports", "crates/export/src/limits.rs"),
    ("RPC", "crates/serve/src/limits.rs"),
    ("Agent Client Protocol", "crates/acp/src/limits.rs"),
    ("Web server", "crates/web/src/limits.rs"),
    ("Extension processes", "crates/extensions/src/limits.rs"),
    ("MCP servers", "crates/mcp/src/limits.rs"),
    ("Protocol values", "crates/wire/src/limits.rs"),
    ("Program", "crates/pinion/src/limits.rs"),
    ("Packages", "crates/pinion/src/modes/packages/limits.rs"),
    ("Session stores and workers", "crates/cluster/src/limits.rs"),
    ("Rust client", "crates/client/src/limits.rs"),
];

/// The page.
///
/// # Errors
/// When a crate has a `limits.rs` without a heading here, or a constant cannot be shown.
pub(super) fn render(root: &Path) -> Result<String> {
    let mut out = head("Limits");
    out.push_str("Every buffer, queue, timeout and file size has a limit. These are the constants of the program; most cannot be changed. A limit that can be changed names\nits [setting](settings.md).\n");
    for (title, path) in titled(&found(root)?, &TITLES)? {
        let rows = rows(&read(root, path)?).with_context(|| path.to_owned())?;
        out.push_str(&format!(
            "\n## {title}\n\n| limit | value | meaning |\n| --- | --- | --- |\n{rows}"
        ));
    }
    Ok(out)
}

/// Paths of all `limits.rs` in the sources of crates, seen from the root.
fn found(root: &Path) -> Result<BTreeSet<String>> {
    let mut out = BTreeSet::new();
    let crates = root.join("crates");
    let list = fs::read_dir(&crates).with_context(|| format!("cannot list {}", crates.display()))?;
    for entry in list {
        let sources = scan::sources(&entry?.path().join("src"))?;
        let limits = sources.iter().filter(|path| path.ends_with("limits.rs"));
        out.extend(limits.filter_map(|path| Some(path.strip_prefix(root).ok()?.to_str()?.to_owned())));
    }
    Ok(out)
}

/// Returns the titles, if each file that was found has one and each title has a file.
fn titled<'a>(
    found: &BTreeSet<String>,
    titles: &'a [(&'a str, &'a str)],
) -> Result<&'a [(&'a str, &'a str)]> {
    let known: BTreeSet<&str> = titles.iter().map(|(_, path)| *path).collect();
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    if let Some(path) = found.difference(&known).next() {
        bail!("{path} has no heading in xtask/src/reference/limits.rs");
    }
    if let Some(path) = known.difference(&found).next() {
        bail!("xtask/src/reference/limits.rs names {path}, which does not exist");
    }
    Ok(titles)
}

fn rows(source: &str) -> Result<String> {
    let mut out = String::new();
    for item in scan::constants(source) {
        let value = value(&item).with_context(|| format!("{} = {}", item.name, item.value))?;
        let doc = plain(&item.doc);
        out.push_str(&format!("| `{}` | {value} | {} |\n", item.name, cell(&doc)));
    }
    Ok(out)
}

/// The comment without links of rustdoc and without references to notes on the protocol's origin.
fn plain(doc: &str) -> String {
    let mut out = doc.replace("[`", "`").replace("`]", "`").replace("crate::", "");
    while let Some(start) = out.find(" (").filter(|start| {
        let inside = out.get(*start..).and_then(|rest| rest.split(')').next());
        inside.is_some_and(|inside| inside.contains(".md"))
    }) {
        let end = out
            .get(start..)
            .and_then(|rest| rest.find(')'))
            .map_or(out.len(), |at| start + at + 1);
        out.replace_range(start..end, "");
    }
    out
}

/// The value in readable units.
fn value(item: &scan::Item) -> Option<String> {
    if let Some(parts) = item.value.strip_prefix('(') {
        let (first, second) = parts.strip_suffix(')')?.split_once(", ")?;
        return Some(format!("{} and {}", one(first, item)?, one(second, item)?));
    }
    one(&item.value, item)
}

fn one(text: &str, item: &scan::Item) -> Option<String> {
    if let Some(rest) = text.strip_prefix("Duration::from_") {
        let (unit, count) = rest.strip_suffix(')')?.split_once('(')?;
        let count = number(count)?;
        let duration = match unit {
            "secs" => Duration::from_secs(count),
            "millis" => Duration::from_millis(count),
            "micros" => Duration::from_micros(count),
            _ => return None,
        };
        return Some(time(duration));
    }
    if text.contains('.') {
        return text.parse::<f64>().ok().map(|number| number.to_string());
    }
    let number = number(text)?;
    let is_bytes = item.name.contains("BYTES") || item.doc.to_lowercase().contains("byte");
    Some(if is_bytes { bytes(number) } else { grouped(number) })
}

/// An integer, or a product or shift of integers.
fn number(text: &str) -> Option<u64> {
    if let Some((left, right)) = text.split_once(" << ") {
        return number(left)?.checked_shl(number(right)?.try_into().ok()?);
    }
    text.split(" * ").try_fold(1_u64, |product, factor| {
        product.checked_mul(factor.replace('_', "").parse().ok()?)
    })
}

fn time(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        1.. if ms.is_multiple_of(3_600_000) => format!("{} h", ms / 3_600_000),
        60_001.. if ms.is_multiple_of(60_000) => format!("{} min", ms / 60_000),
        1.. if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        0 => format!("{} µs", duration.as_micros()),
        _ => format!("{ms} ms"),
    }
}

fn bytes(count: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        if count >= 1 << shift && count.trailing_zeros() >= shift {
            return format!("{} {unit}", count >> shift);
        }
    }
    format!("{} bytes", grouped(count))
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{rows, titled};

    #[test]
    fn limits_file_without_heading_is_an_error() {
        let titles = [("One", "crates/a/src/limits.rs")];
        let found =
            |paths: &[&str]| -> BTreeSet<String> { paths.iter().map(|path| (*path).to_owned()).collect() };
        assert!(titled(&found(&["crates/a/src/limits.rs"]), &titles).is_ok());
        let more = found(&["crates/a/src/limits.rs", "crates/b/src/x/limits.rs"]);
        let error = titled(&more, &titles).unwrap_err().to_string();
        assert!(error.contains("crates/b/src/x/limits.rs"), "{error}");
        assert!(titled(&found(&[]), &titles).is_err());
    }

    #[test]
    fn values_have_readable_units() {
        let source = "/// Longest line, in bytes.\npub const A: usize = 32 * 1024 * 1024;\n/// B.\nconst B: Duration = Duration::from_millis(1_500);\n/// C.\nconst C: u64 = 20_000;\n/// D.\nconst D: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));\n";
        let rows = rows(source).unwrap();
        for part in ["| 32 MiB |", "| 1500 ms |", "| 20,000 |", "| 1 s and 60 s |"] {
            assert!(rows.contains(part), "{part} in {rows}");
        }
        assert!(super::rows("const X: u8 = f(1);\n").is_err());
    }
}
