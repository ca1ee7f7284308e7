//! `limits.md`: the constants in the `limits.rs` files, with their values in readable units.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{cell, head, read, scan};

/// The files and their headings.
const FILES: [(&str, &str); 23] = [
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
    ("Child processes", "crates/process/src/limits.rs"),
    ("Session files", "crates/store/src/limits.rs"),
    ("Exports", "crates/export/src/limits.rs"),
    ("RPC", "crates/serve/src/limits.rs"),
    ("Agent Client Protocol", "crates/acp/src/limits.rs"),
    ("Web server", "crates/web/src/limits.rs"),
    ("Extension processes", "crates/extensions/src/limits.rs"),
    ("MCP servers", "crates/mcp/src/limits.rs"),
    ("Protocol values", "crates/wire/src/limits.rs"),
    ("Program", "crates/pinion/src/limits.rs"),
];

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let mut out = head("Limits");
    out.push_str("Every buffer, queue, timeout and file size has a limit. These are the constants of the program; most cannot be changed. A limit that can be changed names\nits [setting](settings.md).\n");
    for (title, path) in FILES {
        let rows = rows(&read(root, path)?).with_context(|| path.to_owned())?;
        out.push_str(&format!(
            "\n## {title}\n\n| limit | value | meaning |\n| --- | --- | --- |\n{rows}"
        ));
    }
    Ok(out)
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
    use super::rows;

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
