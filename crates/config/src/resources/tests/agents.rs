//! Agents from Markdown files.

use std::fs;

use tempfile::tempdir;
use wire::ThinkingLevel;

use crate::resources::{ResourceOptions, agent_definitions};
use crate::source::Scope;

#[test]
fn agents_of_project_come_first() {
    let dir = tempdir().unwrap();
    let (home, project) = (dir.path().join("agent"), dir.path().join("project"));
    for (place, text) in [
        (
            home.join("agents"),
            "---\ndescription: the user's\ntools: read, grep\n---\nLook.",
        ),
        (
            project.join(".pi/agents"),
            "---\ndescription: the project's\nmodel: inherit\n---\n",
        ),
    ] {
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("reviewer.md"), text).unwrap();
    }
    let full = "---\nname: scout\ndescription: finds things\ntools: [read, find]\nmodel: p/m\nthinking: low\nmaxTurns: 5\n---\nFind it.";
    fs::write(home.join("agents/a.md"), full).unwrap();
    let mut options = ResourceOptions::new(&home, &project, None);
    let (agents, notes) = agent_definitions(&options);
    let names: Vec<_> = agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.scope))
        .collect();
    assert_eq!(names, [("reviewer", Scope::Project), ("scout", Scope::User)]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!((&agents[0].tools, &agents[0].model), (&None, &None));
    let scout = &agents[1];
    assert_eq!(
        scout.tools.as_deref(),
        Some(["read", "find"].map(str::to_owned).as_slice())
    );
    assert_eq!(
        (scout.model.as_deref(), scout.thinking),
        (Some("p/m"), Some(ThinkingLevel::Low))
    );
    assert_eq!((scout.max_turns, scout.prompt.as_str()), (Some(5), "Find it."));

    options.project = false;
    let (agents, _) = agent_definitions(&options);
    let reviewer = agents.iter().find(|agent| agent.name == "reviewer").unwrap();
    assert_eq!(reviewer.description, "the user's");
    assert_eq!(
        reviewer.tools.as_deref(),
        Some(["read", "grep"].map(str::to_owned).as_slice())
    );
}

#[test]
fn agents_with_mistakes_are_left_out() {
    let dir = tempdir().unwrap();
    let agents = dir.path().join("agents");
    fs::create_dir_all(&agents).unwrap();
    for (name, text) in [
        ("a", "no front matter"),
        ("b", "---\ndescription: x\nmaxTurns: many\n---\n"),
        ("c", "---\ndescription: x\nthinking: deep\n---\n"),
        ("d", "---\ndescription: [\n---\n"),
        ("e", "---\ndescription: fine\ntools:\n---\n"),
    ] {
        fs::write(agents.join(format!("{name}.md")), text).unwrap();
    }
    let options = ResourceOptions::new(dir.path(), dir.path(), None);
    let (found, notes) = agent_definitions(&options);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].tools,
        Some(Vec::new()),
        "an empty list of tools is no tools"
    );
    assert_eq!(notes.len(), 4, "{notes:?}");
}
