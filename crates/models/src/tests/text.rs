//! Comments in JSON, looked-up values, the table of `--list-models`.

use std::cell::Cell;

use auth::login::json_file::plain_json;

use crate::list_models;
use crate::tests::shop;
use crate::value::{Lookup, is_configured, variables};

#[test]
fn jsonc_comments_and_trailing_commas_are_removed() {
    let table = [
        ("// a\n{\"a\": 1, }", "{\"a\":1}"),
        (
            "{\"u\": \"http://x//y\", /* c, } */ \"v\": [1, 2, // z\n ],}",
            "{\"u\":\"http://x//y\",\"v\":[1,2]}",
        ),
        (r#"{"q": "\",}//", "e": "\\"}"#, r#"{"q":"\",}//","e":"\\"}"#),
        ("{\"a\": \"ä/*\" /* ü */, }", "{\"a\":\"ä/*\"}"),
        ("[1, /* last */ ]", "[1]"),
    ];
    for (text, wanted) in table {
        let value: serde_json::Value = serde_json::from_str(&plain_json(text)).unwrap();
        assert_eq!(value.to_string(), wanted);
    }
    for bad in ["{\"a\" / 1}", "[1,,2]", "{\"a\": 1 /* open", "[,1]"] {
        assert!(
            serde_json::from_str::<serde_json::Value>(&plain_json(bad)).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn config_values_resolve_variables_and_commands() {
    let env = |name: &str| (name == "KIT_KEY").then(|| "from-env".to_owned());
    let runs = Cell::new(0);
    let run = |command: &str| {
        runs.set(runs.get() + 1);
        (command == "echo x").then(|| "x".to_owned())
    };
    let lookup = Lookup { env: &env, run: &run };
    let table = [
        ("KIT_KEY", Some("from-env")),
        ("$KIT_KEY", Some("from-env")),
        ("Bearer ${KIT_KEY}!", Some("Bearer from-env!")),
        ("$$KIT_KEY", Some("$KIT_KEY")),
        ("a$!b$", Some("a!b$")),
        ("pa$ $5 ${a b}", Some("pa$ $5 ${a b}")),
        ("other", Some("other")),
        ("$OTHER", None),
        ("!echo x", Some("x")),
        ("!false", None),
    ];
    for (text, wanted) in table {
        assert_eq!(lookup.resolve(text, "w").ok().as_deref(), wanted, "{text}");
    }
    let failed = lookup.resolve("!false", "API key").unwrap_err().to_string();
    assert_eq!(failed, "Failed to resolve API key from shell command: false");
    let before = runs.get();
    assert!(is_configured("!false", &env) && is_configured("lit", &env) && !is_configured("$OTHER", &env));
    assert_eq!(runs.get(), before);
    assert_eq!(variables("a$ONE-${TWO}"), ["ONE", "TWO"]);
    assert_eq!(variables("NAME"), ["NAME"]);
    assert!(variables("!echo $ONE").is_empty() && variables("sk-1").is_empty());
}

#[test]
fn model_table_is_aligned_and_sorted() {
    let text = r#"{"providers": {"b": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions", "models": [
      {"id": "z", "contextWindow": 1048576, "maxTokens": 999, "reasoning": true},
      {"id": "long-one", "contextWindow": 200000, "maxTokens": 1500000, "input": ["text", "image"]}]},
      "a": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions", "models": [{"id": "m", "contextWindow": 262144}]}}}"#;
    let shop = shop(text, "", &[]);
    let wanted = "\
provider  model     context  max-out  thinking  images
a         m         262.1K   16.4K    no        no
b         long-one  200K     1.5M     no        yes
b         z         1.0M     999      yes       no";
    assert_eq!(list_models(&shop.registry, None), wanted);
    assert_eq!(list_models(&shop.registry, Some("LONG")).lines().count(), 2);
    assert_eq!(
        list_models(&shop.registry, Some("nope")),
        "No models matching \"nope\""
    );
}
