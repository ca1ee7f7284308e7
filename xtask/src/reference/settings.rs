//! `settings.md`: the keys of settings.json from the table of `session`.

use config::settings::TRUSTED_ONLY;
use config::settings::foreign::{IGNORED, RENAMED};
use config::settings::table::{Key, SECTIONS};

use super::{cell, head};

const INTRO: &str = "\
Pinion reads `settings.json` in the agent directory (`~/.pi/agent`, or `PI_CODING_AGENT_DIR`) and `.pi/settings.json` in the working
directory. The project's values take precedence. Both files are JSON with comments and trailing commas. Pinion never writes them.
A value of the wrong type is reported and ignored, except in keys that protect or limit (`permissions`, `sandbox`, `limits` and
others): it stops the start. `pinion doctor` lists the keys of both files and what each of them does.

```json,settings
{
  \"defaultProvider\": \"anthropic\",
  \"defaultThinkingLevel\": \"medium\",
  \"compaction\": {\"enabled\": true, \"keepRecentTokens\": 20000},
  \"permissions\": {\"mode\": \"ask\", \"allow\": [\"bash(cargo test *)\"]}
}
```

The column *project* says what a project's file can set: *yes*; *trusted*, only if the [project is
trusted](cli.md); *no*, only the user's own file; *tighten*, only to a stricter value.
";

/// The page.
pub(super) fn render() -> String {
    let mut out = head("Settings");
    out.push_str(INTRO);
    for (title, keys) in SECTIONS {
        out.push_str(&format!(
            "\n## {title}\n\n| key | type | default | project | meaning |\n| --- | --- | --- | --- | --- |\n"
        ));
        for key in keys {
            out.push_str(&row(key));
        }
    }
    out.push_str("\n## Old names\n\nThe value of an old name counts under the current name.\n\n| old | current |\n| --- | --- |\n");
    for (old, new) in RENAMED {
        out.push_str(&format!("| `{old}` | `{new}` |\n"));
    }
    out.push_str(
        "\n## Keys without effect\n\nSettings files of pi and its relatives can contain these keys. Pinion accepts and ignores them.\n\n| reason | keys |\n| --- | --- |\n",
    );
    for (reason, keys) in IGNORED {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        out.push_str(&format!("| {reason} | {} |\n", keys.join(", ")));
    }
    out
}

fn row(key: &Key) -> String {
    let default = if key.default.is_empty() {
        String::new()
    } else {
        format!("`{}`", key.default)
    };
    format!(
        "| `{}` | {} | {default} | {} | {} |\n",
        key.path,
        cell(key.kind),
        project(key.path),
        cell(key.doc)
    )
}

/// What a project may do with a key.
fn project(path: &str) -> &'static str {
    let top = path.split('.').next().unwrap_or(path);
    match path {
        "defaultProjectTrust"
        | "keepKeysInToolEnv"
        | "durability"
        | "cacheWarming"
        | "checkpoints"
        | "fetch.privateHosts"
        | "processes.wake"
        | "permissions.allow"
        | "sandbox.writable"
        | "sandbox.readable" => "no",
        _ if TRUSTED_ONLY.contains(&top) => "trusted",
        _ if matches!(top, "permissions" | "sandbox" | "limits") => "tighten",
        _ => "yes",
    }
}
