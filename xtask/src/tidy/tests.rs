//! Each rule, on small texts that keep and break it.

use super::files::SourceFile;
use super::lexer::blank;
use super::source::{check, machine_paths};
use super::{Figures, manifest};

fn found(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    check(
        &SourceFile::new(path.into(), text.into()),
        &mut findings,
        &mut Figures::default(),
    );
    findings
        .into_iter()
        .map(|found| format!("{}: {}", found.line, found.message))
        .collect()
}

#[test]
fn lexer_blanks_comments_and_literals_only() {
    let text = "let a = \"x{\\\"y\"; // {\nlet b = '{'; fn f<'a>(x: &'a str) {}\nlet c = r#\"\"{\"#; /* { /* } */ */ d\nlet e = b'\\''; for_r\"z\"";
    let code = blank(text);
    assert_eq!(code.lines().count(), text.lines().count());
    assert_eq!(code.matches('{').count(), 1);
    assert_eq!(code.matches('}').count(), 1);
    assert!(code.contains("fn f<'a>(x: &'a str)"));
    assert!(code.lines().nth(2).unwrap().trim_end().ends_with('d'));
    assert!(!code.contains('z'));
}

#[test]
fn long_functions_outside_tests_are_reported() {
    let body = "    let x = 1;\n".repeat(80);
    let long = format!("//! Doc.\npub fn long(\n    a: [u8; 2],\n) -> u8 {{\n{body}}}\nfn short() {{}}\n");
    assert_eq!(
        found("crates/wire/src/a.rs", &long),
        ["2: long has 84 lines, more than 70"]
    );
    let test = format!("//! Doc.\n#[cfg(test)]\nmod tests {{\n    fn long() {{\n{body}    }}\n}}\n");
    assert!(found("crates/wire/src/a.rs", &test).is_empty());
    assert!(found("crates/wire/tests/a.rs", &long).is_empty());
}

#[test]
fn long_files_are_reported() {
    let text = format!("//! Doc.\n{}", "const A: u8 = 1;\n".repeat(600));
    assert_eq!(
        found("crates/wire/src/a.rs", &text),
        ["1: 601 lines, more than 600"]
    );
    assert!(found("crates/wire/src/tests.rs", &text).is_empty());
}

#[test]
fn forbidden_words_are_reported() {
    let env = "//! Doc.\nfn f() { std::env::var_os(\"A\"); }\n";
    assert_eq!(found("crates/llm/src/a.rs", env).len(), 1);
    assert!(found("crates/pinion/src/a.rs", env).is_empty());
    assert!(found("crates/llm/build.rs", env).is_empty());
    let split = "//! Doc.\nfn f() { std::env::split_paths(x); my_env::vary(); }\n";
    assert!(found("crates/llm/src/a.rs", split).is_empty());
    assert_eq!(
        found("crates/llm/src/a.rs", "//! Doc.\nfn f() { env::args_os(); }\n").len(),
        1
    );
    let print = "//! println! in a comment\nfn f() { println!(\"println!\"); }\nfn g() { eprintln!(); my_stdout(); }\n";
    assert_eq!(
        found("crates/host/src/a.rs", print),
        ["2: println!: only `serve` writes to stdout"]
    );
    assert!(found("crates/serve/src/a.rs", print).is_empty());
    assert_eq!(
        found("crates/core/src/a.rs", "//! Doc.\nuse tokio::time;\n").len(),
        1
    );
    assert!(found("crates/host/src/a.rs", "//! Doc.\nuse tokio::time;\n").is_empty());
    assert_eq!(
        found(
            "crates/host/tests/a.rs",
            "//! Doc.\n#[allow(dead_code)]\nfn f() {}\n"
        )
        .len(),
        1
    );
}

#[test]
fn missing_module_comment_is_reported() {
    assert_eq!(found("crates/host/src/a.rs", "use std::fmt;\n").len(), 1);
    assert!(found("crates/host/src/a.rs", "#![cfg(unix)]\n\n//! Doc.\n").is_empty());
}

#[test]
fn machine_paths_are_reported() {
    let [one, two] = [["/wo", "rk/x"].concat(), ["/ro", "ot/.cargo"].concat()];
    assert_eq!(machine_paths("a.md", &format!("see {one} and {two}")).len(), 2);
    assert!(machine_paths("a.md", &format!("http://host{one} ~{two} my{one}")).is_empty());
}

#[test]
fn forbidden_crate_dependencies_are_reported() {
    let text = "[dependencies]\nwire.workspace = true\nllm = { workspace = true }\n\n[dev-dependencies]\ntestkit.workspace = true\n";
    let messages = |path: &str| -> Vec<String> {
        manifest::check(path, text)
            .into_iter()
            .map(|found| format!("{}: {}", found.line, found.message))
            .collect()
    };
    assert_eq!(
        messages("crates/store/Cargo.toml"),
        ["3: store must not depend on llm"]
    );
    assert_eq!(messages("crates/wire/Cargo.toml").len(), 2);
    assert!(messages("crates/host/Cargo.toml").is_empty());
    assert!(messages("Cargo.toml").is_empty());
    assert_eq!(
        manifest::check(
            "crates/core/Cargo.toml",
            "[dependencies.tokio]\nversion = \"1\"\n"
        )
        .len(),
        1
    );
    let renamed = "[dependencies]\nbrain = { package = \"pinion-core\", path = \"../core\" }\n";
    assert_eq!(manifest::check("crates/llm/Cargo.toml", renamed).len(), 1);
}
