//! Settings: files in, typed values and complaints out.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use wire::ThinkingLevel;
use wire::state::{InterruptMode, QueueMode};

use super::{ProjectAccess, Settings, SettingsSource, jsonc};
use crate::source::Scope;

mod edit;
mod files;
mod omp;
mod table;

/// Loads a global and a project file; complaints come without the directory.
fn load(global: &str, project: &str, approved: Option<bool>) -> (Settings, Vec<String>) {
    let root = TempDir::new().unwrap();
    let (agent, cwd) = (root.path().join("agent"), root.path().join("work"));
    fs::create_dir_all(&agent).unwrap();
    fs::create_dir_all(cwd.join(".pi")).unwrap();
    for (path, text) in [
        (agent.join("settings.json"), global),
        (cwd.join(".pi/settings.json"), project),
    ] {
        if !text.is_empty() {
            fs::write(path, text).unwrap();
        }
    }
    let home = root.path().join("home");
    let source = SettingsSource {
        agent_dir: &agent,
        cwd: &cwd,
        home: Some(&home),
        trust: &crate::trust::Trust::new(&agent, approved),
        tools: &["bash"],
        is_omp: false,
    };
    let (mut settings, notes) = Settings::load(&source);
    for list in [
        &mut settings.skills,
        &mut settings.prompts,
        &mut settings.extensions,
    ] {
        for extra in list {
            extra.path = extra
                .path
                .strip_prefix(root.path())
                .map_or(extra.path.clone(), Into::into);
        }
    }
    let prefix = format!("{}/", root.path().display());
    (
        settings,
        notes
            .iter()
            .map(|note| note.to_string().replace(&prefix, ""))
            .collect(),
    )
}

fn global(value: &Value) -> (Settings, Vec<String>) {
    load(&value.to_string(), "", None)
}

#[test]
fn empty_settings_give_defaults() {
    let (settings, notes) = load("", "", None);
    assert!(notes.is_empty());
    assert_eq!(settings.queues.steering_mode, QueueMode::OneAtATime);
    assert_eq!(settings.queues.interrupt_mode, InterruptMode::Wait);
    let compaction = &settings.compaction;
    assert!(compaction.enabled);
    assert_eq!(
        (compaction.reserve_tokens, compaction.keep_recent_tokens),
        (None, 20_000)
    );
    let retry = &settings.retry;
    assert_eq!(
        (retry.enabled, retry.max_retries, retry.base_delay_ms),
        (true, 3, 2_000)
    );
    assert_eq!(retry.provider.max_retry_delay_ms, 60_000);
    assert_eq!(
        (retry.provider.timeout_ms, retry.provider.max_retries),
        (None, None)
    );
    assert!(settings.images.auto_resize && !settings.images.block_images);
    assert_eq!(settings.http_idle_timeout_ms, Some(300_000));
    assert_eq!(
        (settings.default_model, settings.default_thinking_level),
        (None, None)
    );
    assert_eq!(settings.project, ProjectAccess::Data);
    assert!(settings.raw.is_empty());
}

