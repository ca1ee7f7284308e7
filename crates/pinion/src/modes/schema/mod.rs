//! `pinion schema`: the protocol as JSON Schema or TypeScript types, as they are checked in and built into the program; with
//! a dialect only the lines of its clients. `xtask gen` makes the files. The filter asks `wire::protocol`
//! and `wire::Dialect`, which the encoder of `serve` follows, too.

mod filter;
mod typescript;

use std::io::Read as _;
use std::process::ExitCode;

use serde_json::Value;
use wire::Dialect;

use crate::args::Args;
use crate::environment::say_exactly;

/// `protocol/schema.json` and `protocol/types.d.ts`, compressed by the build script: half a megabyte of text that few starts
/// print.
const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schema.json.gz"));
const TYPES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/types.d.ts.gz"));

/// Prints the schema or the types of one dialect, or of all.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    say_exactly(text(args.schema_dialect, args.typescript)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// The schema or the types, of one dialect or, undecided, of all.
fn text(dialect: Option<Dialect>, typescript: bool) -> anyhow::Result<String> {
    let Some(dialect) = dialect.filter(|dialect| *dialect != Dialect::Auto) else {
        return unpacked(if typescript { TYPES } else { SCHEMA });
    };
    let document: Value = serde_json::from_str(&unpacked(SCHEMA)?)?;
    let document = filter::only(&document, dialect);
    if typescript {
        return Ok(typescript::only(
            &unpacked(TYPES)?,
            &filter::names(&document),
            dialect,
        ));
    }
    Ok(serde_json::to_string_pretty(&document)?)
}

fn unpacked(packed: &[u8]) -> anyhow::Result<String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wire::Dialect;

    use super::{SCHEMA, filter, text, unpacked};

    fn schema(dialect: &str) -> Value {
        serde_json::from_str(&text(Dialect::parse(dialect), false).unwrap()).unwrap()
    }

    fn has(dialect: &str, name: &str) -> bool {
        let document = schema(dialect);
        document["$defs"].get(name).is_some()
    }

    #[test]
    fn dialect_schema_has_its_commands_and_events() {
        assert!(has("xcsh", "AbortAndPromptCommand") && !has("pi", "AbortAndPromptCommand"));
        assert!(has("pi", "ForkCommand") && !has("hooks", "ForkCommand"));
        assert!(has("xcsh", "QueueUpdateEvent"), "newer events are sent to all");
        assert!(has("xcsh", "AutoCompactionStartEvent") && !has("xcsh", "CompactionStartEvent"));
        assert!(has("pi", "CompactionStartEvent") && !has("pi", "DialectLine"));
        assert!(has("hooks", "HookErrorEvent") && !has("hooks", "ExtensionErrorEvent"));
        assert!(has("hooks", "HookUiResponseFrame") && !has("hooks", "ExtensionUiResponseFrame"));
        assert!(has("xcsh", "HostToolResultFrame") && !has("pi", "HostToolResultFrame"));
        assert!(has("pi", "MessageUpdateCumulativeEvent") && !has("pi", "MessageUpdateEvent"));
        assert!(has("pi-delta", "MessageUpdateEvent") && !has("pi-delta", "MessageUpdateCumulativeEvent"));
        assert!(
            has("early", "PromptCommand") && !has("early", "PromptResponse") && !has("early", "SessionState")
        );
        assert!(!has("pi", "HelloCommand"), "our own commands are of no dialect");
        assert!(
            has("pi", "HelloResponse"),
            "every command is answered in every dialect"
        );
        let member = |dialect: &str, line: &str, member: &str| {
            let schema = schema(dialect);
            schema["$defs"][line]["properties"].get(member).is_some()
        };
        assert!(member("omp-now", "MessageEndEvent", "messageId"));
        assert!(!member("pi", "MessageEndEvent", "messageId"));
        assert!(member("xcsh", "BashResult", "totalLines") && !member("web", "BashResult", "totalLines"));
        assert_eq!(
            text(Some(Dialect::Auto), false).unwrap(),
            unpacked(SCHEMA).unwrap(),
            "auto understands everything"
        );
    }

    #[test]
    fn dialect_schema_references_resolve() {
        for dialect in Dialect::spoken() {
            let document = schema(dialect.as_str());
            let names = filter::names(&document);
            let json = document.to_string();
            for part in json.split("\"#/$defs/").skip(1) {
                let name = part.split('"').next().unwrap();
                assert!(names.contains(name), "{}: {name} is gone", dialect.as_str());
            }
            let types = text(Some(dialect), true).unwrap();
            let defined: Vec<&str> = types
                .lines()
                .filter_map(|line| line.strip_prefix("export "))
                .filter_map(|line| line.split(' ').nth(1))
                .collect();
            let expected = names.len() + usize::from(names.contains("Response"));
            assert_eq!(
                defined.len(),
                expected,
                "{}: ResponseOf and the rest",
                dialect.as_str()
            );
            for word in types
                .lines()
                .filter(|line| !line.trim_start().starts_with(['*', '/']))
                .flat_map(|line| line.split(|c: char| !c.is_alphanumeric()))
                .filter(|word| word.starts_with(char::is_uppercase))
                .filter(|word| {
                    ["Command", "Response", "Event", "Frame", "Line"]
                        .iter()
                        .any(|end| word.ends_with(end))
                })
            {
                assert!(defined.contains(&word), "{}: {word} is gone", dialect.as_str());
            }
        }
    }
}
