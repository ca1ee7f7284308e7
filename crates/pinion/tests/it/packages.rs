//! Packages: what they bring shows in `get_commands`, goes to the model and runs; those of a project only when it is trusted.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::can_run;
use crate::kit::{Pi, World};

fn put(world: &World, at: &str, name: &str) {
    let files = [
        (
            format!("{at}/package.json"),
            json!({"name": name, "pi": {"extensions": ["./x.js"]}}).to_string(),
        ),
        (
            format!("{at}/x.js"),
            format!(
                "module.exports = (pi) => pi.registerCommand('{name}-do', {{ handler: async () => {{}} }});"
            ),
        ),
        (
            format!("{at}/skills/{name}/SKILL.md"),
            format!("---\nname: {name}\ndescription: Knows {name}\n---\nSteps"),
        ),
        (format!("{at}/prompts/{name}-ask.md"), format!("Ask {name}: $@")),
    ];
    for (path, text) in files {
        let path = world.dir.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn names(pi: &Pi) -> Vec<String> {
    let commands: Value = pi.get("get_commands")["commands"].clone();
    let names = commands.as_array().unwrap().iter();
    let mut names: Vec<String> = names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn packages_of_user_project_and_command_line_load() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["ok"])]);
    let agent = world.dir.agent_dir();
    let below = |path: std::path::PathBuf| {
        let root = world.dir.root();
        path.strip_prefix(root).unwrap().display().to_string()
    };
    put(
        &world,
        &format!("{}/npm/node_modules/mine", below(agent.clone())),
        "mine",
    );
    put(&world, &format!("{}/theirs", below(world.dir.cwd())), "theirs");
    put(&world, "given", "given");
    world.settings(json!({"packages": ["npm:mine@1", {"source": "npm:missing"}]}));
    world
        .dir
        .write(
            ".pi/settings.json",
            json!({"packages": ["../theirs"]}).to_string(),
        )
        .unwrap();
    let pi = world.start();
    assert_eq!(names(&pi), ["mine-ask", "mine-do", "skill:mine"]);
    let state = pi.state()["projectTrust"].clone();
    assert_eq!(state["heldBack"][0]["keys"], json!(["packages"]));
    pi.say("/mine-ask a b");
    let request = world.server.requests()[0].body.to_string();
    assert!(
        request.contains("Ask mine: a b") && request.contains("Knows mine"),
        "{request}"
    );
    pi.finish();
    let given = world.dir.root().join("given").display().to_string();
    let pi = world.start_with(&["--approve", "-e", &given]);
    let all: Vec<String> = ["given", "mine", "theirs"]
        .iter()
        .flat_map(|name| [format!("{name}-ask"), format!("{name}-do")])
        .chain(["given", "mine", "theirs"].map(|name| format!("skill:{name}")))
        .collect();
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(names(&pi), sorted);
    pi.finish();
    // Only what the command line names.
    let pi = world.start_with(&["-ne", "-ns", "-np", "-e", &given]);
    assert_eq!(names(&pi), ["given-ask", "given-do", "skill:given"]);
    pi.finish();
    let done = world.run(&["doctor", "--json"], "");
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let problems = report["problems"].to_string();
    assert!(
        problems.contains("package npm:missing is not installed"),
        "{problems}"
    );
}

#[test]
fn extension_disabled_in_settings_is_not_loaded() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    for name in ["on", "off"] {
        let text = format!(
            "module.exports = (pi) => pi.registerCommand('{name}', {{ handler: async () => {{}} }});"
        );
        let path = world
            .dir
            .agent_dir()
            .join("extensions")
            .join(format!("{name}.js"));
        world.dir.write(path, text).unwrap();
    }
    world.settings(json!({"extensions": ["-extensions/off.js"]}));
    let pi = world.start();
    assert_eq!(names(&pi), ["on"]);
    pi.finish();
}
