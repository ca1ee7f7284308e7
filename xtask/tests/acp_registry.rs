//! `packaging/acp` as the registry of the Agent Client Protocol checks it.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

const PLACE: &str = "https://example.com/agent.schema.json";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/acp")
}

fn read(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder().join(name)).unwrap()).unwrap()
}

/// Returns why an entry does not fit the schema of the registry.
fn problem(entry: &Value) -> Option<String> {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(PLACE, read("agent.schema.json")).unwrap();
    let schema = compiler.compile(PLACE, &mut schemas).unwrap();
    let checked = schemas.validate(entry, schema);
    checked.err().map(|error| error.to_string())
}

#[test]
fn registry_entry_fits_the_registry_schema() {
    let entry = read("agent.json");
    assert_eq!(problem(&entry), None);
    let mut nameless = entry.clone();
    nameless.as_object_mut().unwrap().shift_remove("name");
    assert!(problem(&nameless).is_some());
    let mut elsewhere = entry;
    *elsewhere.pointer_mut("/distribution").unwrap() = json!({"cargo": {"package": "pinion"}});
    assert!(problem(&elsewhere).is_some());
}

#[test]
fn registry_icon_is_small_and_colourless() {
    let entry = read("agent.json");
    let icon = fs::read_to_string(folder().join(entry.get("icon").unwrap().as_str().unwrap())).unwrap();
    assert!(icon.contains("width=\"16\" height=\"16\""), "{icon}");
    for attribute in ["fill", "stroke"] {
        let begin = format!("{attribute}=\"");
        let colours = icon.split(&begin).skip(1);
        for colour in colours.map(|rest| rest.split('"').next().unwrap()) {
            assert!(matches!(colour, "none" | "currentColor"), "{attribute} {colour}");
        }
    }
}
