//! `config.yml` of oh-my-pi: the settings that it comes to, and that its approvals never become looser.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use wire::state::PermissionMode;

use crate::diagnostic::Diagnostic;
use crate::settings::omp::ROWS;
use crate::settings::{FileState, KeyUse, Settings, SettingsSource};
use crate::trust::{ProjectAccess, Trust};

/// Loads files for a client of oh-my-pi; names are relative to the agent directory `agent` and the project `work`.
fn load(files: &[(&str, &str)], approved: Option<bool>) -> (Settings, Vec<Diagnostic>) {
    let root = tempfile::tempdir().unwrap();
    load_in(root.path(), files, approved, true)
}

fn load_in(
    root: &Path,
    files: &[(&str, &str)],
    approved: Option<bool>,
    is_omp: bool,
) -> (Settings, Vec<Diagnostic>) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    load_at(root, "agent", approved, is_omp)
}

/// The settings of files that are there.
fn load_at(root: &Path, agent: &str, approved: Option<bool>, is_omp: bool) -> (Settings, Vec<Diagnostic>) {
    let agent = root.join(agent);
    Settings::load(&SettingsSource {
        agent_dir: &agent,
        cwd: &root.join("work"),
        home: None,
        trust: &Trust::new(&agent, approved),
        tools: &["bash", "edit", "fetch", "find", "read", "task", "write"],
        is_omp,
    })
}

/// The user's rules with `config.yml` and settings.json.
fn rules(config: &str, settings: &str) -> (Value, usize) {
    let files = [("agent/config.yml", config), ("agent/settings.json", settings)];
    let (settings, _) = load(&files, None);
    let user = &settings.permissions.user;
    let rules =
        json!({"mode": user.mode().as_str(), "allow": user.allow, "ask": user.ask, "deny": user.deny});
    (rules, settings.faults.len())
}

/// The settings that one key of `config.yml` comes to.
fn keys(config: &str) -> Map<String, Value> {
    let (settings, notes) = load(&[("agent/config.yml", config)], None);
    assert!(notes.is_empty(), "{config}: {notes:?}");
    settings.raw
}

#[test]
fn each_key_of_omp_becomes_its_equivalent() {
    let table = [
        (
            "modelRoles: {default: p/m, smol: p/s}",
            json!({"defaultProvider": "p", "defaultModel": "m"}),
        ),
        (
            "modelRoles: {default: [p/m.1:high, p/n]}",
            json!({"defaultProvider": "p", "defaultModel": "m.1", "modelThinkingLevels": {"p/m.1": "high"}}),
        ),
        ("modelRoles: {default: pi/slow}", json!({})),
        (
            "defaultThinkingLevel: off",
            json!({"defaultThinkingLevel": "off"}),
        ),
        ("defaultThinkingLevel: auto", json!({})),
        (
            "thinkingBudgets: {low: 5}",
            json!({"thinkingBudgets": {"low": 5}}),
        ),
        (
            "enabledModels: [p/m, {path: /x, models: [q]}]",
            json!({"enabledModels": ["p/m"]}),
        ),
        ("enabledModels: []", json!({})),
        (
            "steeringMode: all\nqueueMode: one-at-a-time",
            json!({"steeringMode": "all"}),
        ),
        ("interruptMode: wait", json!({"interruptMode": "wait"})),
        (
            "compaction: {enabled: false, reserveTokens: 1, thresholdPercent: 5}",
            json!({"compaction": {"enabled": false, "reserveTokens": 1}}),
        ),
        (
            "retry: {maxRetries: 7, maxDelayMs: 9, fallbackChains: {default: ['a/b:low', 'a/*'], smol: [c/d]}}",
            json!({"retry": {"maxRetries": 7, "provider": {"maxRetryDelayMs": 9}}, "fallbackModels": ["a/b"]}),
        ),
        (
            "retry: {maxDelayMs: 0, modelFallback: false, fallbackChains: {default: [a/b]}}",
            json!({}),
        ),
        (
            "providers: {streamIdleTimeoutSeconds: 1.5, streamFirstEventTimeoutSeconds: -1}",
            json!({"httpIdleTimeoutMs": 1500}),
        ),
        ("shellPath: /bin/zsh", json!({"shellPath": "/bin/zsh"})),
        ("skills: {customDirectories: [/s]}", json!({"skills": ["/s"]})),
        ("extensions: [/e/x.ts]", json!({"extensions": ["/e/x.ts"]})),
        (
            "task: {maxConcurrency: 2}",
            json!({"subagents": {"maxParallel": 2}}),
        ),
        (
            "todo: {enabled: true, reminders: true, remindersMax: 2}",
            json!({"todo": {"enabled": true, "reminders": {"enabled": true, "max": 2}}}),
        ),
        ("ttsr: {repeatGap: 3}", json!({"ttsr": {"repeatGap": 3}})),
        (
            "bash: {enabled: false}\nglob: {enabled: false}\ngrep: {enabled: true}",
            json!({"defaultTools": ["-bash", "-find"]}),
        ),
        ("theme: {dark: x}\ncollab: {}", json!({})),
        ("# nothing\n", json!({})),
    ];
    for (config, expected) in table {
        assert_eq!(Value::Object(keys(config)), expected, "{config}");
    }
}

