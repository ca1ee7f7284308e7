//! `hook-events.md`: the events of extensions and hooks, from the table of the session (`heard.txt`), the reference of the
//! extension protocol and the table that says how answers combine.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use extensions::combining::names;
use extensions::reference::EVENTS;

use super::{cell, head, read};

const SOURCE: &str = "crates/session/src/session/extensions/heard.txt";

const INTRO: &str = "\
Extensions in TypeScript listen to these events with `pi.on`, [programs in other languages](extension-protocol.md) name them in
their answer to `open`, and hook executables are configured for one event each in the setting [`hooks`](settings.md). In addition, both
receive the other [events of clients](protocol/events.md), such as `entry_appended` or `queue_update`, once they are loaded. Nothing
waits for these, and a result has no effect. The exceptions are `ready`, `connected`, `heartbeat`, `session_closed`, `mcp_servers_change`,
`available_commands_update` and `extension_error`, which only clients receive. Hook executables are not run for events that come with every piece of an answer or
output: `message_update`, `tool_execution_update`, `bash_execution_update`, `process_output`, `subagent_event` and `subagent_progress`.

*Waits*: what waits for the listeners to finish. *Hooks*: whether hook executables can be run for the event. *Result*: what the
listener can return; without an entry, the result has no effect. The [extension protocol](extension-protocol.md#events) describes
how the results of several listeners are combined.
";

/// One line of the table of the session.
struct Row<'a> {
    name: &'a str,
    waits: &'a str,
    effect: &'a str,
}

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let text = read(root, SOURCE)?;
    let rows = rows(&text)?;
    let hooks: Vec<&str> = names().collect();
    let mut out = head("Hook and extension events");
    out.push_str(INTRO);
    out.push_str(
        "\n| event | when | fields | waits | hooks | result |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows.iter().filter(|row| row.waits != "no") {
        let event = EVENTS.iter().find(|event| event.name == row.name);
        let event = event
            .with_context(|| format!("{} is not in the reference of the extension protocol", row.name))?;
        let code = |text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                format!("`{}`", cell(text))
            }
        };
        let result = if event.result.is_empty() {
            String::new()
        } else {
            format!("{}: {}", cell(row.effect), code(event.result))
        };
        out.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {result} |\n",
            row.name,
            cell(event.doc),
            code(event.members),
            cell(row.waits),
            if hooks.contains(&row.name) { "yes" } else { "no" },
        ));
    }
    out.push_str("\n## Events of pi that Pinion does not send\n\n| event | reason |\n| --- | --- |\n");
    for row in rows.iter().filter(|row| row.waits == "no") {
        out.push_str(&format!("| `{}` | {} |\n", row.name, cell(row.effect)));
    }
    Ok(out)
}

fn rows(text: &str) -> Result<Vec<Row<'_>>> {
    let mut out = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(';').map(str::trim).collect();
        let [name, waits, effect] = parts[..] else {
            anyhow::bail!("{SOURCE}: {line}");
        };
        out.push(Row { name, waits, effect });
    }
    ensure!(!out.is_empty(), "{SOURCE} is empty");
    Ok(out)
}
