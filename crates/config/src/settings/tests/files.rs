//! Reports about the files themselves, values that differ by model, and limits of an untrusted project.

use std::fs;

use serde_json::json;
use wire::ThinkingLevel;

use super::load;
use crate::settings::{CacheWarming, FileState, KeyUse, Settings, SettingsSource, meaning};
use crate::trust::{ProjectAccess, Trust};

fn uses(settings: &Settings, file: usize) -> Vec<(&str, KeyUse)> {
    let keys = settings.files[file].keys.iter();
    keys.map(|found| (found.key.as_str(), found.usage.clone()))
        .collect()
}

#[test]
fn every_settings_key_is_reported_with_its_use() {
    let text = r#"{"defaultModel": "m", "theme": "dark", "queueMode": "all", "steeringmode": "all", "zzz": {"a": 1},
        "retry": {"provider": {"maxRetryDelayMs": 1}, "maxRetrys": 2}, "compaction": {}, "$schema": "x"}"#;
    let (settings, notes) = load(text, r#"{"defaultProjectTrust": "always"}"#, None);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(
        uses(&settings, 0),
        [
            ("defaultModel", KeyUse::Used),
            ("theme", KeyUse::NoMeaning),
            ("queueMode", KeyUse::Renamed("steeringMode")),
            ("steeringmode", KeyUse::Unknown(Some("steeringMode"))),
            ("zzz", KeyUse::Unknown(None)),
            (
                "retry.provider.maxRetryDelayMs",
                meaning("retry.provider.maxRetryDelayMs")
            ),
            ("retry.maxRetrys", KeyUse::Unknown(Some("retry.maxRetries"))),
            ("compaction", KeyUse::Used),
            ("$schema", KeyUse::NoMeaning),
        ]
    );
    assert_eq!(uses(&settings, 1), [("defaultProjectTrust", KeyUse::GlobalOnly)]);
    // No key is lost.
    assert_eq!(settings.raw["zzz"], json!({"a": 1}));
}

#[test]
fn files_of_omp_are_unread_for_other_clients() {
    let root = tempfile::tempdir().unwrap();
    let agent = root.path();
    for name in ["config.yml", "models.yml", "models.json"] {
        fs::write(agent.join(name), "{}").unwrap();
    }
    let (settings, notes) = Settings::load(&SettingsSource {
        agent_dir: agent,
        cwd: &agent.join("work"),
        home: None,
        trust: &Trust::new(agent, None),
        tools: &[],
        is_omp: false,
    });
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0].path, agent.join("config.yml"));
    assert!(notes[0].message.contains("settings.json") && settings.faults.is_empty());
}

