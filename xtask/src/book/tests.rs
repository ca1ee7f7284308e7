//! The checker finds errors at the right line, and passes correct pages.

use std::fs;

use super::check;

/// A repository of one page, checked.
fn wrong(page: &str) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("docs")).unwrap();
    fs::write(
        root.path().join("docs/other.md"),
        "# Other page\n\n## Same\n\n## Same\n",
    )
    .unwrap();
    fs::write(root.path().join("docs/page.md"), page).unwrap();
    check(root.path(), None).unwrap().wrong
}

#[test]
fn documentation_links_need_file_and_anchor() {
    let good = "# Here\n\n[a](other.md#other-page) [b](#here) [c](../docs/other.md#same-1) [d](https://example.org/x#y) `[e](no.md)`\n";
    assert_eq!(wrong(good), Vec::<String>::new());
    let bad = wrong("[a](missing.md)\n\n[b](other.md#nothing)\n[c](../../out.md)\n");
    assert_eq!(bad.len(), 3, "{bad:?}");
    assert!(bad[0].starts_with("docs/page.md:1: "), "{bad:?}");
    assert!(bad[1].starts_with("docs/page.md:3: "), "{bad:?}");
    assert!(bad[2].contains("leaves the repository"), "{bad:?}");
}

#[test]
fn protocol_lines_in_pages_match_schema() {
    assert_eq!(
        wrong("```jsonl\n{\"type\":\"abort\"}\n{\"type\":\"agent_start\"}\n```\n"),
        Vec::<String>::new()
    );
    let bad = wrong("```jsonl\n{\"type\":\"abort\"}\n{\"type\":\"prompt\"}\n```\n");
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(
        bad[0].starts_with("docs/page.md:3: does not fit the schema"),
        "{bad:?}"
    );
}

#[test]
fn configuration_blocks_in_pages_are_parsed() {
    let good = "```json,settings\n{\"compaction\": {\"enabled\": true}} // as in the file\n```\n\n```json,replies\n[{\"stream\": [{\"text\": \"a\"}]}]\n```\n\n\
        ```json,models\n{\"providers\": {\"anthropic\": {\"headers\": {\"a\": \"b\"}}}}\n```\n\n```json\n{\"a\": 1}\n```\n";
    assert_eq!(wrong(good), Vec::<String>::new());
    for bad in [
        "```json,settings\n{\"compaction\": {\"enable\": true}}\n```\n",
        "```json,settings\n{\"theme\": \"dark\"}\n```\n",
        "```json,replies\n[{\"stream\": [{\"song\": \"a\"}]}]\n```\n",
        "```json,models\n{\"providers\": {\"mine\": {\"models\": [{\"id\": \"m\"}]}}}\n```\n",
        "```json\n{\"a\": }\n```\n",
    ] {
        assert_eq!(wrong(bad).len(), 1, "{bad}");
    }
}

#[test]
fn shell_blocks_in_pages_are_syntax_checked() {
    assert_eq!(
        wrong("```sh\nfor x in a b; do echo \"$x\"; done\n```\n"),
        Vec::<String>::new()
    );
    let bad = wrong("text\n\n```sh\nif true; then\n```\n");
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(bad[0].starts_with("docs/page.md:4: sh: "), "{bad:?}");
}

#[test]
fn marked_blocks_in_pages_are_run() {
    let root = tempfile::tempdir().unwrap();
    let page = "```sh,run\npinion >out && grep -q hello out\n```\n\n```sh,run\npinion | grep -q nothing\n```\n\n```sh\nexit 1\n```\n";
    fs::write(root.path().join("README.md"), page).unwrap();
    let agent = root.path().join("agent");
    fs::write(&agent, "#!/bin/sh\necho hello\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&agent, mode).unwrap();
    let report = check(root.path(), Some(&agent)).unwrap();
    assert_eq!(report.blocks.get("run"), Some(&2));
    assert_eq!(report.wrong.len(), 1, "{:?}", report.wrong);
    assert!(report.wrong[0].starts_with("README.md:6: "), "{:?}", report.wrong);
}

#[test]
fn console_blocks_must_print_what_they_show() {
    let root = tempfile::tempdir().unwrap();
    let agent = root.path().join("agent");
    let reply = "#!/bin/sh\necho \"$1 took 17 ms\"; echo two; echo three\n";
    fs::write(&agent, reply).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&agent, mode).unwrap();
    let wrong = |block: &str| {
        fs::write(
            root.path().join("README.md"),
            format!("```console,run\n{block}```\n"),
        )
        .unwrap();
        check(root.path(), Some(&agent)).unwrap().wrong
    };
    for good in [
        "$ pinion a\na took 3 ms\ntwo\nthree\n\n$ cargo run -- b\nb took 1 ms\n...\n",
        "$ pinion a\n...\nthree\n",
    ] {
        assert_eq!(wrong(good), Vec::<String>::new(), "{good}");
    }
    for (bad, printed) in [
        ("$ pinion a\na took 3 s\n...\n", "`a took 17 ms`"),
        ("$ pinion a\na took 3 ms\n", "`two`"),
        ("$ pinion a\n...\nfour\n", "`a took 17 ms`"),
        ("$ pinion a\n...\nthree\nfour\n", "nothing instead of `four`"),
    ] {
        let wrong = wrong(bad);
        assert!(wrong.len() == 1 && wrong[0].contains(printed), "{bad}: {wrong:?}");
    }
    fs::write(root.path().join("README.md"), "```text\n$ pinion\n```\n").unwrap();
    assert_eq!(check(root.path(), None).unwrap().wrong.len(), 1);
}

#[test]
fn pages_outside_the_table_of_contents_are_found() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("docs/guides")).unwrap();
    fs::write(root.path().join("docs/SUMMARY.md"), "- [One](guides/one.md)\n").unwrap();
    fs::write(root.path().join("docs/guides/one.md"), "# One\n").unwrap();
    assert_eq!(check(root.path(), None).unwrap().wrong, Vec::<String>::new());
    fs::write(root.path().join("docs/guides/two.md"), "# Two\n").unwrap();
    let wrong = check(root.path(), None).unwrap().wrong;
    assert!(
        wrong.len() == 1 && wrong[0].contains("guides/two.md"),
        "{wrong:?}"
    );
}

#[test]
fn included_files_are_checked_as_blocks() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.json"), "{\"a\": }\n").unwrap();
    let page = "```json\n{{#include a.json}}\n```\n\n```json\n{{#include b.json}}\n```\n";
    fs::write(root.path().join("README.md"), page).unwrap();
    let wrong = check(root.path(), None).unwrap().wrong;
    assert!(wrong.iter().any(|line| line.contains("not JSON")), "{wrong:?}");
    assert!(
        wrong
            .iter()
            .any(|line| line.contains("b.json cannot be included")),
        "{wrong:?}"
    );
}
