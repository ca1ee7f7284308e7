//! Skills: discovery, precedence, complaints, calls.

use std::fs;

use super::{GOLDEN, Place, complaints};
use crate::resources::kind::Kind;
use crate::resources::{Changes, Resources};
use crate::source::Scope;

const SKILL: &str = "---\ndescription: D\n---\nBody\n";

fn names(resources: &Resources) -> Vec<&str> {
    resources
        .skills()
        .iter()
        .map(|skill| skill.name.as_str())
        .collect()
}

#[test]
fn skill_calls_expand_to_skill_block() {
    let place = Place::new(&GOLDEN);
    let resources = place.resources();
    let base = place.text("agent/skills/deploy");
    let block = format!(
        "<skill name=\"deploy\" location=\"{base}/SKILL.md\">\nReferences are relative to {base}.\n\n\
         # Deploy\nRun the deploy steps.\n</skill>"
    );
    let table = [
        ("/skill:deploy", block.clone()),
        ("/skill:deploy to production", format!("{block}\n\nto production")),
        ("/skill:deploy\nline\n", format!("{block}\n\nline")),
        ("/skill:unknown x", "/skill:unknown x".to_owned()),
        (" /skill:deploy", " /skill:deploy".to_owned()),
    ];
    for (typed, expected) in table {
        assert_eq!(resources.expand(typed).text, expected, "{typed:?}");
    }
}

#[test]
fn vanished_skill_leaves_text_unchanged() {
    let place = Place::new(&GOLDEN);
    let resources = place.resources();
    assert_eq!(resources.skills().len(), 2);
    fs::remove_file(place.path("agent/skills/deploy/SKILL.md")).unwrap();
    let expanded = resources.expand("/skill:deploy x");
    assert_eq!(expanded.text, "/skill:deploy x");
    assert!(expanded.problem.is_some());
}

#[test]
fn skill_name_in_file_overrides_directory_name() {
    let place = Place::new(&[(
        "agent/skills/foo/SKILL.md",
        "---\nname: bar\ndescription: D\n---\nBody\n",
    )]);
    let resources = place.resources();
    assert_eq!(names(&resources), ["bar"]);
    assert_eq!(resources.expand("/skill:foo hi").text, "/skill:foo hi");
}

#[test]
fn skill_directory_is_not_searched_further() {
    let place = Place::new(&[
        ("agent/skills/a/SKILL.md", SKILL),
        ("agent/skills/a/inner/SKILL.md", SKILL),
        ("agent/skills/group/b/SKILL.md", SKILL),
        ("agent/skills/group/note.md", SKILL),
        ("agent/skills/.hidden/SKILL.md", SKILL),
        ("agent/skills/node_modules/m/SKILL.md", SKILL),
    ]);
    assert_eq!(names(&place.resources()), ["a", "b"]);
}

#[test]
fn loose_skill_files_need_front_matter() {
    let place = Place::new(&[
        ("agent/skills/loose.md", SKILL),
        ("agent/skills/README.md", "# Read me\n"),
        ("home/.agents/skills/other.md", SKILL),
        ("home/.agents/skills/deep/SKILL.md", SKILL),
        ("home/.agents/skills/group/nested.md", SKILL),
        ("home/.agents/skills/group/README.md", "# Read me\n"),
    ]);
    let resources = place.resources();
    assert_eq!(names(&resources), ["loose", "deep", "nested"]);
    assert!(complaints(&resources, place.root.path()).is_empty());
}

/// `pi config` writes paths of such skills from their `.agents` directory.
#[test]
fn settings_disable_skills_of_agents_directory() {
    let mut place = Place::new(&[
        ("home/.agents/skills/a/SKILL.md", SKILL),
        ("home/.agents/skills/b/SKILL.md", SKILL),
    ]);
    let list = ["-skills/a/SKILL.md".to_owned()];
    let changes = Changes::of(Kind::Skills, Scope::User, &place.path("agent"), &list);
    place.options.changes = changes.into_iter().collect();
    assert_eq!(names(&place.resources()), ["b"]);
}

#[test]
fn skill_ignore_files_apply_innermost_rule_first() {
    let place = Place::new(&[
        ("agent/skills/.gitignore", "drafts/\nkeep*\n*.tmp\n"),
        ("agent/skills/drafts/x/SKILL.md", SKILL),
        ("agent/skills/group/.ignore", "!keep-this\n/b\n"),
        ("agent/skills/group/keep-this/SKILL.md", SKILL),
        ("agent/skills/group/b/SKILL.md", SKILL),
        ("agent/skills/keep-not/SKILL.md", SKILL),
        ("agent/skills/z/b/SKILL.md", SKILL),
        ("agent/skills/z/.fdignore", "c\n"),
        ("agent/skills/z/c/SKILL.md", SKILL),
    ]);
    assert_eq!(names(&place.resources()), ["keep-this", "b"]);
}

