//! `differences.md`: what users of pi, oh-my-pi and xcsh notice. The lists come from the tables behind COMPATIBILITY.md, from
//! the lists of differences in `.ci`, and from the tables of settings, options and events without effect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};
use config::settings::foreign::IGNORED;
use wire::Dialect;
use wire::protocol::{family_commands, family_events};
use wire::table::TABLE;

use super::{cell, head, read};

/// Recorded agents, and the lists of sessions that Pinion answers differently.
const KNOWN: [(&str, &str); 3] = [
    ("pi 0.74.2, the default dialect", ".ci/known-differences"),
    (
        "pi 1.5.2, the dialect `pi-delta`",
        ".ci/conformance/pi-1.5.2.differences",
    ),
    (
        "oh-my-pi 18.3.4, the dialect `omp-now`",
        ".ci/conformance/omp-18.3.4.differences",
    ),
];
const HEARD: &str = "crates/session/src/session/extensions/heard.txt";

const INTRO: &str = "\
Pinion accepts the command lines, session files, settings and protocol messages of pi, oh-my-pi and xcsh. This page lists what differs.
The lists are generated from the tables of the program and from the comparison with recorded sessions of pi that CI runs. The table
of all commands and events by version is in [COMPATIBILITY.md](../../protocol/COMPATIBILITY.md).
";

/// Deliberate differences from pi that no recorded session has: the part, the difference.
const UNRECORDED: [(&str, &str); 10] = [
    (
        "`grep`",
        "Pinion leaves out the directory `.git`. pi searches it, too",
    ),
    (
        "`steer`, `follow_up`",
        "Messages that are queued during a manual compaction begin a run after it, unless the compaction was aborted. In pi they wait for the next prompt",
    ),
    (
        "compaction",
        "In a small context window, Pinion keeps at most half of the tokens that the reserve leaves, so that a compaction makes room. pi always keeps `compaction.keepRecentTokens`",
    ),
    (
        "compaction",
        "Pinion refuses an empty summary and keeps the conversation. pi stores the summary",
    ),
    (
        "`-p`",
        "Pinion puts line feeds between stdin, files and the first message. pi joins them without",
    ),
    ("`-p`", "Pinion fails without a prompt. pi ends with exit code 0"),
    (
        "command line",
        "After `--`, words that begin with `@` are text, so that texts of others attach no files. In pi they are files. Under the name `pi`, absolute paths before the first text are files, too, but never the last word",
    ),
    (
        "`--mode json`",
        "Pinion exits with 1 if the model failed or the run was aborted, and with 4 at a limit. pi exits with 0",
    ),
    (
        "`--model`",
        "If several providers have the model, Pinion takes one with credentials, in the order of the defaults. pi 1.5.2 refuses to start unless one alone has credentials",
    ),
    (
        "`-e npm:NAME`",
        "Pinion installs a newer version at most once a day, and runs no scripts of packages. pi looks for one at each start, and runs them",
    ),
];

const MANY_BLOCKS: &str = "
## Answers of many blocks

In the cumulative form of `message_update`, every start and end of a block repeats the whole message twice. pi sends them for every block,
which is quadratic: 4,000 tool calls in one answer are 4.6 GB. Pinion announces the first blocks, and later ones while the sum stays
below 4 MiB and 48 times the size of the message. The other blocks have no start, delta or end; the message in other updates and in `message_end`
contains them. The delta form announces every block.
";

/// The agents, with the dialects that they speak.
const AGENTS: [(&str, &[Dialect]); 3] = [
    (
        "pi",
        &[
            Dialect::Early,
            Dialect::Hooks,
            Dialect::Pi,
            Dialect::PiDelta,
            Dialect::Web,
        ],
    ),
    ("oh-my-pi", &[Dialect::Omp, Dialect::OmpNow]),
    ("xcsh", &[Dialect::Xcsh]),
];

/// The page.
pub(super) fn render(root: &Path, sent: &BTreeSet<&str>) -> Result<String> {
    let mut out = head("Differences from pi, oh-my-pi and xcsh");
    out.push_str(INTRO);
    for (agent, list) in KNOWN {
        out.push_str(&format!(
            "\n## Behaviour: {agent}\n\nEach row is a difference, with the recorded sessions that have it.\n\n| difference | recorded sessions |\n| --- | --- |\n"
        ));
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let known = read(root, list)?;
        for line in known
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        {
            let (name, why) = line.split_once(' ').unwrap_or((line, ""));
            ensure!(!why.trim().is_empty(), "{list}: {name} has no reason");
            reasons.entry(why.trim()).or_default().push(name);
        }
        ensure!(!reasons.is_empty(), "{list} is empty");
        for (why, names) in reasons {
            out.push_str(&format!("| {} | {} |\n", cell(why), names.join(", ")));
        }
        if list.contains("/pi-") {
            out.push_str(&everywhere(&read(
                root,
                &list.replace(".differences", ".left-out"),
            )?));
        }
    }
    out.push_str(&unrecorded());
    out.push_str("\n## Commands and events that Pinion does not have\n\nAn unknown command gets the error `Unknown command: ...` with its id.\n\n| agent | commands | events |\n| --- | --- | --- |\n");
    let (family, family_sent) = (family_commands(), family_events());
    let commands: BTreeSet<&str> = TABLE.iter().map(|spec| spec.name).collect();
    for (agent, dialects) in AGENTS {
        out.push_str(&format!(
            "| {agent} | {} | {} |\n",
            missing(&family, dialects, &commands),
            missing(&family_sent, dialects, sent)
        ));
    }
    out.push_str(MANY_BLOCKS);
    out.push_str("\n## Events that extensions do not receive\n\n| event | reason |\n| --- | --- |\n");
    for line in read(root, HEARD)?.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(';').map(str::trim).collect();
        if let [name, "no", why] = parts[..] {
            out.push_str(&format!("| `{name}` | {} |\n", cell(why)));
        }
    }
    out.push_str("\n## Settings without effect\n\n| reason | keys |\n| --- | --- |\n");
    for (reason, keys) in IGNORED {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        out.push_str(&format!("| {reason} | {} |\n", keys.join(", ")));
    }
    out.push_str("\nOptions without effect are listed under the last heading of the [command line reference](cli.md); members of the extension API without\neffect on the page [TypeScript extension API](extension-api.md#without-effect).\n");
    Ok(out)
}

/// Differences that every session may have, from a list of parts that are not compared: kind, name, reason.
fn everywhere(list: &str) -> String {
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let (kind, rest) = line.split_once(' ')?;
        let (name, why) = rest.trim().split_once(' ')?;
        let place = match kind {
            "extra" => format!("member `{name}`"),
            "file" => format!("file `{name}`"),
            _ => "texts of tools".to_owned(),
        };
        Some(format!("| {} | {place} |\n", cell(why.trim())))
    });
    let rows: String = rows.collect();
    format!(
        "\nThese differences are in every session in which the part occurs:\n\n| difference | part |\n| --- | --- |\n{rows}"
    )
}

fn unrecorded() -> String {
    let rows = UNRECORDED.map(|(part, why)| format!("| {} | {part} |\n", cell(why)));
    format!(
        "\n## Behaviour: differences from pi without a recorded session\n\n| difference | part |\n| --- | --- |\n{}",
        rows.concat()
    )
}

fn missing(rows: &[wire::protocol::Belongs], dialects: &[Dialect], here: &BTreeSet<&str>) -> String {
    let names: Vec<String> = rows
        .iter()
        .filter(|(name, set)| dialects.iter().any(|dialect| set.has(*dialect)) && !here.contains(name))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
