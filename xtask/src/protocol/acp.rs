//! The part of `COMPATIBILITY.md` about the Agent Client Protocol. The names come from the types of the protocol
//! (`agent-client-protocol-schema`), the rest from the transcripts in `protocol/examples/acp`, which `xtask examples` records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, AgentCapabilities, CLIENT_METHOD_NAMES, ClientCapabilities,
    PROTOCOL_LEVEL_METHOD_NAMES, SessionUpdate,
};
use anyhow::{Context, Result};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value;

/// Folder of the transcripts, seen from `protocol`.
const FOLDER: &str = "examples/acp";
/// The agent does not have the method.
const NO_METHOD: i64 = -32_601;

const INTRO: &str = "
## Agent Client Protocol

With `--mode acp`, Pinion speaks the Agent Client Protocol, version 1. The names are those of `agent-client-protocol-schema` 1.15.1
with the unstable `session/fork`. A name is supported if a transcript shows it; `xtask examples --check` compares the transcripts with
the program. [Editors](../docs/guides/acp.md) describes the behaviour.
";

/// Names with the transcripts that show them.
type Shown = BTreeMap<String, BTreeSet<String>>;

/// What the transcripts show.
#[derive(Default)]
struct Evidence {
    /// Methods of both sides, to which the other side has an answer.
    methods: Shown,
    updates: Shown,
    /// Capabilities that the agent announces, by their paths.
    agent: Shown,
    /// Capabilities that a client needs for what a transcript shows.
    client: Shown,
}

/// The section.
///
/// # Errors
/// When a transcript cannot be read.
pub(super) fn render(protocol: &Path) -> Result<String> {
    let evidence = Evidence::read(&protocol.join(FOLDER))?;
    let mut from_client = names(&AGENT_METHOD_NAMES)?;
    from_client.extend(names(&PROTOCOL_LEVEL_METHOD_NAMES)?);
    let to_client = names(&CLIENT_METHOD_NAMES)?;
    let mut out = INTRO.to_owned();
    for (title, names, shown) in [
        ("From the client", from_client, &evidence.methods),
        ("To the client", to_client, &evidence.methods),
        ("Updates", updates(), &evidence.updates),
        (
            "Capabilities of Pinion",
            capabilities::<AgentCapabilities>(),
            &evidence.agent,
        ),
        (
            "Capabilities of clients that Pinion uses",
            capabilities::<ClientCapabilities>(),
            &evidence.client,
        ),
    ] {
        let _infallible = writeln!(
            out,
            "\n### {title}\n\n| name | here | transcript |\n| --- | --- | --- |"
        );
        for name in names {
            let _infallible = writeln!(out, "{}", row(&name, shown.get(&name)));
        }
    }
    Ok(out)
}

/// The transcript of a name that is called like a part of the name, else that of a prompt, else the first.
fn row(name: &str, shown: Option<&BTreeSet<String>>) -> String {
    let Some(shown) = shown else {
        return format!("| `{name}` | no |  |");
    };
    let stem = |file: &str| {
        let stem = file.strip_suffix('s').filter(|stem| stem.len() > 2);
        stem.unwrap_or(file).to_owned()
    };
    let fits = |file: &&String| name.contains(&stem(file));
    let mut prompts = shown.iter().filter(|file| *file == "prompt");
    let file = shown.iter().find(fits).or_else(|| prompts.next());
    let file = file.or_else(|| shown.first()).map_or("", String::as_str);
    format!("| `{name}` | yes | [{file}]({FOLDER}/{file}.jsonl) |")
}

fn names(names: &impl Serialize) -> Result<Vec<String>> {
    let names = serde_json::to_value(names)?;
    let names = names.as_object().context("method names are no object")?;
    Ok(names
        .values()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect())
}

fn updates() -> Vec<String> {
    let schema = schema_for!(SessionUpdate).to_value();
    let variants = schema.get("oneOf").and_then(Value::as_array);
    let names = variants.into_iter().flatten();
    let names = names.filter_map(|variant| variant.pointer("/properties/sessionUpdate/const")?.as_str());
    names.map(str::to_owned).collect()
}

/// Paths of the capabilities in a type, without the parents that only group others.
fn capabilities<T: JsonSchema>() -> Vec<String> {
    let schema = schema_for!(T).to_value();
    let mut out = Vec::new();
    paths("", &schema, &schema, &mut out);
    out
}

fn paths(prefix: &str, schema: &Value, root: &Value, out: &mut Vec<String>) {
    for (name, member) in properties(schema, root).into_iter().flatten() {
        if name == "_meta" {
            continue;
        }
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        let before = out.len();
        paths(&path, member, root, out);
        if out.len() == before {
            out.push(path);
        }
    }
}

/// The members of a type that may be a reference or absent.
fn properties<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a serde_json::Map<String, Value>> {
    let variants = schema.get("anyOf").or_else(|| schema.get("allOf"));
    let variants = variants.and_then(Value::as_array).into_iter().flatten();
    let mut all = [schema].into_iter().chain(variants);
    all.find_map(|schema| {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let named = reference.and_then(|path| root.pointer(path.strip_prefix('#')?));
        named.unwrap_or(schema).get("properties")?.as_object()
    })
}

impl Evidence {
    fn read(folder: &Path) -> Result<Self> {
        let mut evidence = Self::default();
        let list = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in list {
            let path = entry?.path();
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
            evidence.transcript(&name, &lines.with_context(|| format!("{name} is not JSON"))?);
        }
        Ok(evidence)
    }

    fn transcript(&mut self, name: &str, lines: &[Value]) {
        let note = |shown: &mut Shown, key: &str| {
            shown.entry(key.to_owned()).or_default().insert(name.to_owned());
        };
        let unknown = lines.iter().filter_map(|line| {
            let answer = line.get("agent")?;
            let code = answer.pointer("/error/code")?.as_i64()?;
            (code == NO_METHOD).then(|| answer.get("id"))?
        });
        let unknown: Vec<&Value> = unknown.collect();
        for line in lines {
            let message = line.get("agent").or_else(|| line.get("client"));
            let message = message.unwrap_or(&Value::Null);
            let is_unknown = message.get("id").is_some_and(|id| unknown.contains(&id));
            if let Some(method) = message
                .get("method")
                .and_then(Value::as_str)
                .filter(|_| !is_unknown)
            {
                note(&mut self.methods, method);
            }
            let update = message.pointer("/params/update/sessionUpdate");
            if let Some(update) = update.and_then(Value::as_str) {
                note(&mut self.updates, update);
            }
            let announced = message.pointer("/result/agentCapabilities");
            for path in announced.map(announced_paths).unwrap_or_default() {
                note(&mut self.agent, &path);
            }
            // The transcript of `initialize` announces everything and uses nothing.
            let able = message.pointer("/params/clientCapabilities");
            for path in able
                .filter(|_| name != "initialize")
                .map(announced_paths)
                .unwrap_or_default()
            {
                note(&mut self.client, &path);
            }
        }
    }
}

/// Paths of the capabilities that are true or an empty object.
fn announced_paths(capabilities: &Value) -> Vec<String> {
    fn walk(prefix: &str, value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    let path = if prefix.is_empty() {
                        name.clone()
                    } else {
                        format!("{prefix}.{name}")
                    };
                    walk(&path, value, out);
                }
            }
            Value::Object(_) | Value::Bool(true) if !prefix.is_empty() => out.push(prefix.to_owned()),
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk("", capabilities, &mut out);
    out
}