#[test]
fn skill_precedence_resolves_name_collisions() {
    let named = |place: &str| format!("---\nname: same\ndescription: {place}\n---\n");
    let mut place = Place::new(&[]);
    let files = [
        "set/p/SKILL.md",
        "work/.pi/skills/x/SKILL.md",
        "work/.agents/skills/x/SKILL.md",
        "set/u/SKILL.md",
        "agent/skills/x/SKILL.md",
        "home/.agents/skills/x/SKILL.md",
        "cli/x/SKILL.md",
    ];
    for file in files {
        place.write(file, &named(file));
    }
    place.options.skill_paths = vec![
        place.extra("cli/x/SKILL.md", Scope::Temporary),
        place.extra("set/u", Scope::User),
        place.extra("set/p", Scope::Project),
    ];
    // Takes away the winner again and again: the order of precedence comes out.
    for (index, file) in files.iter().enumerate() {
        let resources = place.resources();
        assert_eq!(resources.skills().len(), 1);
        assert_eq!(resources.skills()[0].description, *file);
        let said = complaints(&resources, place.root.path());
        assert_eq!(said.len(), files.len() - index - 1);
        assert!(
            said.iter().all(|line| line.contains("name \"same\" is taken by")),
            "{said:?}"
        );
        fs::remove_file(place.path(file)).unwrap();
    }
}

#[test]
fn disabled_discovery_keeps_command_line_skills() {
    let mut place = Place::new(&GOLDEN);
    place.write("cli/x/SKILL.md", SKILL);
    place.options.skills = false;
    place.options.skill_paths = vec![
        place.extra("cli", Scope::Temporary),
        place.extra("nowhere", Scope::Temporary),
    ];
    let resources = place.resources();
    assert_eq!(names(&resources), ["x"]);
    assert_eq!(
        complaints(&resources, place.root.path()),
        ["nowhere: skill path does not exist"]
    );
    let info = serde_json::to_value(&resources.skills()[0].source).unwrap();
    assert_eq!(
        (&info["source"], &info["scope"]),
        (&"local".into(), &"temporary".into())
    );
}

#[test]
fn agents_skill_directories_count_up_to_git_root() {
    let mut place = Place::new(&[
        (".agents/skills/outside/SKILL.md", SKILL),
        ("work/.agents/skills/root/SKILL.md", SKILL),
        ("work/sub/.agents/skills/sub/SKILL.md", SKILL),
    ]);
    place.options.cwd = place.path("work/sub");
    assert_eq!(names(&place.resources()), ["sub", "root"]);
}

#[cfg(unix)]
#[test]
fn linked_skills_load_once_and_cycles_end() {
    let place = Place::new(&[
        ("work/shared/a/SKILL.md", SKILL),
        ("elsewhere/b/SKILL.md", SKILL),
        ("agent/skills/b/note", ""),
        ("work/.pi/skills/note", ""),
    ]);
    let link = |to: &str, from: &str| std::os::unix::fs::symlink(place.path(to), place.path(from)).unwrap();
    link("work/shared/a", "agent/skills/a1");
    link("work/shared/a", "agent/skills/a2");
    link("agent/skills", "agent/skills/b/up");
    link("gone", "agent/skills/gone");
    assert_eq!(names(&place.resources()), ["a1"]);
    // The same file through two places is one skill, under the name of the first.
    link("work/shared/a", "work/.pi/skills/first");
    let resources = place.resources();
    assert_eq!(names(&resources), ["first"]);
    assert!(complaints(&resources, place.root.path()).is_empty());
    // A link of the project does not lead out of it.
    link("elsewhere/b", "work/.pi/skills/outside");
    let resources = place.resources();
    assert_eq!(names(&resources), ["first"]);
    let said = complaints(&resources, place.root.path());
    assert!(said.len() == 1 && said[0].contains("it leads out of"), "{said:?}");
}

#[test]
fn skill_warnings_allow_loading_except_missing_description() {
    let long = "d".repeat(1025);
    let named =
        |name: &str, description: &str| format!("---\nname: {name}\ndescription: {description}\n---\n");
    let table = [
        (named("Upper", "D"), Some("Upper"), "name has characters"),
        (named("a--b", "D"), Some("a--b"), "two in a row"),
        (named("a-", "D"), Some("a-"), "hyphen at an end"),
        (named(&"n".repeat(65), "D"), Some("n"), "longer than 64"),
        (named("ok", &long), Some("ok"), "longer than 1024"),
        ("---\nname: x\n---\n".to_owned(), None, "description is required"),
        ("No front matter".to_owned(), None, "description is required"),
        (
            "---\ndescription: never closed\n".to_owned(),
            None,
            "description is required",
        ),
        (
            "---\nname: y\ndescription: Use: for colons\n---\n".to_owned(),
            Some("y"),
            "not valid YAML",
        ),
    ];
    for (text, loaded, complaint) in table {
        let place = Place::new(&[("agent/skills/x/SKILL.md", &text)]);
        let resources = place.resources();
        match loaded {
            Some(name) => assert!(names(&resources)[0].starts_with(name), "{text}"),
            None => assert!(names(&resources).is_empty(), "{text}"),
        }
        let said = complaints(&resources, place.root.path());
        assert!(
            said.iter().any(|line| line.contains(complaint)),
            "{text}: {said:?}"
        );
    }
}

#[test]
fn skill_with_crlf_and_bom_is_read() {
    let place = Place::new(&[(
        "agent/skills/x/SKILL.md",
        "\u{feff}---\r\ndescription: D\r\n---\r\nOne\r\nTwo\r\n",
    )]);
    let resources = place.resources();
    assert_eq!(resources.skills()[0].description, "D");
    assert!(
        resources
            .expand("/skill:x")
            .text
            .contains("\n\nOne\nTwo\n</skill>")
    );
}
