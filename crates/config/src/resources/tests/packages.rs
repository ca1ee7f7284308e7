//! Packages: where they are looked for, and what they bring.

use serde_json::{Value, json};

use super::Place;
use crate::resources::kind::Kind;
use crate::resources::{Changes, PackageSpec};
use crate::source::Scope;

/// Puts a package among those of the options; gives its complaint.
fn add(place: &mut Place, entry: &Value, scope: Scope) -> Option<String> {
    let base = match scope {
        Scope::Project => place.path("work/.pi"),
        _ => place.path("agent"),
    };
    let spec = PackageSpec::parse(entry, scope, &base).unwrap();
    let (agent, work) = (place.path("agent"), place.path("work"));
    match spec.find(&agent, &work, Some(&place.path("home"))) {
        Ok(package) => {
            place.options.packages.push(package);
            None
        }
        Err(problem) => Some(problem.to_string()),
    }
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n---\nx")
}

#[test]
fn package_without_manifest_uses_default_directories() {
    let mut place = Place::new(&[
        ("home/tools/skills/deep/SKILL.md", &skill("deep")),
        ("home/tools/prompts/hello.md", "Hello $1"),
        ("home/tools/prompts/more/deep.md", "x"),
        ("home/tools/prompts/.hidden.md", "x"),
        ("home/tools/extensions/x.ts", ""),
        ("agent/prompts/hello.md", "Mine"),
    ]);
    assert_eq!(add(&mut place, &json!("~/tools"), Scope::User), None);
    let commands = serde_json::to_value(place.resources().commands()).unwrap();
    assert_eq!(commands[0]["description"], "Mine", "the user's own comes first");
    assert_eq!(commands[1]["name"], "deep");
    assert_eq!(commands[2]["name"], "skill:deep");
    assert_eq!(
        commands[2]["sourceInfo"],
        json!({
            "path": place.text("home/tools/skills/deep/SKILL.md"), "source": "~/tools", "scope": "user",
            "origin": "package", "baseDir": place.text("home/tools"),
        })
    );
    assert_eq!(commands.as_array().unwrap().len(), 3);
    let package = &place.options.packages[0];
    assert_eq!(
        package.paths(Kind::Extensions),
        [place.path("home/tools/extensions/x.ts")]
    );
    // Packages of the command line come before everything.
    place.options.packages[0].scope = Scope::Temporary;
    place.options.skills = false;
    place.options.templates.load = false;
    let names: Vec<String> = place.resources().commands().into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["hello", "deep", "skill:deep"]);
}

#[test]
fn extensions_directory_with_index_is_one_extension() {
    let mut place = Place::new(&[
        ("home/tools/extensions/index.ts", ""),
        ("home/tools/extensions/helper.ts", ""),
    ]);
    assert_eq!(add(&mut place, &json!("~/tools"), Scope::User), None);
    let package = &place.options.packages[0];
    assert_eq!(
        package.paths(Kind::Extensions),
        [place.path("home/tools/extensions/index.ts")]
    );
}

#[test]
fn manifest_lists_resources_and_settings_entry_filters_them() {
    let manifest = json!({"pi": {"extensions": ["./src/one.ts", "src/two.ts"], "skills": ["./res/skills", "../outside"],
                                 "prompts": ["./res/*.md", "!res/draft.md"]}});
    let mut place = Place::new(&[
        ("work/pack/package.json", &manifest.to_string()),
        ("work/pack/src/one.ts", ""),
        ("work/pack/src/two.ts", ""),
        ("work/pack/res/skills/a/SKILL.md", &skill("a")),
        ("work/pack/res/skills/b/SKILL.md", &skill("b")),
        ("work/pack/res/review.md", "Review"),
        ("work/pack/res/draft.md", "Draft"),
        ("work/pack/res/deep/not.md", "x"),
        ("work/pack/prompts/ignored.md", "x"),
        ("work/outside/c/SKILL.md", &skill("c")),
    ]);
    let short = |place: &Place, kind: Kind| -> Vec<String> {
        let package = place.options.packages.last().unwrap();
        let paths = package.paths(kind).into_iter();
        let root = place.path("work/pack");
        paths
            .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
            .collect()
    };
    assert_eq!(add(&mut place, &json!("../pack"), Scope::Project), None);
    assert_eq!(short(&place, Kind::Extensions), ["src/one.ts", "src/two.ts"]);
    assert_eq!(short(&place, Kind::Skills), ["res/skills"]);
    assert_eq!(short(&place, Kind::Prompts), ["res/review.md"]);
    let wanted = json!({"source": "../pack", "extensions": ["src/*.ts", "!src/one.ts"], "skills": ["-res/skills/a"], "prompts": []});
    add(&mut place, &wanted, Scope::Project);
    assert_eq!(short(&place, Kind::Extensions), ["src/two.ts"]);
    assert_eq!(short(&place, Kind::Skills), ["res/skills/b/SKILL.md"]);
    assert!(short(&place, Kind::Prompts).is_empty());
}

/// What `pi config` writes into a project that switches single resources of the user's packages.
#[test]
fn package_without_autoload_brings_named_files_only() {
    let mut place = Place::new(&[
        ("agent/pack/extensions/one.ts", ""),
        ("agent/pack/extensions/two.ts", ""),
        ("agent/pack/prompts/hello.md", "x"),
    ]);
    let alone = json!({"source": "./pack", "autoload": false, "extensions": ["+extensions/one.ts"]});
    assert_eq!(add(&mut place, &alone, Scope::User), None);
    let one = place.path("agent/pack/extensions/one.ts");
    let two = place.path("agent/pack/extensions/two.ts");
    let package = &place.options.packages[0];
    assert_eq!(package.paths(Kind::Extensions), [one]);
    assert!(package.paths(Kind::Prompts).is_empty());
    let base = place.path("agent");
    let entry = json!({"source": "./pack", "extensions": ["-extensions/two.ts"]});
    let mut spec = PackageSpec::parse(&entry, Scope::User, &base).unwrap();
    let changes = ["-extensions/one.ts", "+extensions/two.ts"].map(str::to_owned);
    spec.over = vec![(Kind::Extensions, changes.to_vec())];
    let package = spec.find(&base, &place.path("work"), None).unwrap();
    assert_eq!(package.paths(Kind::Extensions), [two]);
    assert_eq!(package.paths(Kind::Prompts), [place.path("agent/pack/prompts")]);
}

