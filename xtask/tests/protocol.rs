//! The generated files are up to date, and every example anywhere in the repository fits the schema.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of a test may panic"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use wire::table::TABLE;
use xtask::protocol::{Examples, Kind, fenced_lines, files, stale};

const PLACE: &str = "schema.json";

struct Validator {
    schemas: Schemas,
    compiler: Compiler,
}

impl Validator {
    fn new() -> Self {
        let mut compiler = Compiler::new();
        compiler
            .add_resource(PLACE, wire::schema::document().unwrap())
            .unwrap();
        Self {
            schemas: Schemas::new(),
            compiler,
        }
    }

    fn check(&mut self, definition: &str, value: &Value) -> Result<(), String> {
        let place = format!("{PLACE}#/$defs/{definition}");
        let index: SchemaIndex = self.compiler.compile(&place, &mut self.schemas).unwrap();
        self.schemas
            .validate(value, index)
            .map_err(|error| error.to_string())
    }

    /// Like `check`, with a message about the one definition that was meant.
    fn explain(&mut self, kind: Kind, value: &Value) -> Result<(), String> {
        self.check(kind.definition(), value).map_err(|all| {
            let name = value["type"].as_str().unwrap_or("");
            let meant = match (kind, name) {
                (Kind::Inbound, _) => format!("{}Command", wire::schema::pascal(name)),
                (Kind::Outbound, "response") => {
                    format!(
                        "{}Response",
                        wire::schema::pascal(value["command"].as_str().unwrap_or(""))
                    )
                }
                (Kind::Outbound, _) => format!("{}Event", wire::schema::pascal(name)),
                (Kind::Session, _) => return all,
            };
            let known = wire::schema::document().unwrap()["$defs"].get(&meant).is_some();
            if known {
                self.check(&meant, value).err().unwrap_or(all)
            } else {
                all
            }
        })
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn examples() -> Examples {
    Examples::load(&root().join("protocol/examples")).unwrap()
}

#[test]
fn generated_files_are_checked_in() {
    let stale = stale(&root()).unwrap();
    assert!(
        stale.is_empty(),
        "out of date: {stale:?}; run `cargo run -p xtask -- gen`"
    );
}

#[test]
fn generation_is_deterministic() {
    assert_eq!(files(&root()).unwrap(), files(&root()).unwrap());
}

#[test]
fn every_example_matches_schema() {
    let mut lines = examples().0;
    let from_files = lines.len();
    let pages = files(&root()).unwrap().into_iter();
    let pages = pages.filter(|(name, _)| name.starts_with("docs/reference/protocol/"));
    let before = lines.len();
    for (name, page) in pages {
        lines.extend(fenced_lines(&name, &page).unwrap());
    }
    assert!(lines.len() > before + TABLE.len(), "the pages have no examples");
    let mut validator = Validator::new();
    let mut bad = Vec::new();
    for line in &lines {
        if let Err(error) = validator.explain(line.kind, &line.value) {
            bad.push(format!("{}: {error}\n  {}", line.place, line.text));
        }
    }
    println!(
        "{} example lines fit the schema ({from_files} in protocol/examples)",
        lines.len() - bad.len()
    );
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(from_files > TABLE.len() * 2, "examples are missing");
}

#[test]
fn every_command_and_event_has_example() {
    let examples = examples();
    let mut missing = Vec::new();
    for spec in TABLE {
        if examples
            .command(spec.name)
            .is_none_or(|(_, response)| response.is_none())
        {
            missing.push(spec.name.to_owned());
        }
    }
    let document = wire::schema::document().unwrap();
    for union in ["Event", "StreamEvent"] {
        for member in document["$defs"][union]["anyOf"].as_array().unwrap() {
            let name = member["$ref"].as_str().unwrap().trim_start_matches("#/$defs/");
            let kind = document["$defs"][name]["properties"]["type"]["const"]
                .as_str()
                .unwrap();
            let step = |line: &Value| line["assistantMessageEvent"]["type"] == kind;
            let there = match union {
                "Event" => examples.event(kind, name.contains("Cumulative")).is_some(),
                _ => examples.0.iter().any(|line| step(&line.value)),
            };
            if !there {
                missing.push(name.to_owned());
            }
        }
    }
    assert!(
        missing.is_empty(),
        "no example in protocol/examples for: {missing:?}"
    );
}

#[test]
fn broken_lines_fail_schema() {
    let good = examples();
    let pick = |name: &str| {
        good.0
            .iter()
            .find(|line| {
                let is_cumulative = name == "message_update" && line.value.get("message").is_some();
                line.value["type"] == name && !is_cumulative
            })
            .unwrap()
            .value
            .clone()
    };
    let mut broken = Vec::new();
    let mut spoil = |kind: Kind, name: &str, pointer: &str, value: Option<Value>| {
        let mut line = pick(name);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = line.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => *parent.get_mut(key).unwrap() = value,
            None => assert!(parent.remove(key).is_some()),
        }
        broken.push((kind, format!("{name}{pointer}"), line));
    };
    spoil(Kind::Inbound, "prompt", "/message", None);
    spoil(Kind::Inbound, "prompt", "/message", Some(json!(5)));
    spoil(Kind::Inbound, "prompt", "/type", Some(json!("promptt")));
    spoil(Kind::Inbound, "set_steering_mode", "/mode", Some(json!("some")));
    spoil(Kind::Outbound, "message_end", "/message/content", Some(json!(5)));
    spoil(Kind::Outbound, "message_end", "/message/role", None);
    spoil(Kind::Outbound, "message_update", "/usage", None);
    spoil(
        Kind::Outbound,
        "tool_execution_end",
        "/isError",
        Some(json!("no")),
    );
    spoil(Kind::Outbound, "agent_end", "/willRetry", None);
    spoil(Kind::Outbound, "entry_appended", "/entry/timestamp", None);
    spoil(Kind::Session, "session", "/id", None);
    spoil(Kind::Session, "message", "/message", None);
    broken.push((
        Kind::Outbound,
        "data missing".into(),
        json!({"type": "response", "command": "get_state", "success": true}),
    ));
    broken.push((Kind::Outbound, "no event".into(), json!({"type": "nonsense"})));
    let mut validator = Validator::new();
    for (kind, what, line) in broken {
        assert!(
            validator.check(kind.definition(), &line).is_err(),
            "{what} passed: {line}"
        );
    }
}

#[test]
fn environment_variables_are_documented() {
    assert_eq!(
        xtask::reference::undocumented(&root()).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn documentation_links_and_code_blocks_are_valid() {
    let report = xtask::book::check(&root(), None).unwrap();
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert!(report.links > 300, "{report:?}");
}

#[test]
fn fenced_blocks_are_lines_or_text() {
    let page =
        "x\n```json\n{\"type\":\"abort\"}\n{\"type\":\"agent_start\"}\n```\n```json\n{\n \"a\": 1\n}\n```\n";
    let lines = fenced_lines("page.md", page).unwrap();
    assert_eq!(
        lines.iter().map(|line| line.kind).collect::<Vec<_>>(),
        [Kind::Inbound, Kind::Outbound]
    );
    assert_eq!(lines[1].place, "page.md:4");
    assert!(fenced_lines("page.md", "```json\n{\"type\":\"abort\"}\noops\n```\n").is_err());
}

#[test]
fn schema_parts_are_reachable_and_named_once() {
    let document = wire::schema::document().unwrap();
    let text = document.to_string();
    let names: BTreeSet<&str> = document["$defs"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    for name in &names {
        assert!(
            text.contains(&format!("\"#/$defs/{name}\"")),
            "nothing refers to {name}"
        );
        assert!(
            !name.ends_with(char::is_numeric),
            "{name}: two types had one name"
        );
    }
    for part in text.split("\"#/$defs/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(names.contains(name), "{name} is not defined");
    }
    assert!(!text.contains(".md "), "a description names an internal note");
}

#[test]
fn event_names_match_schema() {
    let document = wire::schema::document().unwrap();
    let members = document["$defs"]["Event"]["anyOf"].as_array().unwrap();
    let kinds: BTreeSet<&str> = members
        .iter()
        .map(|member| {
            let name = member["$ref"].as_str().unwrap().trim_start_matches("#/$defs/");
            document["$defs"][name]["properties"]["type"]["const"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(kinds, wire::EVENT_NAMES.iter().copied().collect());
}
