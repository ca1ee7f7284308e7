//! The catalogue made from a snapshot of two providers.

use std::fs::{self, File};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::run;

fn snapshot() -> Value {
    let model = |id: &str, tool_call: bool| {
        json!({"id": id, "name": id.to_uppercase(), "tool_call": tool_call, "reasoning": true,
            "modalities": {"input": ["text", "image"]}, "cost": {"input": 1.5, "output": -1},
            "limit": {"context": 1000, "output": 0}})
    };
    json!({"up": {"models": {
        "x/a": model("x/a", true), "b": model("b", true), "mute": model("mute", false), "gone": model("gone", true)}}})
}

fn generate(provider: &Value) -> anyhow::Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let mut file = GzEncoder::new(
        File::create(folder.path().join("data.json.gz"))?,
        Compression::fast(),
    );
    file.write_all(snapshot().to_string().as_bytes())?;
    file.finish()?;
    let rules = json!([
        {"ids": ["*"], "thinking": {"off": null, "low": "l"}},
        {"apis": ["two"], "thinking": {"low": "L"}, "compat": {"flag": true}}]);
    let overrides = json!({"providers": [provider], "rules": rules});
    fs::write(folder.path().join("overrides.json"), overrides.to_string())?;
    run(&folder.path().join("data.json.gz"), folder.path())?;
    let text = fs::read_to_string(folder.path().join("catalogue.jsonl"))?;
    let head: Value = serde_json::from_str(text.lines().next().unwrap_or(""))?;
    let body = text.split_once('\n').map_or(0, |(_, body)| body.len());
    assert_eq!(head["bytes"], json!(body));
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

#[test]
fn trims_routes_patches_and_rules() {
    let provider = json!({"id": "down", "source": "up", "default": "a", "env": ["KEY"], "drop": ["go*"],
        "routes": [{"api": "one", "baseUrl": "u1"}, {"ids": ["x/*"], "api": "two", "baseUrl": "u2", "strip": "x/"}],
        "patch": {"b": {"image": false, "context": 9}}});
    // The first route takes everything, so `x/a` never reaches the second.
    assert!(
        generate(&provider)
            .unwrap_err()
            .to_string()
            .contains("provider down")
    );
    let mut provider = provider;
    provider["routes"].as_array_mut().unwrap().reverse();
    let lines = generate(&provider).unwrap();
    assert_eq!(lines[0]["routes"][0], json!({"api": "two", "baseUrl": "u2"}));
    let a = json!({"id": "a", "name": "X/A", "reasoning": true, "image": true, "cost": [1.5, 0, 0, 0], "context": 1000,
        "output": 16384, "thinking": {"off": null, "low": "L"}, "compat": {"flag": true}});
    let b = json!({"id": "b", "name": "B", "route": 1, "reasoning": true, "cost": [1.5, 0, 0, 0], "context": 9,
        "output": 16384, "thinking": {"off": null, "low": "l"}});
    assert_eq!(lines[1..], [a, b]);
}

#[test]
fn a_missing_source_is_an_error() {
    let provider = json!({"id": "down", "source": "sideways", "default": "a", "routes": []});
    let error = generate(&provider).unwrap_err();
    assert!(
        format!("{error:#}").contains("sideways is not in the snapshot"),
        "{error:#}"
    );
}
