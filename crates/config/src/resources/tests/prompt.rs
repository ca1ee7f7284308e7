//! The system prompt and where its texts come from.

use super::{Place, complaints};
use crate::resources::ToolHint;

const BASH: ToolHint<'_> = ToolHint {
    name: "bash",
    snippet: Some("Run\n  a command"),
    guidelines: &["Be careful.", "Same."],
};
const READ: ToolHint<'_> = ToolHint {
    name: "read",
    snippet: Some("Read a file"),
    guidelines: &[" Same. ", ""],
};
const GREP: ToolHint<'_> = ToolHint {
    name: "grep",
    snippet: None,
    guidelines: &[],
};

fn order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is missing or out of order in:\n{text}")
        };
        rest = after;
    }
}

#[test]
fn system_prompt_parts_are_ordered_date_last() {
    let mut place = Place::new(&[
        ("work/AGENTS.md", "RULES\n"),
        ("agent/skills/s/SKILL.md", "---\ndescription: D\n---\n"),
    ]);
    place.options.append_system_prompt = vec!["MORE".into(), "EVEN MORE".into()];
    let text = place.resources().system_prompt(&[READ, BASH], Some("2026-11-05"));
    let agents = place.text("work/AGENTS.md");
    order(
        &text,
        &[
            "Pinion",
            "Available tools:\n- read: Read a file\n- bash: Run a command\n",
            "Guidelines:\n- ",
            "- Same.\n- Be careful.\n",
            "\n\nMORE\n\nEVEN MORE\n\n# Project Context\n\n",
            &format!("\n\n## {agents}\n\nRULES"),
            "<available_skills>",
            "<name>s</name>",
            "</available_skills>",
        ],
    );
    assert_eq!(text.matches("Same.").count(), 1);
    let end = format!(
        ">\nCurrent date: 2026-11-05\nCurrent working directory: {}",
        place.text("work")
    );
    assert!(text.ends_with(&end), "{text}");
}

#[test]
fn shell_guideline_depends_on_search_tools() {
    let place = Place::new(&[]);
    let with = |tools: &[ToolHint<'_>]| place.resources().system_prompt(tools, Some("2026-11-05"));
    let (alone, both, none) = (with(&[BASH]), with(&[BASH, GREP]), with(&[]));
    assert!(alone.contains("with bash (ls") && !alone.contains("rather than bash"));
    assert!(both.contains("rather than bash") && !both.contains("with bash (ls"));
    assert!(none.contains("Available tools:\n(none)") && !none.contains("bash"));
}

#[test]
fn skills_are_listed_only_with_tool_that_reads() {
    let place = Place::new(&[
        (
            "agent/skills/s/SKILL.md",
            "---\ndescription: Uses <tags> & \"quotes\"\n---\n",
        ),
        (
            "agent/skills/h/SKILL.md",
            "---\ndescription: H\ndisable-model-invocation: true\n---\n",
        ),
    ]);
    let text = place.resources().system_prompt(&[READ], Some("2026-11-05"));
    assert!(text.contains("<description>Uses &lt;tags&gt; &amp; &quot;quotes&quot;</description>"));
    assert!(!text.contains("<name>h</name>"));
    assert!(
        !place
            .resources()
            .system_prompt(&[BASH], Some("2026-11-05"))
            .contains("available_skills")
    );
    // As in today's pi, whose prompt has no date.
    let listed = |tool: ToolHint<'_>| {
        place
            .resources()
            .system_prompt(&[tool], None)
            .contains("<name>s</name>")
    };
    assert_eq!([READ, BASH, GREP].map(listed), [true, true, false]);
}

#[test]
fn system_prompt_files_replace_default_project_first() {
    let place = Place::new(&[
        ("agent/SYSTEM.md", "MARKER-SYSTEM"),
        ("agent/APPEND_SYSTEM.md", "MARKER-APPEND"),
    ]);
    let text = place.resources().system_prompt(&[READ], Some("2026-11-05"));
    assert!(
        text.starts_with("MARKER-SYSTEM\n\nMARKER-APPEND\nCurrent date:"),
        "{text}"
    );
    assert!(!text.contains("Available tools"));
    place.write("work/.pi/SYSTEM.md", "PROJECT");
    assert_eq!(
        place.resources().prompt_texts().custom.as_deref(),
        Some("PROJECT")
    );
}

#[test]
fn empty_system_prompt_keeps_built_in_one() {
    let mut place = Place::new(&[("agent/SYSTEM.md", "")]);
    let prompt = |place: &Place| place.resources().system_prompt(&[READ], None);
    assert!(prompt(&place).contains("Available tools:\n- read: Read a file"));
    place.write("agent/SYSTEM.md", "MARKER");
    assert!(prompt(&place).starts_with("MARKER"));
    place.options.system_prompt = Some(String::new());
    assert!(prompt(&place).contains("Available tools:\n- read: Read a file"));
}

#[test]
fn system_prompt_flags_accept_files_and_literal_text() {
    let mut place = Place::new(&[
        ("agent/SYSTEM.md", "found"),
        ("agent/APPEND_SYSTEM.md", "found too"),
        ("work/own.md", "FROM FILE"),
        ("home/more.md", "FROM HOME"),
    ]);
    let long = "words ".repeat(2000);
    let table = [
        ("own.md", "FROM FILE"),
        ("~/more.md", "FROM HOME"),
        ("be nice", "be nice"),
        ("", ""),
        ("two\nlines", "two\nlines"),
        (long.as_str(), long.as_str()),
    ];
    for (given, expected) in table {
        place.options.system_prompt = Some(given.to_owned());
        place.options.append_system_prompt = vec![given.to_owned(), "x".to_owned()];
        let resources = place.resources();
        assert_eq!(resources.prompt_texts().custom.as_deref(), Some(expected));
        assert_eq!(
            resources.prompt_texts().append.as_deref(),
            Some(format!("{expected}\n\nx").as_str())
        );
        assert!(
            complaints(&resources, place.root.path()).is_empty(),
            "{given:.20}"
        );
    }
}
