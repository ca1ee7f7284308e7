//! `pinion schema`: the protocol as JSON Schema or TypeScript types, as they are checked in and built into the program; with
//! a dialect only what that dialect has. The files are made by `xtask gen`, which dialect has what stands in
//! `wire::protocol`.

mod filter;
mod typescript;

use std::io::Read as _;
use std::process::ExitCode;

use serde_json::Value;
use wire::Dialect;

use crate::args::Args;
use crate::environment::say;

/// `protocol/schema.json` and `protocol/types.d.ts`, compressed by the build script: half a megabyte of text that few starts
/// print.
const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schema.json.gz"));
const TYPES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/types.d.ts.gz"));

/// Prints the schema or the types of one dialect, or of all.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    say(text(args.schema_dialect, args.typescript)?.trim_end());
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
        assert!(has("pi", "QueueUpdateEvent") && !has("xcsh", "QueueUpdateEvent"));
        assert!(has("pi", "MessageUpdateCumulativeEvent") && !has("pi", "MessageUpdateEvent"));
        assert!(has("pi-delta", "MessageUpdateEvent") && !has("pi-delta", "MessageUpdateCumulativeEvent"));
        assert!(
            has("early", "PromptCommand") && !has("early", "PromptResponse") && !has("early", "SessionState")
        );
        assert!(!has("pi", "HelloCommand"), "our own commands are of no dialect");
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
                    word.ends_with("Command") || word.ends_with("Response") || word.ends_with("Event")
                })
            {
                assert!(defined.contains(&word), "{}: {word} is gone", dialect.as_str());
            }
        }
    }
}
