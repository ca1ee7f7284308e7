//! What clients of today's oh-my-pi find in a project and in the agent directory, in addition to what all find.

use wire::Dialect;

use super::{Place, complaints};
use crate::resources::{TemplateOptions, agent_definitions};

const SKILL: &str = "---\ndescription: D\n---\nBody\n";

fn files() -> Place {
    let off = SKILL.replace("---\nBody", "enabled: false\n---\nBody");
    Place::new(&[
        ("work/.pi/skills/a/SKILL.md", SKILL),
        ("work/.omp/skills/a/SKILL.md", "---\ndescription: hidden\n---\n"),
        ("work/.omp/skills/b/SKILL.md", SKILL),
        ("work/.omp/skills/off/SKILL.md", off.as_str()),
        ("work/.omp/commands/check.md", "Check $1"),
        ("work/.omp/prompts/plan.md", "Plan"),
        ("agent/commands/mine.md", "Mine"),
        (
            "work/.omp/agents/scout.md",
            "---\ndescription: scouts\nmodel: [pi/smol, p/m]\nthinkingLevel: auto\n---\n",
        ),
        (
            "agent/agents/judge.md",
            "---\ndescription: judges\nmodel: p/m, p/n\nthinkingLevel: high\n---\n",
        ),
        ("work/.omp/SYSTEM.md", "You are a fish."),
        ("work/AGENTS.md", "of the neighbour"),
        ("work/.omp/AGENTS.md", "of oh-my-pi"),
        ("agent/RULES.md", "of the user"),
        ("work/.omp/RULES.md", "---\nenabled: true\n---\nof the project"),
        ("work/.omp/rules/always.md", "---\nalwaysApply: true\n---\nalways"),
        (
            "work/.omp/rules/watch.md",
            "---\nalwaysApply: true\ncondition: x\n---\nwatches",
        ),
        (
            "work/.omp/rules/off.md",
            "---\nenabled: false\ncondition: x\n---\noff",
        ),
        ("work/.omp/rules/text.md", "only listed"),
    ])
}

fn names(place: &Place) -> Vec<String> {
    place
        .resources()
        .commands()
        .into_iter()
        .map(|command| command.name)
        .collect()
}

/// The context files of the project and the user, outermost first.
fn context(place: &Place) -> Vec<String> {
    let resources = place.resources();
    let files = resources.context_files().iter();
    let files = files.filter(|file| file.path.starts_with(place.root.path()));
    files.map(|file| file.content.clone()).collect()
}

#[test]
fn files_of_omp_count_in_its_dialect() {
    let mut place = files();
    place.options.templates = TemplateOptions::new(true, Dialect::OmpNow);
    assert_eq!(names(&place), ["plan", "check", "mine", "skill:a", "skill:b"]);
    assert_eq!(place.resources().skills()[0].description, "D");
    assert_eq!(place.resources().expand("/check it").text, "Check it");
    let custom = place.resources().prompt_texts().custom.clone();
    assert_eq!(custom.as_deref(), Some("You are a fish."));
    assert_eq!(
        context(&place),
        ["of oh-my-pi", "of the user", "of the project", "always"]
    );
    let rules = place.resources().rules();
    let rules = rules.sources().map(|rule| rule.name.as_str());
    assert_eq!(rules.collect::<Vec<_>>(), ["watch"]);
    let (agents, notes) = agent_definitions(&place.options);
    assert!(notes.is_empty(), "{notes:?}");
    let levels = agents.iter().map(|agent| {
        let level = agent.thinking.map(|level| level.as_str());
        (agent.name.as_str(), agent.model.as_deref(), level)
    });
    let expected = [("scout", None, None), ("judge", Some("p/m"), Some("high"))];
    assert_eq!(levels.collect::<Vec<_>>(), expected);

    place.options.project = false;
    assert_eq!(names(&place), ["mine"]);
    assert_eq!(context(&place), ["of oh-my-pi", "of the user"]);
}

#[test]
fn files_of_omp_do_not_count_for_others() {
    let mut place = files();
    for dialect in Dialect::ALL
        .into_iter()
        .filter(|dialect| *dialect != Dialect::OmpNow)
    {
        place.options.templates = TemplateOptions::new(true, dialect);
        assert_eq!(names(&place), ["skill:a"], "{dialect:?}");
        assert_eq!(context(&place), ["of the neighbour"], "{dialect:?}");
        assert_eq!(place.resources().prompt_texts().custom, None, "{dialect:?}");
        let (agents, _) = agent_definitions(&place.options);
        assert_eq!(agents.len(), 1, "{dialect:?}");
    }
}

#[test]
fn unreadable_rule_of_omp_is_reported_once() {
    let long = "x".repeat(300 * 1024);
    let mut place = Place::new(&[
        ("work/.omp/rules/long.md", long.as_str()),
        ("work/.omp/RULES.md", long.as_str()),
    ]);
    place.options.templates = TemplateOptions::new(true, Dialect::OmpNow);
    let resources = place.resources();
    assert!(resources.rules().sources().next().is_none());
    assert!(resources.context_files().iter().all(|file| file.content != long));
    let notes = complaints(&resources, place.root.path());
    for name in ["long.md", "RULES.md"] {
        let about = notes.iter().filter(|note| note.contains(name));
        assert_eq!(about.count(), 1, "{notes:?}");
    }
}
