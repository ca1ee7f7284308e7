//! Each rule, on small texts that keep and break it.

use super::files::SourceFile;
use super::source::{check, machine_paths};
use super::{Figures, cycles, guarantees, manifest, types, words};

fn found(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    check(
        &SourceFile::new(path.into(), text.into()).unwrap(),
        &mut findings,
        &mut Figures::default(),
    );
    findings
        .into_iter()
        .map(|found| format!("{}: {}", found.line, found.message))
        .collect()
}

#[test]
fn long_functions_are_found_and_tests_are_not() {
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
fn long_files_are_found() {
    let text = format!("//! Doc.\n{}", "const A: u8 = 1;\n".repeat(600));
    assert_eq!(
        found("crates/wire/src/a.rs", &text),
        ["1: 601 lines, more than 600"]
    );
    assert!(found("crates/wire/src/tests.rs", &text).is_empty());
}

#[test]
fn files_need_a_module_comment() {
    assert_eq!(found("crates/session/src/a.rs", "use std::fmt;\n").len(), 1);
    assert!(found("crates/session/src/a.rs", "#![cfg(unix)]\n\n//! Doc.\n").is_empty());
}

#[test]
fn machine_paths_are_found() {
    let [one, two] = [["/wo", "rk/x"].concat(), ["/ro", "ot/.cargo"].concat()];
    assert_eq!(machine_paths("a.md", &format!("see {one} and {two}")).len(), 2);
    assert!(machine_paths("a.md", &format!("http://host{one} ~{two} my{one}")).is_empty());
}

#[test]
fn arrows_between_packages_are_checked() {
    let metadata = serde_json::json!({"packages": [
        {"name": "pinion-store", "dependencies": [
            {"name": "pinion-wire", "kind": null},
            {"name": "pinion-llm", "kind": null},
            {"name": "pinion-testkit", "kind": "dev"},
        ]},
        {"name": "pinion-agent", "dependencies": [{"name": "tokio", "kind": null}]},
        {"name": "pinion-other", "dependencies": []},
    ]});
    let found = manifest::check_metadata(metadata.to_string().as_bytes()).unwrap();
    let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "store must not depend on llm",
            "agent must not depend on tokio",
            "the package other is not in the table of xtask/src/tidy/manifest.rs"
        ]
    );
}

/// Files of one crate that is not known to any list of exceptions.
fn sources(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let file = |(path, text): &(&str, &str)| {
        SourceFile::new(format!("crates/example/src/{path}"), (*text).to_owned()).unwrap()
    };
    files.iter().map(file).collect()
}

fn messages(found: Vec<super::Finding>) -> Vec<String> {
    found.into_iter().map(|found| found.message).collect()
}

#[test]
fn type_spread_over_files_is_found() {
    let block = "impl Big { fn a() {} }";
    let fields: String = (0..16).map(|n| format!("a{n}: u8,")).collect();
    let big = format!("struct Big {{ {fields} }} impl Clone for Big {{}}");
    let all = [
        ("a.rs", big.as_str()),
        ("b.rs", block),
        ("c.rs", block),
        ("d.rs", block),
        ("tests.rs", block),
        ("e.rs", "#[cfg(test)] impl Big { fn b() {} }"),
    ];
    assert_eq!(
        messages(types::check(&sources(&all[..4]))),
        ["Big has 16 fields, more than 15"]
    );
    let more: Vec<(&str, &str)> = all.into_iter().chain([("f.rs", block)]).collect();
    assert_eq!(
        messages(types::check(&sources(&more))),
        [
            "Big has 4 files with methods, more than 3",
            "Big has 16 fields, more than 15"
        ]
    );
}

#[test]
fn circle_of_four_modules_is_found() {
    let circle = [
        ("lib.rs", "mod a; use crate::a::A;"),
        ("a.rs", "use crate::b::B;"),
        ("b/mod.rs", "fn f() { super::c::f(); }"),
        ("c.rs", "use crate::{d::{self, D}, std};"),
        ("d.rs", "struct D(crate::a::A);"),
    ];
    assert_eq!(
        messages(cycles::check(&sources(&circle))),
        ["4 modules import each other in a circle, more than 3: a, b, c, d"]
    );
    let mut open = circle;
    open[4].1 = "#[cfg(test)] mod tests { use crate::a::A; } // crate::a::A";
    assert!(cycles::check(&sources(&open)).is_empty());
}

#[test]
fn words_and_citations_are_found_in_prose_only() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let texts = [
        file(
            "crates/example/src/a.rs",
            "/// Nobody waits for `nobody`, see pi.md 1.2.\nlet nobody = \"somebody\"; // pi.md 1.3, gone.md",
        ),
        file("docs/internals/specifications/pi.md", "# 1 Lines\n## 1.2 Ends\n"),
    ];
    let found = messages(words::check(&texts).unwrap());
    assert_eq!(found, ["\"Nobody\": name the actor, or use the term"]);
    let cited = [
        file("crates/example/src/a.rs", "// pi.md 1.2, pi.md 1.3 and gone.md"),
        texts[1].clone(),
    ];
    assert_eq!(
        messages(words::check(&cited).unwrap()),
        ["pi.md has no section 1.3", "gone.md is not in the repository"]
    );
}

#[test]
fn guarantee_without_test_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let page = "| # | promise | checked by |\n| 1 | a | `crates/a/tests`: `module::known`; `cargo xtask kill` |\n| 2 | b | `unknown` |\n| 3 | c | `crates/b/{c,d}.rs`, `xtask live` |\n";
    let other = "| 1 | `a` | `known`, `gone` | `b` |\n";
    let texts = [
        file("GUARANTEES.md", page),
        file("docs/project/clients-page-tools.md", other),
        file("crates/a/tests/module.rs", "fn known() {}"),
        file("xtask/src/main.rs", "\"kill\" => kill()"),
    ];
    assert_eq!(
        messages(guarantees::check(&texts).unwrap()),
        [
            "`unknown` names no test, file or command",
            "`crates/b/{c,d}.rs` names no test, file or command",
            "`xtask live` names no test, file or command",
            "`gone` names no test, file or command"
        ]
    );
}

#[test]
fn crate_without_licence_is_found() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["", "testkit", "crates/a"] {
        let folder = root.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            std::fs::write(folder.join(name), name).unwrap();
        }
    }
    assert_eq!(manifest::licences(root.path()).unwrap(), []);
    // A link that became a file.
    std::fs::write(root.path().join("crates/a/LICENSE-MIT"), "../../LICENSE-MIT").unwrap();
    std::fs::remove_file(root.path().join("testkit/LICENSE-APACHE")).unwrap();
    let found = manifest::licences(root.path()).unwrap();
    let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(paths, ["testkit/LICENSE-APACHE", "crates/a/LICENSE-MIT"]);
}
