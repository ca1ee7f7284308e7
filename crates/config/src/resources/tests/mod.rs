//! Resources are tested on real directories: files in, texts out.

mod agents;
mod context;
mod omp;
mod packages;
mod prompt;
mod skills;
mod sources;
mod templates;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::resources::{ResourceOptions, Resources};
use crate::source::{ExtraPath, Scope};

/// A home directory, an agent directory and a project in a git repository of its own.
pub(crate) struct Place {
    pub(crate) root: TempDir,
    pub(crate) options: ResourceOptions,
}

impl Place {
    /// `files` are paths and contents, relative to the root; `agent/`, `home/` and `work/` are the three directories.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let root = TempDir::new().unwrap();
        let at = |name: &str| root.path().join(name);
        for directory in ["agent", "home", "work/.git"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        let options = ResourceOptions::new(&at("agent"), &at("work"), Some(&at("home")));
        let place = Self { root, options };
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn extra(&self, name: &str, scope: Scope) -> ExtraPath {
        ExtraPath {
            path: self.path(name),
            scope,
        }
    }

    pub(crate) fn resources(&self) -> Resources {
        Resources::new(self.options.clone())
    }
}

/// Complaints as text, the root left out.
pub(crate) fn complaints(resources: &Resources, root: &Path) -> Vec<String> {
    let root = format!("{}/", root.display());
    resources
        .diagnostics()
        .iter()
        .map(|d| d.to_string().replace(&root, ""))
        .collect()
}

/// The files of `get-commands` and its sister goldens.
pub(crate) const GOLDEN: [(&str, &str); 5] = [
    (
        "agent/prompts/fix.md",
        "---\ndescription: Fix a file\nargument-hint: <file>\n---\nFix $1 please. All: $@ Rest: ${@:2}\n",
    ),
    ("agent/prompts/plain.md", "Just plain text template.\n"),
    (
        "agent/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: Deploys the thing\n---\n# Deploy\nRun the deploy steps.\n",
    ),
    (
        "work/.pi/prompts/proj.md",
        "---\ndescription: Project one\n---\nProject prompt $ARGUMENTS\n",
    ),
    (
        "work/.pi/skills/lint/SKILL.md",
        "---\nname: lint\ndescription: Lints\n---\nLint it.\n",
    ),
];

#[test]
fn resource_commands_have_client_visible_form() {
    let place = Place::new(&GOLDEN);
    let commands = serde_json::to_value(place.resources().commands()).unwrap();
    let names: Vec<&str> = commands
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["proj", "fix", "plain", "skill:lint", "skill:deploy"]);
    assert_eq!(
        commands[0],
        serde_json::json!({
            "name": "proj",
            "description": "Project one",
            "source": "prompt",
            "sourceInfo": {
                "path": place.text("work/.pi/prompts/proj.md"),
                "source": "auto",
                "scope": "project",
                "origin": "top-level",
                "baseDir": place.text("work/.pi"),
            },
            "location": "project",
            "path": place.text("work/.pi/prompts/proj.md"),
        })
    );
    assert_eq!(commands[1].get("argumentHint"), None, "pi does not send it");
    assert_eq!(commands[2]["description"], "Just plain text template.");
    assert_eq!(commands[4]["source"], "skill");
    assert_eq!(commands[4]["sourceInfo"]["scope"], "user");
    assert_eq!(commands[4]["sourceInfo"]["baseDir"], place.text("agent"));
}

#[test]
fn empty_directories_give_no_resources_or_diagnostics() {
    let place = Place::new(&[]);
    let resources = place.resources();
    assert!(resources.commands().is_empty());
    assert_eq!(resources.expand("/fix it").text, "/fix it");
    assert!(resources.prompt_texts().custom.is_none() && resources.prompt_texts().append.is_none());
    assert!(resources.diagnostics().is_empty());
}

#[test]
fn project_resources_can_be_excluded() {
    let mut place = Place::new(&GOLDEN);
    place.write("work/AGENTS.md", "rules");
    place.write("work/.pi/SYSTEM.md", "own prompt");
    place.options.project = false;
    let resources = place.resources();
    let names: Vec<String> = resources.commands().into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["fix", "plain", "skill:deploy"]);
    // Context files have nothing to do with trust.
    assert_eq!(resources.context_files().len(), 1);
    assert_eq!(resources.prompt_texts().custom, None);
}

#[test]
fn resources_are_read_once() {
    let place = Place::new(&GOLDEN);
    let resources = place.resources();
    assert_eq!(resources.templates().len(), 3);
    place.write("agent/prompts/late.md", "late");
    assert_eq!(resources.templates().len(), 3);
    assert_eq!(place.resources().templates().len(), 4);
}