#[test]
fn every_settings_key_takes_effect() {
    let (settings, notes) = global(&json!({
        "defaultProvider": "p", "defaultModel": "m", "defaultThinkingLevel": "high",
        "modelThinkingLevels": {"p/m.1": "low"}, "thinkingBudgets": {"low": 1, "high": 2.0},
        "steeringMode": "all", "followUpMode": "all", "interruptMode": "immediate",
        "compaction": {"enabled": false, "reserveTokens": 1, "keepRecentTokens": 2},
        "branchSummary": {"reserveTokens": 3, "skipPrompt": true},
        "retry": {"enabled": false, "maxRetries": 4, "baseDelayMs": 5, "maxAgentDelayMs": 6,
                  "provider": {"timeoutMs": 7, "maxRetries": 0, "maxRetryDelayMs": 8}},
        "shellPath": "/bin/zsh", "shellCommandPrefix": "set -e", "images": {"autoResize": false, "blockImages": true},
        "enabledModels": ["a", "b"], "defaultTools": ["+grep"], "sessionDir": "~/s", "httpProxy": "http://x",
        "httpIdleTimeoutMs": 9, "theme": "dark", "unknown": {"deep": 1},
    }));
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(settings.default_provider.as_deref(), Some("p"));
    assert_eq!(settings.default_thinking_level, Some(ThinkingLevel::High));
    assert_eq!(settings.model_thinking_levels["p/m.1"], ThinkingLevel::Low);
    let budgets: Vec<_> = settings.thinking_budgets.into_iter().collect();
    assert_eq!(budgets, [(ThinkingLevel::Low, 1), (ThinkingLevel::High, 2)]);
    assert_eq!(
        (settings.queues.steering_mode, settings.queues.follow_up_mode),
        (QueueMode::All, QueueMode::All)
    );
    assert_eq!(settings.queues.interrupt_mode, InterruptMode::Immediate);
    assert_eq!(
        (
            settings.compaction.enabled,
            settings.compaction.keep_recent_tokens
        ),
        (false, 2)
    );
    assert_eq!(
        (
            settings.branch_summary.reserve_tokens,
            settings.branch_summary.skip_prompt
        ),
        (3, true)
    );
    assert_eq!(
        (settings.retry.max_retries, settings.retry.max_agent_delay_ms),
        (4, Some(6))
    );
    let provider = settings.retry.provider;
    assert_eq!(
        (
            provider.timeout_ms,
            provider.max_retries,
            provider.max_retry_delay_ms
        ),
        (Some(7), Some(0), 8)
    );
    assert_eq!(settings.shell.path.as_deref(), Some("/bin/zsh"));
    assert_eq!(settings.enabled_models.unwrap(), ["a", "b"]);
    assert_eq!(settings.tools.default.unwrap(), ["+grep"]);
    assert_eq!(settings.session_dir.as_deref(), Some("~/s"));
    assert_eq!(settings.http_idle_timeout_ms, Some(9));
    assert_eq!(settings.raw["unknown"]["deep"], 1);
}

#[test]
fn project_settings_merge_at_every_depth() {
    let (settings, notes) = load(
        r#"{"retry": {"maxRetries": 9, "provider": {"timeoutMs": 1, "maxRetries": 2}}, "enabledModels": ["a"]}"#,
        r#"{"retry": {"provider": {"maxRetries": 5}}, "enabledModels": ["b"], "defaultModel": null}"#,
        None,
    );
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(settings.retry.max_retries, 9);
    assert_eq!(
        (
            settings.retry.provider.timeout_ms,
            settings.retry.provider.max_retries
        ),
        (Some(1), Some(5))
    );
    assert_eq!(settings.enabled_models.unwrap(), ["b"]);
    assert_eq!(
        settings.raw["retry"],
        json!({"maxRetries": 9, "provider": {"timeoutMs": 1, "maxRetries": 5}})
    );
}