#[test]
fn settings_json_precedes_config_yml() {
    let settings = r#"{"defaultModel": "mine", "retry": {"maxRetries": 1}, "steeringMode": null}"#;
    let config = "modelRoles: {default: p/m}\nsteeringMode: all\nretry: {maxRetries: 2, baseDelayMs: 3}\n";
    let project = "retry: {baseDelayMs: 4}\n";
    let files = [
        ("agent/settings.json", settings),
        ("agent/config.yml", config),
        ("work/.omp/config.yml", project),
    ];
    let root = tempfile::tempdir().unwrap();
    let (settings, notes) = load_in(root.path(), &files, None, true);
    assert!(notes.is_empty(), "{notes:?}");
    let model = (settings.default_provider, settings.default_model.as_deref());
    assert_eq!(model, (None, Some("mine")));
    assert_eq!((settings.retry.max_retries, settings.retry.base_delay_ms), (1, 4));
    assert_eq!(settings.raw["steeringMode"], "all");
    let (other, notes) = load_in(root.path(), &files, None, false);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(other.retry.base_delay_ms, 2_000);
    assert_eq!(other.files.len(), 2);
}

#[test]
fn approvals_become_permissions() {
    let table = [
        ("tools: {approvalMode: yolo}", "off", json!([]), json!([]), json!([])),
        ("tools: {approvalMode: always-ask}", "ask", json!([]), json!([]), json!([])),
        ("tools: {approvalMode: write}", "ask", json!([]), json!([]), json!([])),
        (
            "tools: {approval: {bash: Deny, write: prompt, task: null}}",
            "auto",
            json!([]),
            json!(["write"]),
            json!(["bash"]),
        ),
        (
            "tools: {approvalMode: write, approval: {bash: allow, edit: allow, mcp__docs_get: allow, 'a*': allow, Write: allow}}",
            "ask",
            json!(["edit"]),
            json!([]),
            json!([]),
        ),
        (
            "tools: {approval: {mcp__my_docs_get: deny, read: deny, glob: deny, ask: prompt, todo: prompt}}",
            "auto",
            json!([]),
            json!(["ask*", "todo*"]),
            json!(["mcp__my*docs*get", "read", "ls", "fetch", "find"]),
        ),
        (
            "bash:\n  patterns:\n  - {match: 'rm *', approval: deny}\n  - {match: 'curl * | sh', approval: prompt}
  - {match: 'git *', approval: allow}\n  - {match: '(cd *', approval: deny}",
            "auto",
            json!([]),
            json!(["bash(curl **)"]),
            json!(["bash(rm *)", "bash"]),
        ),
        (
            "bash:\n  patterns:\n  - {match: 'make 2>&1', approval: deny}\n  - {match: 'STAGE=live deploy', approval: prompt}
  - {match: '2> x', approval: deny}",
            "auto",
            json!([]),
            json!(["bash(*STAGE=live deploy*)"]),
            json!(["bash(make*)", "bash"]),
        ),
    ];
    for (config, mode, allow, ask, deny) in table {
        let expected = json!({"mode": mode, "allow": allow, "ask": ask, "deny": deny});
        assert_eq!(rules(config, "{}"), (expected, 0), "{config}");
    }
}

