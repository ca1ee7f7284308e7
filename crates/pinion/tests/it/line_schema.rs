//! Checks lines against the schema of their dialect, as `pinion schema` prints it. The kits call it for everything that tests
//! read.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::kit::PROGRAM;

const PLACE: &str = "schema.json";

/// The schemas of the dialects that tests have used: each is read and compiled once.
static LOADED: LazyLock<Mutex<BTreeMap<String, Arc<LineSchema>>>> = LazyLock::new(Mutex::default);

/// The schema of the lines that clients of a dialect receive.
struct LineSchema {
    /// Definitions of the lines with a `type`; those of responses by `command`.
    lines: BTreeMap<String, Vec<(String, SchemaIndex)>>,
    schemas: Schemas,
}

/// Which dialect a connection speaks, as far as its lines tell.
pub(crate) struct Connection {
    dialect: String,
    /// `hello` has chosen the form of updates, in any dialect.
    chose_updates: bool,
}

impl Connection {
    /// `auto` as long as nothing is chosen: lines of every dialect are valid.
    pub(crate) fn new(dialect: &str) -> Self {
        Self {
            dialect: dialect.to_owned(),
            chose_updates: false,
        }
    }

    /// Checks the next line.
    ///
    /// # Panics
    /// If the schema of the dialect has no such line.
    pub(crate) fn check(&mut self, line: &Value) {
        if self.chose_updates && line["type"] == "message_update" {
            assert_fits("auto", line);
        } else {
            assert_fits(&self.dialect, line);
        }
        let data = &line["data"];
        if line["type"] == "response" && line["command"] == "hello" && line["success"] == true {
            data["dialect"].as_str().unwrap().clone_into(&mut self.dialect);
            self.chose_updates = true;
        }
    }
}

/// Checks all lines of a connection, from its start.
///
/// # Panics
/// As [`Connection::check`].
pub(crate) fn assert_all_fit<'a>(dialect: &str, lines: impl Iterator<Item = &'a Value>) {
    let mut connection = Connection::new(dialect);
    for line in lines {
        connection.check(line);
    }
}

/// Checks a line against the schema of a dialect.
///
/// # Panics
/// If the schema has no such line.
pub(crate) fn assert_fits(dialect: &str, line: &Value) {
    let mut result = loaded(dialect).check(line);
    // A client of the first oh-my-pi becomes one of today's when it sends a newer command.
    if result.is_err() && dialect == "omp" {
        result = loaded("omp-now").check(line);
    }
    if let Err(error) = result {
        let mut shown = line.to_string();
        shown.truncate(shown.floor_char_boundary(2000));
        panic!("no line of dialect {dialect}: {error}\n{shown}");
    }
}

fn loaded(dialect: &str) -> Arc<LineSchema> {
    // A line that does not fit fails its own test only.
    let mut all = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = all
        .entry(dialect.to_owned())
        .or_insert_with(|| Arc::new(LineSchema::load(dialect)));
    Arc::clone(schema)
}

impl LineSchema {
    fn load(dialect: &str) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .args(["schema", "--dialect", dialect])
            .env_clear()
            .env("HOME", std::env::temp_dir())
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut names = Vec::new();
        collect(&document, "OutboundLine", &mut names);
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource(PLACE, document).unwrap();
        let mut lines: BTreeMap<String, Vec<(String, SchemaIndex)>> = BTreeMap::new();
        for (key, name) in names {
            let place = format!("{PLACE}#/$defs/{name}");
            let index = compiler.compile(&place, &mut schemas).unwrap();
            lines.entry(key).or_default().push((name, index));
        }
        Self { lines, schemas }
    }

    fn check(&self, line: &Value) -> Result<(), String> {
        // A union of hundreds of lines would be tried one by one: the names in the line tell which ones can fit.
        let kind = line["type"].as_str().ok_or("no type")?;
        let mut keys = vec![kind.to_owned()];
        if kind == "response" {
            keys.push(response_key(line["command"].as_str().unwrap_or_default()));
        }
        let mut errors = vec![format!("type {kind:?}")];
        for (name, index) in keys.iter().filter_map(|key| self.lines.get(key)).flatten() {
            match self.schemas.validate(line, *index) {
                Ok(()) => return Ok(()),
                Err(error) => errors.push(format!("{name}: {error}")),
            }
        }
        Err(errors.join("\n"))
    }
}

fn response_key(command: &str) -> String {
    format!("response {command}")
}

/// Finds the lines of a union: for each a key and the name of its definition.
fn collect(document: &Value, name: &str, lines: &mut Vec<(String, String)>) {
    let schema = &document["$defs"][name];
    if let Some(members) = schema["anyOf"].as_array() {
        for member in members {
            let target = member["$ref"].as_str().unwrap();
            collect(document, target.strip_prefix("#/$defs/").unwrap(), lines);
        }
        return;
    }
    let kind = schema["properties"]["type"]["const"].as_str().unwrap();
    let key = match schema["properties"]["command"]["const"].as_str() {
        Some(command) => response_key(command),
        None => kind.to_owned(),
    };
    lines.push((key, name.to_owned()));
}

#[test]
fn schema_of_dialect_has_no_lines_of_others() {
    let start = json!({"type": "compaction_start", "reason": "threshold"});
    let older = json!({"type": "auto_compaction_start", "reason": "threshold", "action": "context-full"});
    let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
    let usage =
        json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost});
    let step = json!({"type": "text_start", "contentIndex": 0});
    let update = json!({"type": "message_update", "assistantMessageEvent": step, "usage": usage});
    let error = json!({"type": "error", "error": "x"});
    let response = json!({"type": "response", "command": "abort", "success": true});
    for (line, dialects) in [
        (start, "auto pi pi-delta"),
        (older, "auto hooks omp omp-now xcsh web"),
        (update, "auto web pi-delta"),
        (error, "auto early"),
        (response, "auto hooks omp omp-now xcsh web pi pi-delta"),
    ] {
        for dialect in "auto early hooks omp omp-now xcsh web pi pi-delta".split(' ') {
            let fits = loaded(dialect).check(&line).is_ok();
            assert_eq!(
                fits,
                dialects.split(' ').any(|name| name == dialect),
                "{dialect}: {line}"
            );
        }
    }
}
