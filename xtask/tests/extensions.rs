//! The examples of the page about extensions: they fit the types, every line has one, and a real program understands them.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::panic, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "JSON of a known form")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use boon::{Compiler, Schemas};
use extensions::line::FromChild;
use serde_json::Value;

const PLACE: &str = "https://example.com/extensions.json";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn examples(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join("protocol/examples/extensions").join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Every line fits, and every kind of line is there.
fn fit(union: &str, lines: &[Value]) {
    let document = extensions::reference::document();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(PLACE, document.clone()).unwrap();
    let schema = compiler
        .compile(&format!("{PLACE}#/{union}"), &mut schemas)
        .unwrap();
    for line in lines {
        if let Err(error) = schemas.validate(line, schema) {
            panic!("{line}\n{error}");
        }
    }
    let kinds: BTreeSet<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    for member in document[union]["oneOf"].as_array().unwrap() {
        if let Some(kind) = member.pointer("/properties/type/const") {
            assert!(kinds.contains(kind.as_str().unwrap()), "{kind} has no example");
        }
    }
}

#[test]
fn extension_examples_match_types() {
    fit("toProgram", &examples("agent.jsonl"));
    fit("fromProgram", &examples("program.jsonl"));
    for line in examples("program.jsonl") {
        let read: FromChild = serde_json::from_value(line.clone()).unwrap();
        assert!(!matches!(read, FromChild::Unknown), "{line}");
    }
    let odd: Value = serde_json::from_str(r#"{"type":"open","id":"one"}"#).unwrap();
    assert!(std::panic::catch_unwind(|| fit("toProgram", &[odd])).is_err());
}

/// What a program of the examples says to all lines that the page shows.
fn played(program: &str) -> Vec<Value> {
    let mut child = Command::new("python3")
        .arg(root().join("examples/programs").join(program))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = fs::read_to_string(root().join("protocol/examples/extensions/agent.jsonl")).unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let said = String::from_utf8(said.stdout).unwrap();
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn example_programs_handle_example_lines() {
    if Command::new("python3").arg("--version").output().is_err() {
        // Not `println!`: the harness hides what a passing test prints.
        let line = b"skipped: python3 cannot be started\n";
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
        return;
    }
    for program in ["python/main.py", "minimal.py"] {
        let said = played(program);
        assert_eq!(said[0]["type"], "ready");
        assert_eq!(said[1]["id"], 1);
        for line in &said {
            let read: FromChild = serde_json::from_value(line.clone()).unwrap();
            assert!(!matches!(read, FromChild::Unknown), "{program}: {line}");
        }
        assert!(said.iter().any(|line| line["type"] == "pong" && line["id"] == 4));
    }
}
