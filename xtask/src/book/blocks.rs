//! Checks code blocks by their language: JSON by the marks in the info string, protocol lines by the schema, shell and Python by
//! their own parsers.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use boon::{Compiler, Schemas};
use config::settings::{KeyUse, classify, jsonc};
use serde_json::Value;

use super::Report;
use super::page::{Block, Page};
use crate::protocol::Kind;

/// Checks a Python program without running it; the code comes on stdin.
const PYTHON: &str = "import ast, sys; ast.parse(sys.stdin.read())";

pub(super) fn check(pages: &[Page], report: &mut Report) -> Result<()> {
    let mut schema = Schema::new()?;
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    for page in pages {
        for block in &page.blocks {
            let outcome = match block.language.as_str() {
                "json" => json(block, report),
                "jsonl" => lines(block, &mut schema, report),
                "sh" | "bash" => syntax(
                    block,
                    "shell",
                    &["sh", "-n"],
                    &["bash", "-n"],
                    &mut missing,
                    report,
                )?,
                "text" => terminal(block),
                "python" => syntax(
                    block,
                    "python",
                    &["python3", "-c", PYTHON],
                    &[],
                    &mut missing,
                    report,
                )?,
                _ => Ok(()),
            };
            if let Err((line, why)) = outcome {
                report
                    .wrong
                    .push(format!("{}: {why}", page.place(block.line + line)));
            }
        }
    }
    for program in missing {
        crate::out::complain(&format!(
            "not checked, {program} is not here: blocks in its language"
        ));
    }
    Ok(())
}

/// A block that shows commands and their output has a language that can be checked.
fn terminal(block: &Block) -> Outcome {
    match block.text.lines().position(|line| line.starts_with("$ ")) {
        Some(line) => Err((line, "commands with their output are `console,run`".to_owned())),
        None => Ok(()),
    }
}

/// The error, with its line in the block.
type Outcome = std::result::Result<(), (usize, String)>;

fn json(block: &Block, report: &mut Report) -> Outcome {
    let at = |error: serde_json::Error| (error.line().saturating_sub(1), format!("not JSON: {error}"));
    if block.has("settings") {
        report.count("settings");
        let value: Value = jsonc::parse(&block.text).map_err(|error| (0, format!("not JSON: {error}")))?;
        let keys = value
            .as_object()
            .ok_or((0, "settings are an object".to_owned()))?;
        let odd = classify(keys)
            .into_iter()
            .find(|key| !matches!(key.usage, KeyUse::Used | KeyUse::NotYet));
        return odd.map_or(Ok(()), |key| {
            Err((0, format!("settings.json: {} is {:?}", key.key, key.usage)))
        });
    }
    if block.has("models") {
        report.count("models.json");
        let catalogue = models::Catalogue::built_in();
        let file = models::ModelsFile::parse(&block.text, &|id| catalogue.provider(id).is_some());
        return file.error().map_or(Ok(()), |why| Err((0, why.to_owned())));
    }
    if block.has("replies") {
        report.count("replies.json");
        return llm::check_script(&block.text).map_err(|why| (0, format!("replies.json: {why}")));
    }
    report.count("json");
    if serde_json::from_str::<Value>(&block.text).is_ok() {
        return Ok(());
    }
    for (index, line) in block
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        serde_json::from_str::<Value>(line).map_err(|error| (index, at(error).1))?;
    }
    Ok(())
}

/// Lines of the protocol.
fn lines(block: &Block, schema: &mut Schema, report: &mut Report) -> Outcome {
    report.count("jsonl");
    for (index, line) in block.text.lines().enumerate() {
        let value: Value =
            serde_json::from_str(line).map_err(|error| (index, format!("not JSON: {error}")))?;
        schema.check(&value).map_err(|why| (index, why))?;
    }
    Ok(())
}

/// Asks a parser; `bash` where the block is not for `sh`.
fn syntax<'a>(
    block: &Block,
    what: &'static str,
    usual: &[&'a str],
    bash: &[&'a str],
    missing: &mut BTreeSet<&'a str>,
    report: &mut Report,
) -> Result<Outcome> {
    let command = if block.language == "bash" { bash } else { usual };
    let Some((program, args)) = command.split_first() else {
        return Ok(Ok(()));
    };
    let spawned = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            missing.insert(program);
            return Ok(Ok(()));
        }
        Err(error) => return Err(error).with_context(|| format!("cannot run {program}")),
    };
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(block.text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    report.count(what);
    if output.status.success() {
        return Ok(Ok(()));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().last().unwrap_or("wrong syntax").to_owned();
    Ok(Err((0, format!("{program}: {last}"))))
}

/// The schema of the protocol.
pub(super) struct Schema {
    schemas: Schemas,
    compiler: Compiler,
}

impl Schema {
    const PLACE: &str = "schema.json";

    pub(super) fn new() -> Result<Self> {
        let document = wire::schema::document().map_err(|text| anyhow::anyhow!(text))?;
        let mut compiler = Compiler::new();
        compiler
            .add_resource(Self::PLACE, document)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(Self {
            schemas: Schemas::new(),
            compiler,
        })
    }

    /// Checks a command, response or event.
    pub(super) fn check(&mut self, line: &Value) -> std::result::Result<(), String> {
        let place = format!("{}#/$defs/{}", Self::PLACE, Kind::of(line).definition());
        let index = self
            .compiler
            .compile(&place, &mut self.schemas)
            .map_err(|error| error.to_string())?;
        self.schemas
            .validate(line, index)
            .map_err(|error| format!("does not fit the schema: {error}"))
    }
}