#[test]
fn packages_installed_by_pi_are_found_others_reported() {
    let mut place = Place::new(&[
        ("agent/npm/node_modules/@s/tools/prompts/npm.md", "x"),
        ("agent/git/github.com/me/tools/prompts/git.md", "x"),
        ("work/.pi/npm/node_modules/plain/prompts/project.md", "x"),
    ]);
    for source in [
        "npm:@s/tools",
        "npm:@s/tools@1.2.3",
        "git:github.com/me/tools@v1",
        "https://github.com/me/tools.git",
        "git@github.com:me/tools",
        "git:git@github.com:me/tools.git",
        "ssh://git@github.com/me/tools",
    ] {
        assert_eq!(add(&mut place, &json!(source), Scope::User), None, "{source}");
    }
    assert_eq!(add(&mut place, &json!("npm:plain@^2"), Scope::Project), None);
    let names: Vec<String> = place.resources().commands().into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["npm", "git", "project"]);
    let problem = add(&mut place, &json!("npm:plain"), Scope::User).unwrap();
    assert!(
        problem.contains("package npm:plain is not installed"),
        "{problem}"
    );
    let problem = add(&mut place, &json!("./gone"), Scope::User).unwrap();
    assert!(problem.contains("package ./gone is not there"), "{problem}");
    // A name does not lead out of the directory of packages.
    for source in ["npm:../../../work", "npm:", "git:..@x", "git:a/../../b"] {
        let spec = PackageSpec::parse(&json!(source), Scope::User, &place.path("agent"));
        let found = spec
            .unwrap()
            .find(&place.path("agent"), &place.path("work"), None);
        assert!(found.is_err(), "{source} {found:?}");
    }
}

#[test]
fn named_package_is_found_where_it_was_installed() {
    let place = Place::new(&[
        ("agent/npm/node_modules/both/prompts/user.md", "x"),
        (
            "agent/tmp/extensions/npm+3aboth+402/npm/node_modules/both/prompts/two.md",
            "x",
        ),
        ("agent/npm/node_modules/@s/mine/prompts/mine.md", "x"),
        (
            "agent/npm/node_modules/both/package.json",
            r#"{"version": "1.0.0"}"#,
        ),
        ("agent/git/h.org/a/b/prompts/b.md", "x"),
    ]);
    let (agent, cwd) = (place.path("agent"), place.path("work"));
    let found = |source: &str| {
        let spec = PackageSpec::of_flag(source, &cwd.join(source)).unwrap();
        let found = spec.find(&agent, &cwd, None);
        found
            .map(|package| package.root)
            .map_err(|problem| problem.message)
    };
    let temporary = agent.join("tmp/extensions/npm+3aboth+402/npm/node_modules/both");
    assert_eq!(found("npm:both@2"), Ok(temporary));
    assert_eq!(found("npm:both"), Ok(agent.join("npm/node_modules/both")));
    assert_eq!(found("npm:@s/mine"), Ok(agent.join("npm/node_modules/@s/mine")));
    // The packages of the user count only if they are the wanted version.
    assert_eq!(found("npm:both@1.0.0"), Ok(agent.join("npm/node_modules/both")));
    assert_eq!(found("git:h.org/a/b"), Ok(agent.join("git/h.org/a/b")));
    for source in ["npm:both@3.0.0", "npm:both@^1", "git:h.org/a/b@v2"] {
        let other = "is not installed, and the installed package of the user may be another version. \
                     Start again with network access";
        assert_eq!(found(source), Err(format!("package {source} {other}")));
    }
    let missing = "package npm:gone is not installed. Run: pinion install npm:gone";
    assert_eq!(found("npm:gone"), Err(missing.to_owned()));
    let secret = "package git:h.org/a/c is not installed: its address contains a password";
    assert_eq!(found("git:https://me:word@h.org/a/c"), Err(secret.to_owned()));
}

#[test]
fn settings_disable_single_package_resources() {
    let mut place = Place::new(&[
        ("agent/skills/a/SKILL.md", &skill("a")),
        ("agent/skills/b/SKILL.md", &skill("b")),
        ("agent/prompts/one.md", "x"),
        ("agent/prompts/old-two.md", "x"),
        ("agent/prompts/old-three.md", "x"),
        ("work/.pi/prompts/old-four.md", "x"),
    ]);
    let agent = place.path("agent");
    let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    let skills = list(&["-skills/a", "extra"]);
    let absolute = format!("+{}", place.text("agent/prompts/old-three.md"));
    let prompts = list(&["!old-*", &absolute]);
    let changes = [
        Changes::of(Kind::Skills, Scope::User, &agent, &skills),
        Changes::of(Kind::Prompts, Scope::User, &agent, &prompts),
    ];
    assert!(Changes::of(Kind::Prompts, Scope::User, &agent, &list(&["only/paths"])).is_none());
    place.options.changes = changes.into_iter().flatten().collect();
    let names: Vec<String> = place.resources().commands().into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["old-four", "old-three", "one", "skill:b"]);
}
