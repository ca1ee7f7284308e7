//! The catalogue made from a package of two providers, and the check of its age.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{is_fresh_at, run};

/// 2026-11-10 12:00 UTC in milliseconds.
const NOON: i64 = 1_794_312_000_000;

fn model(id: &str, kind: &str, url: &str) -> Value {
    json!({"id": id, "name": id.to_uppercase(), "api": "one", "provider": "down", "baseUrl": url, "type": kind,
        "reasoning": true, "input": ["text", "image"], "cost": {"input": 1.5, "output": -1}, "contextWindow": 1000,
        "maxTokens": 0, "thinkingLevelMap": {"off": null}, "compat": {"flag": true},
        "inputLimits": {"images": {"maxPerRequest": 3}}, "promptCache": {"short": 300}})
}

/// A folder that is package and data at once.
fn folder(models: &[Value], licence: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lists = folder.path().join(super::LISTS);
    fs::create_dir_all(&lists).unwrap();
    let write = |path: &std::path::Path, value: Value| fs::write(path, value.to_string()).unwrap();
    let about = json!({"name": "lists", "version": "1.2.3", "license": licence});
    write(&folder.path().join("package.json"), about);
    write(
        &lists.join(super::MANIFEST),
        json!({"generatedAt": "2026-11-10T12:05:37.628Z"}),
    );
    write(&lists.join("down.json"), json!({"one": models}));
    let overrides = json!({"providers": [
        {"id": "down", "default": "a", "env": ["KEY"], "routes": [{"ids": ["x"], "api": "one", "baseUrl": "https://h/v1",
            "headers": {"x-own": "1"}}]},
        {"id": "classes", "env": ["CLASS_KEY"], "routes": []}]});
    write(&folder.path().join("overrides.json"), overrides);
    folder
}

fn lines(folder: &TempDir) -> Vec<Value> {
    let text = fs::read_to_string(folder.path().join("catalogue.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn package_becomes_catalogue_with_header() {
    let models = [
        model("a", "chat", "https://h/v1"),
        model("b", "chat", "https://h/v2"),
        model("picture", "image", "https://h/v1"),
    ];
    let folder = folder(&models, "MIT");
    let said = run(folder.path(), folder.path()).unwrap();
    assert!(said.starts_with("2 chat models of 2 providers"), "{said}");
    assert!(said.ends_with("Left out: 1 of type image"), "{said}");
    let lines = lines(&folder);
    let header = json!({"catalogue": 2, "source": "npm package lists 1.2.3", "fetched": "2026-11-10T12:05:37.628Z",
        "models": 2, "providers": 2});
    assert_eq!(lines[0], header);
    let without = json!({"provider": "classes", "bytes": 0, "rank": 1, "default": "", "env": ["CLASS_KEY"], "routes": []});
    assert_eq!(lines[1], without);
    assert_eq!(
        (&lines[2]["default"], &lines[2]["rank"]),
        (&json!("a"), &json!(0))
    );
    let routes = json!([{"api": "one", "baseUrl": "https://h/v1", "headers": {"x-own": "1"}},
        {"api": "one", "baseUrl": "https://h/v2", "headers": {"x-own": "1"}}]);
    assert_eq!(lines[2]["routes"], routes);
    let shared = json!({"shared": {"thinking": [{"off": null}], "compat": [{"flag": true}],
        "limits": [{"images": {"maxPerRequest": 3}}], "cache": [{"short": 300}]}});
    assert_eq!(lines[3], shared);
    let b = json!({"id": "b", "name": "B", "route": 1, "reasoning": true, "image": true, "cost": [1.5, 0, 0, 0],
        "context": 1000, "output": 16384, "thinking": 0, "compat": 0, "limits": 0, "cache": 0});
    assert_eq!(lines[5], b);
}

#[test]
fn generation_fails_where_a_maintainer_must_decide() {
    let home = "https://h/v1";
    let mut stray = model("a", "chat", home);
    stray["provider"] = json!("newcomer");
    for (models, licence, reason) in [
        (
            vec![model("b", "chat", home)],
            "MIT",
            "default model \"a\" is not in the list",
        ),
        (
            vec![model("a", "chat", home), stray],
            "MIT",
            "no provider \"newcomer\"",
        ),
        (
            vec![
                model("a", "chat", home),
                model("b", "chat", "https://elsewhere/v1"),
            ],
            "MIT",
            "no route for b at https://elsewhere/v1",
        ),
        (
            vec![model("a", "chat", home)],
            "UNLICENSED",
            "not under the MIT licence",
        ),
    ] {
        let folder = folder(&models, licence);
        let error = run(folder.path(), folder.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(!folder.path().join("catalogue.jsonl").exists());
    }
}

#[test]
fn catalogue_older_than_allowed_fails_the_check() {
    let folder = folder(&[model("a", "chat", "https://h/v1")], "MIT");
    run(folder.path(), folder.path()).unwrap();
    let day = 86_400_000;
    for (days_later, fresh) in [(-3, true), (0, true), (30, true), (31, false)] {
        let now = NOON + days_later * day;
        assert_eq!(
            is_fresh_at(folder.path(), 30, now).unwrap(),
            fresh,
            "{days_later}"
        );
    }
    fs::write(folder.path().join("catalogue.jsonl"), "{}\n").unwrap();
    assert!(is_fresh_at(folder.path(), 30, NOON).is_err());
}