#[test]
fn unknown_approvals_fail_closed() {
    for (config, mode, ask) in [
        ("tools: {approvalMode: never}", "ask", json!([])),
        ("tools: {approvalMode: [yolo]}", "ask", json!([])),
        ("tools: always-ask", "ask", json!([])),
        ("tools: {approval: {bash: maybe}}", "auto", json!(["bash"])),
        ("tools: {approval: {bash: true}}", "auto", json!(["bash"])),
        ("tools: {approval: deny}", "auto", json!(["*"])),
        ("bash: {patterns: {match: x}}", "auto", json!(["bash"])),
        (
            "bash: {patterns: [{match: 'rm *', approval: no}]}",
            "auto",
            json!(["bash(rm *)"]),
        ),
        ("bash: {patterns: [rm]}", "auto", json!(["bash"])),
        (
            "tools: {aproval: {bash: deny}, approvalMode: yolo}",
            "off",
            json!([]),
        ),
        ("tools: {approvalmode: always-ask}", "off", json!([])),
        ("tools.approvalMode: always-ask", "off", json!([])),
        ("bash: {pattern: []}", "off", json!([])),
    ] {
        let expected = json!({"mode": mode, "allow": [], "ask": ask, "deny": []});
        assert_eq!(rules(config, "{}"), (expected, 1), "{config}");
    }
}

#[test]
fn stricter_permissions_of_both_files_count() {
    let deny = "tools: {approval: {bash: deny, edit: allow}}";
    for (config, settings, expected) in [
        (
            "tools: {approvalMode: always-ask}",
            json!({"mode": "off", "allow": ["edit"]}),
            json!({"mode": "ask", "allow": ["edit"], "ask": [], "deny": []}),
        ),
        (
            deny,
            json!({"mode": "off", "deny": "write"}),
            json!({"mode": "auto", "allow": [], "ask": [], "deny": ["write", "bash"]}),
        ),
        (
            deny,
            json!({"mode": "read-only", "deny": null}),
            json!({"mode": "read-only", "allow": [], "ask": [], "deny": ["bash"]}),
        ),
        (
            deny,
            json!(null),
            json!({"mode": "auto", "allow": ["edit"], "ask": [], "deny": ["bash"]}),
        ),
    ] {
        let settings = json!({"permissions": settings}).to_string();
        assert_eq!(rules(config, &settings), (expected, 0), "{config} {settings}");
    }
}

#[test]
fn unreadable_permissions_keep_rules_of_config_yml() {
    let config = "tools: {approval: {bash: deny}}";
    for wrong in [r#"{"permissions": "off"}"#, r#"{"permissions": ["off"]}"#] {
        let expected = json!({"mode": "ask", "allow": [], "ask": [], "deny": ["bash"]});
        assert_eq!(rules(config, wrong), (expected, 1), "{wrong}");
    }
}

#[test]
fn changes_of_both_files_to_tools_count() {
    for (own, tools) in [
        (json!(["+fetch"]), json!(["-bash", "+fetch"])),
        (json!(["read"]), json!(["read"])),
        (json!([]), json!([])),
        (json!(null), json!(["-bash"])),
    ] {
        let settings = json!({"defaultTools": own}).to_string();
        let files = [
            ("agent/settings.json", settings.as_str()),
            ("agent/config.yml", "bash: {enabled: false}"),
        ];
        let (settings, _) = load(&files, None);
        assert_eq!(json!(settings.tools.default), tools, "{own}");
    }
}