#[test]
fn project_cannot_switch_cache_warming_on() {
    let warming = r#"{"cacheWarming": "idle"}"#;
    let (settings, notes) = load("", warming, Some(true));
    assert_eq!(settings.cache_warming, CacheWarming::Off);
    assert_eq!(uses(&settings, 1), [("cacheWarming", KeyUse::GlobalOnly)]);
    assert_eq!(notes, Vec::<String>::new());
    let (settings, _) = load(warming, r#"{"cacheWarming": "off"}"#, Some(true));
    assert_eq!(settings.cache_warming, CacheWarming::Idle, "the user decides");
    let (settings, notes) = load(r#"{"cacheWarming": "always"}"#, "", None);
    assert_eq!(settings.cache_warming, CacheWarming::Off);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn settings_file_state_is_reported() {
    let states = |global: &str, project: &str, approved| {
        let (settings, _) = load(global, project, approved);
        let states: Vec<FileState> = settings.files.into_iter().map(|file| file.state).collect();
        states
    };
    assert_eq!(states("", "{}", None), [FileState::Missing, FileState::Read]);
    assert_eq!(
        states("{}", "{}", Some(false)),
        [FileState::Read, FileState::NotRead]
    );
    assert_eq!(
        states("{}", "", Some(false)),
        [FileState::Read, FileState::Missing]
    );
    let broken = states("{\n  \"a\": nope\n}", "", None);
    let FileState::Broken(why) = &broken[0] else {
        panic!("{broken:?}")
    };
    assert!(why.contains("line 2 column 9"), "{why}");
}

#[test]
fn compaction_settings_can_differ_by_model() {
    let (settings, notes) = load(
        r#"{"compaction": {"reserveTokens": 1, "keepRecentTokens": 2,
            "modelOverrides": {"p/m.1": {"reserveTokens": 10, "keepRecentTokens": 20}, "p/n": {"keepRecentTokens": 5}}}}"#,
        r#"{"compaction": {"modelOverrides": {"p/m.1": {"reserveTokens": 11.0}}}}"#,
        None,
    );
    assert_eq!(notes, Vec::<String>::new());
    let tokens = |id| settings.compaction.tokens_for("p", id);
    assert_eq!(
        (tokens("m.1"), tokens("n"), tokens("x")),
        ((Some(11), 20), (Some(1), 5), (Some(1), 2))
    );
}

#[test]
fn thinking_level_can_differ_by_model() {
    let (settings, notes) = load(
        r#"{"modelThinkingLevels": {"p/a": "low", "p/b": "high"}}"#,
        r#"{"modelThinkingLevels": {"p/a": "max", "p/b": "wild"}}"#,
        None,
    );
    assert_eq!(settings.model_thinking_level("p", "a"), Some(ThinkingLevel::Max));
    assert_eq!(settings.model_thinking_level("p", "b"), Some(ThinkingLevel::High));
    assert_eq!(settings.model_thinking_level("q", "a"), None);
    assert_eq!(
        notes,
        ["work/.pi/settings.json: \"modelThinkingLevels.p/b\" should be a thinking level; ignored"]
    );
}

#[test]
fn project_can_only_lower_limits() {
    let user = r#"{"limits": {"maxTurns": 2, "maxCost": 1.5, "maxSeconds": 60}}"#;
    let project = r#"{"limits": {"maxTurns": 100000, "maxCost": 0.5, "maxTokens": 10}}"#;
    for trusted in [None, Some(true)] {
        let (settings, notes) = load(user, project, trusted);
        assert_eq!(notes, Vec::<String>::new());
        let limits = &settings.limits;
        assert_eq!((limits.max_turns, limits.max_cost), (Some(2), Some(0.5)));
        assert_eq!((limits.max_seconds, limits.max_tokens), (Some(60), Some(10)));
    }
    for unreadable in [
        r#"{"limits": {"maxTurns": "many"}}"#,
        r#"{"limits": 5}"#,
        r#"{"limits": [{"maxTurns": 1}]}"#,
    ] {
        let (settings, notes) = load(user, unreadable, None);
        assert_eq!(settings.limits.max_turns, Some(0), "{unreadable}");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert_eq!(settings.faults.len(), 1, "{unreadable}");
    }
}

/// An agent that serves clients goes on with what can be read of such settings.
#[test]
fn unreadable_sandbox_list_keeps_its_paths() {
    for (value, paths) in [
        (json!("~/.ssh"), vec!["~/.ssh"]),
        (json!(["~/.ssh", 5]), vec!["~/.ssh"]),
        (json!(5), vec![]),
    ] {
        let text = json!({"sandbox": {"denyRead": value}}).to_string();
        let (settings, notes) = load(&text, "", None);
        assert_eq!(settings.sandbox.deny_read, paths, "{text}");
        assert_eq!((settings.faults.len(), notes.len()), (1, 1), "{text}");
    }
}

#[test]
fn package_with_unreadable_filter_is_left_out() {
    let text = r#"{"packages": [{"source": "npm:a", "extensions": false}, {"source": "npm:b", "extensions": null}, "npm:c"]}"#;
    let (settings, notes) = load(text, "", None);
    let sources: Vec<&str> = settings
        .packages
        .iter()
        .map(|spec| spec.source.as_str())
        .collect();
    assert_eq!(sources, ["npm:b", "npm:c"]);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn untrusted_project_cannot_switch_tools_on() {
    let project =
        r#"{"fetch": {"enabled": true}, "processes": {"enabled": true}, "subagents": {"enabled": true}}"#;
    let enabled = |trusted| {
        let (settings, notes) = load("", project, trusted);
        let tools = &settings.tools;
        let flags = [tools.fetch, tools.processes, tools.subagents];
        (flags, notes.len())
    };
    assert_eq!(enabled(None), ([false; 3], 3));
    assert_eq!(enabled(Some(true)), ([true; 3], 0));
}

#[test]
fn untrusted_project_cannot_loosen_user_settings() {
    let user = r#"{"defaultTools": ["read"], "images": {"blockImages": true}}"#;
    let project = r#"{"defaultTools": ["bash"], "images": {"blockImages": false, "autoResize": false}}"#;
    let (settings, notes) = load(user, project, None);
    assert_eq!(settings.tools.default.unwrap(), ["read"]);
    assert!(settings.images.block_images && !settings.images.auto_resize);
    assert_eq!(notes.len(), 2, "{notes:?}");
    let uses: Vec<_> = settings.files[1].keys.iter().map(|found| &found.usage).collect();
    assert_eq!(uses, [&KeyUse::Untrusted, &KeyUse::Untrusted, &KeyUse::Used]);
    // Tightening is open to everybody, and nothing is said where nothing changes.
    let (settings, notes) = load("", r#"{"images": {"blockImages": true}}"#, None);
    assert!(settings.images.block_images);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(
        load("", r#"{"images": {"blockImages": false}}"#, None).1,
        Vec::<String>::new()
    );

    let (settings, notes) = load(user, project, Some(true));
    assert_eq!(settings.project, ProjectAccess::Full);
    assert_eq!(settings.tools.default.unwrap(), ["bash"]);
    assert!(!settings.images.block_images && notes.is_empty());
}

#[test]
fn untrusted_project_reads_only_own_resource_paths() {
    let project =
        r#"{"skills": ["mine", "../also", "../../else", "~/x", "/etc"], "prompts": ["./p", "+../../../q"]}"#;
    let paths = |settings: &Settings| {
        let all = settings.skills.iter().chain(&settings.prompts);
        all.map(|extra| extra.path.display().to_string())
            .collect::<Vec<_>>()
    };
    let (settings, notes) = load("", project, None);
    assert_eq!(paths(&settings), ["work/.pi/mine", "work/also", "work/.pi/p"]);
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert!(
        notes[0].contains("\"skills\": ../../else is left out"),
        "{notes:?}"
    );
    let (settings, notes) = load("", project, Some(true));
    assert_eq!(paths(&settings).len(), 6);
    assert!(notes.is_empty());
    // The user's own paths go anywhere.
    assert_eq!(load(r#"{"skills": ["/etc"]}"#, "", None).0.skills.len(), 1);
}

#[test]
fn arbitrary_settings_values_never_panic() {
    let odd = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}"),
        json!([null]),
        json!([[]]),
        json!({}),
        json!({"": {"": null}}),
    ];
    let keys = [
        "defaultModel",
        "modelThinkingLevels",
        "thinkingBudgets",
        "compaction",
        "retry",
        "skills",
        "images",
        "httpIdleTimeoutMs",
        "queueMode",
        "websockets",
        "defaultProjectTrust",
        "",
        "..",
        "a.b",
    ];
    for value in &odd {
        let nested =
            json!({"provider": value, "modelOverrides": value, "maxDelayMs": value, "blockImages": value});
        for value in [value, &nested] {
            let file: serde_json::Map<_, _> = keys
                .map(|key| (key.to_owned(), value.clone()))
                .into_iter()
                .collect();
            let text = json!(file).to_string();
            let (settings, _) = load(&text, &text, None);
            assert_eq!(settings.files.len(), 2, "{text}");
        }
    }
}

#[test]
fn settings_syntax_errors_name_line_and_column() {
    for (text, expected) in [
        (
            "{\n  \"a\": 1\n  \"b\": 2}",
            "agent/settings.json:3:3: settings are not valid JSON",
        ),
        (
            "// \"sandbox\": 1\n{\"theme\": {\"sandbox\": 1}, \"sandbox\": {\"network\": true, \"mode\": 5,}}",
            "agent/settings.json:2:64: \"sandbox.mode\" should be",
        ),
        (
            "{\"defaultTools\": [\"a\\\"}\", 1]}",
            "agent/settings.json:1:18: \"defaultTools\" should be",
        ),
        (
            "{\"hooks\": \"x\"}",
            "agent/settings.json:1:11: \"hooks\" should be a list",
        ),
        ("[1]", "agent/settings.json:1:1: settings are not a JSON object"),
    ] {
        let (settings, _) = load(text, "", None);
        assert_eq!(settings.faults.len(), 1, "{text}");
        assert!(settings.faults[0].contains(expected), "{:?}", settings.faults);
    }
    // Values that protect nothing, and what a project may not say, stop nothing.
    let (settings, notes) = load(
        "{\"theme\": 5, \"defaultModel\": 5}",
        "{\"permissions\": {\"allow\": [\"bash\"]}}",
        None,
    );
    assert_eq!((settings.faults.len(), notes.len()), (0, 2));
}