/// pi 1.5.2: changes of a project apply to the tools of the user.
#[test]
fn default_tools_of_project_change_those_of_user() {
    let merged = |user: &str, project: &str| {
        let file = |list: &str| match list {
            "" => String::new(),
            list => format!("{{\"defaultTools\": {list}}}"),
        };
        let (settings, notes) = load(&file(user), &file(project), Some(true));
        assert_eq!(notes, Vec::<String>::new());
        settings.tools.default.map(|list| list.join(","))
    };
    let merged = |user: &str, project: &str| merged(user, project).unwrap_or_else(|| "none".to_owned());
    assert_eq!(merged("", ""), "none");
    assert_eq!(merged("", r#"["+grep"]"#), "+grep");
    assert_eq!(merged(r#"["read"]"#, r#"["+grep"]"#), "read,+grep");
    assert_eq!(merged(r#"["-bash"]"#, r#"["+grep"]"#), "-bash,+grep");
    assert_eq!(merged(r#"["read"]"#, r#"["ls", "+grep"]"#), "ls,+grep");
    assert_eq!(merged(r#"["read"]"#, "[]"), "read");
    assert_eq!(merged("[]", r#"["+grep", "-bash"]"#), "-*,+grep,-bash");
}

/// What `pi config` writes for the extension of pi that brings MCP servers.
#[test]
fn extensions_can_disable_mcp() {
    let mcp = |user: &str, project: &str| load(user, project, Some(true)).0.tools.mcp;
    let (off, on) = (
        r#"{"extensions": ["-builtin:mcp"]}"#,
        r#"{"extensions": ["x.ts", "+builtin:mcp"]}"#,
    );
    assert!(mcp("", "") && mcp(on, ""));
    assert!(!mcp(off, "") && !mcp(off, r#"{"extensions": ["x.ts"]}"#));
    assert!(!mcp(r#"{"extensions": ["!builtin:*"]}"#, ""));
    assert!(mcp(off, on) && !mcp(on, off));
}

/// pi 1.5.2: packages are the same without version; `autoload: false` changes the entry of the user.
#[test]
fn package_of_project_replaces_or_changes_that_of_user() {
    let user = r#"{"packages": ["npm:a", {"source": "npm:b", "skills": []}, "npm:c"]}"#;
    let project = r#"{"packages": ["npm:a@1.0.0", {"source": "npm:b@2", "autoload": false, "extensions": ["-extensions/x.ts"]}]}"#;
    let (settings, notes) = load(user, project, Some(true));
    assert_eq!(notes, Vec::<String>::new());
    let packages = settings.packages.iter();
    let found: Vec<_> = packages.map(|one| (one.source.as_str(), one.scope)).collect();
    assert_eq!(
        found,
        [
            ("npm:a@1.0.0", Scope::Project),
            ("npm:b", Scope::User),
            ("npm:c", Scope::User)
        ]
    );
    let changed = &settings.packages[1];
    assert_eq!(changed.over.len(), 1);
    assert_eq!(changed.over[0].1, ["-extensions/x.ts"]);
    assert_eq!((changed.only.len(), changed.autoload), (1, true));
}

#[test]
fn broken_settings_are_reported_and_replaced_by_defaults() {
    let (settings, notes) = load("{ not json", "[1]", None);
    assert_eq!(notes.len(), 2);
    assert!(
        notes[0].starts_with("agent/settings.json: settings are not valid JSON:"),
        "{}",
        notes[0]
    );
    assert!(notes[0].contains("line 1 column 3"));
    assert_eq!(
        notes[1],
        "work/.pi/settings.json: settings are not a JSON object; using defaults"
    );
    assert_eq!(settings.retry.max_retries, 3);
    // The other file still counts.
    let (settings, _) = load(r#"{"defaultModel": "m"}"#, "{", None);
    assert_eq!(settings.default_model.as_deref(), Some("m"));
}

#[test]
fn wrong_types_are_reported_and_fall_back() {
    let table = [
        json!({"defaultModel": 5}),
        json!({"defaultThinkingLevel": "huge"}),
        json!({"steeringMode": "some"}),
        json!({"compaction": {"enabled": "yes"}}),
        json!({"compaction": {"reserveTokens": -1}}),
        json!({"compaction": {"reserveTokens": 1.5}}),
        json!({"compaction": true}),
        json!({"retry": {"provider": []}}),
        json!({"retry": {"maxRetries": 5_000_000_000_u64}}),
        json!({"enabledModels": ["a", 1]}),
        json!({"skills": "x"}),
        json!({"httpIdleTimeoutMs": "soon"}),
        json!({"thinkingBudgets": {"low": "much"}}),
        json!({"defaultProjectTrust": "maybe"}),
        json!({"modelThinkingLevels": {"p/m": "huge"}}),
        json!({"modelThinkingLevels": ["high"]}),
        json!({"compaction": {"modelOverrides": {"p/m": 5}}}),
        json!({"compaction": {"modelOverrides": {"p/m": {"reserveTokens": -1}}}}),
        json!({"compaction": {"modelOverrides": true}}),
    ];
    let (mut defaults, _) = load("", "", None);
    defaults.files.clear();
    for file in table {
        let (mut settings, notes) = global(&file);
        assert_eq!(notes.len(), 1, "{file}: {notes:?}");
        settings.raw.clear();
        settings.faults.clear();
        settings.files.clear();
        assert_eq!(format!("{settings:?}"), format!("{defaults:?}"), "{file}");
    }
    let (settings, notes) = load(r#"{"defaultModel": "m"}"#, r#"{"defaultModel": 5}"#, None);
    assert_eq!(settings.default_model.as_deref(), Some("m"));
    assert_eq!(
        notes,
        ["work/.pi/settings.json: \"defaultModel\" should be a text; ignored"]
    );
}

#[test]
fn old_settings_names_still_work() {
    let (settings, notes) = global(&json!({
        "queueMode": "all", "retry": {"maxDelayMs": 7},
        "skills": {"enableSkillCommands": true, "customDirectories": ["s"]}, "websockets": true,
    }));
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(settings.queues.steering_mode, QueueMode::All);
    assert_eq!(settings.retry.provider.max_retry_delay_ms, 7);
    assert_eq!(settings.skills[0].path.display().to_string(), "agent/s");
    assert_eq!(settings.raw["transport"], "websocket");
    assert_eq!(settings.raw["enableSkillCommands"], true);
    let old = ["queueMode", "websockets"];
    assert!(old.iter().all(|key| !settings.raw.contains_key(*key)));
    assert_eq!(settings.raw["retry"], json!({"provider": {"maxRetryDelayMs": 7}}));
    // Today's name wins over yesterday's.
    let (settings, _) = global(&json!({"queueMode": "all", "steeringMode": "one-at-a-time"}));
    assert_eq!(settings.queues.steering_mode, QueueMode::OneAtATime);
    let (settings, _) = global(&json!({"websockets": true, "transport": "auto"}));
    assert_eq!(settings.raw["transport"], "auto");
}

#[test]
fn provider_timeout_of_zero_counts_as_absent() {
    let timeout = |ms: u64| {
        let keys = json!({"retry": {"provider": {"timeoutMs": ms}}});
        global(&keys).0.retry.provider.timeout_ms
    };
    assert_eq!((timeout(0), timeout(5)), (None, Some(5)));
}

#[test]
fn idle_timeout_can_be_disabled() {
    for off in [json!(0), json!("disabled")] {
        assert_eq!(
            global(&json!({"httpIdleTimeoutMs": off})).0.http_idle_timeout_ms,
            None
        );
    }
}

#[test]
fn local_servers_have_their_own_idle_timeout() {
    let idle = |keys: Value| global(&keys).0.local_servers.idle_timeout_ms;
    assert_eq!(idle(json!({})), Some(1_800_000));
    assert_eq!(idle(json!({"httpIdleTimeoutMs": 9})), Some(9));
    assert_eq!(idle(json!({"httpIdleTimeoutMs": 0})), None);
    let both = |own: Value| json!({"httpIdleTimeoutMs": 9, "localServers": {"idleTimeoutMs": own}});
    assert_eq!(idle(both(json!(8))), Some(8));
    assert_eq!(idle(both(json!("disabled"))), None);
}

#[test]
fn bash_timeout_of_zero_means_none() {
    let timeout = |ms: u64| global(&json!({"bashTimeoutMs": ms})).0.shell.timeout_ms;
    assert_eq!((timeout(0), timeout(1500)), (None, Some(1500)));
}

#[test]
fn resource_paths_resolve_against_their_file() {
    let (settings, _) = load(
        r#"{"skills": ["mine", "!not", "-a", "+b"], "prompts": ["~/p", "/abs/../x"]}"#,
        r#"{"skills": ["../ours"]}"#,
        None,
    );
    let skills: Vec<_> = settings
        .skills
        .iter()
        .map(|e| (e.path.display().to_string(), e.scope))
        .collect();
    assert_eq!(
        skills,
        [
            ("work/ours".to_owned(), Scope::Project),
            ("agent/mine".to_owned(), Scope::User)
        ]
    );
    let prompts: Vec<_> = settings
        .prompts
        .iter()
        .map(|e| e.path.display().to_string())
        .collect();
    assert_eq!(prompts, ["home/p", "/x"]);
}

#[test]
fn untrusted_project_cannot_run_code() {
    let project = r#"{"shellPath": "./evil", "shellCommandPrefix": "evil;", "extensions": ["e.ts"], "httpProxy": "http://evil",
                      "sessionDir": "/evil", "defaultProjectTrust": "always", "defaultModel": "m"}"#;
    let (settings, notes) = load("", project, None);
    assert_eq!(settings.project, ProjectAccess::Data);
    assert_eq!(
        (
            settings.shell.path,
            settings.shell.command_prefix,
            settings.http_proxy
        ),
        (None, None, None)
    );
    assert_eq!((settings.extensions.len(), settings.session_dir), (0, None));
    assert_eq!(settings.default_model.as_deref(), Some("m"));
    assert!(!settings.raw.contains_key("shellPath"));
    assert_eq!(notes.len(), 5, "{notes:?}");

    let (settings, notes) = load("", project, Some(true));
    assert_eq!(settings.project, ProjectAccess::Full);
    assert_eq!(settings.shell.path.as_deref(), Some("./evil"));
    assert!(notes.is_empty());

    let (settings, notes) = load("", project, Some(false));
    assert_eq!(
        (settings.project, settings.default_model),
        (ProjectAccess::None, None)
    );
    assert!(notes.is_empty());
}

#[test]
fn default_project_trust_applies_without_decision() {
    let table = [
        ("always", None, ProjectAccess::Full),
        ("never", None, ProjectAccess::None),
        ("ask", None, ProjectAccess::Data),
        ("never", Some(true), ProjectAccess::Full),
        ("always", Some(false), ProjectAccess::None),
    ];
    for (word, approved, expected) in table {
        let file = json!({"defaultProjectTrust": word}).to_string();
        assert_eq!(
            load(&file, "", approved).0.project,
            expected,
            "{word} {approved:?}"
        );
    }
}

#[test]
fn huge_settings_file_is_ignored() {
    let text = format!(
        "{{\"defaultModel\": \"m\", \"x\": \"{}\"}}",
        "y".repeat(1024 * 1024)
    );
    let (settings, notes) = load(&text, "", None);
    assert_eq!(settings.default_model, None);
    assert!(notes[0].contains("longer than 1024 KiB"));
}

#[test]
fn json_with_comments_is_parsed() {
    let table = [
        ("", json!({})),
        (" // nothing\n", json!({})),
        (
            "{\"a\": 1, // one\n \"b\": [1, 2,], /* two\n lines */ }",
            json!({"a": 1, "b": [1, 2]}),
        ),
        (
            r#"{"url": "http://x/*y*/", "s": "a,]\",}"}"#,
            json!({"url": "http://x/*y*/", "s": "a,]\",}"}),
        ),
        ("[1, /* , */ ]", json!([1])),
        ("{\"a\": 1 /**/,\n\n}", json!({"a": 1})),
        ("\"ä//ö\"", json!("ä//ö")),
    ];
    for (text, expected) in table {
        assert_eq!(jsonc::parse(text).unwrap(), expected, "{text}");
    }
    for bad in ["{", "[1 2]", "{\"a\" 1}", "{\"a\": 1 /* open", "{a: 1}", "/"] {
        assert!(jsonc::parse(bad).is_err(), "{bad}");
    }
    let error = jsonc::parse("{\n // comment\n \"a\": oops\n}").unwrap_err();
    assert_eq!(error.line(), 3);
}