#[test]
fn damaged_config_yml_is_a_fault() {
    let nested = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    let bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    for text in ["", "a: [", "- x", nested.as_str(), bomb] {
        let (settings, notes) = load(&[("agent/config.yml", text)], None);
        assert_eq!((notes.len(), settings.faults.len()), (1, 1), "{text}: {notes:?}");
        assert!(
            settings.faults[0].contains("agent/config.yml: settings are "),
            "{}",
            settings.faults[0]
        );
        assert!(matches!(settings.files[0].state, FileState::Broken(_)), "{text}");
    }
    let (settings, notes) = load(
        &[("agent/config.yml", "images: {blockImages: 1}\nsteeringMode: 1")],
        None,
    );
    assert_eq!((notes.len(), settings.faults.len()), (2, 1), "{notes:?}");
}

#[test]
fn config_yml_of_project_needs_trust() {
    let config = "shellPath: ./evil\nbash: {enabled: false}\nmodelRoles: {default: p/m}\nskills: {customDirectories: [s, /out]}
tools: {approvalMode: always-ask, approval: {bash: prompt, edit: allow}}";
    let files = [("work/.omp/config.yml", config)];
    let (settings, _) = load(&files, Some(true));
    assert_eq!(settings.project, ProjectAccess::Full);
    assert_eq!(
        (settings.shell.path.as_deref(), settings.skills.len()),
        (Some("./evil"), 2)
    );
    let (settings, notes) = load(&files, None);
    assert_eq!((settings.shell.path, settings.skills.len()), (None, 1));
    assert_eq!((settings.tools.default, notes.len()), (None, 3), "{notes:?}");
    assert_eq!(settings.default_model.as_deref(), Some("m"));
    let permissions = &settings.permissions.project;
    assert_eq!(permissions.mode, Some(PermissionMode::Ask));
    assert_eq!(
        (permissions.allow.len(), permissions.ask.as_slice()),
        (0, ["bash".to_owned()].as_slice())
    );
    let untrusted = settings.files[1]
        .keys
        .iter()
        .filter(|key| key.usage == KeyUse::Untrusted);
    let untrusted: Vec<&str> = untrusted.map(|key| key.key.as_str()).collect();
    assert_eq!(untrusted, ["shellPath", "bash.enabled"]);
    let (settings, notes) = load(&files, Some(false));
    assert!(notes.is_empty() && settings.permissions.project.mode.is_none());
    assert_eq!(settings.files[1].state, FileState::NotRead);
}

#[test]
fn config_yml_counts_beside_agent_directory() {
    let root = tempfile::tempdir().unwrap();
    let files = [
        (
            "work/.pi/settings.json",
            r#"{"permissions": {"allow": ["bash"]}}"#,
        ),
        (
            "work/.omp/config.yml",
            "shellPath: ./evil\ntools: {approval: {bash: deny}}",
        ),
    ];
    load_in(root.path(), &files, None, true);
    let load = |approved| load_at(root.path(), "work/.pi", approved, true);
    let (settings, notes) = load(None);
    assert_eq!(settings.permissions.project.deny, ["bash"]);
    assert_eq!(settings.permissions.user.allow, ["bash"]);
    assert_eq!((settings.shell.path, notes.len()), (None, 1), "{notes:?}");
    let (settings, _) = load(Some(true));
    assert_eq!(settings.shell.path.as_deref(), Some("./evil"));
    let (settings, _) = load(Some(false));
    assert!(settings.permissions.project.deny.is_empty());
    assert_eq!(
        (settings.files.len(), &settings.files[1].state),
        (2, &FileState::NotRead)
    );
}

#[test]
fn page_lists_all_keys_with_an_equivalent() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/migrate/from-oh-my-pi.md");
    let page = fs::read_to_string(page).unwrap();
    for row in ROWS {
        assert!(page.contains(&format!("`{}`", row.omp)), "{}", row.omp);
    }
}
