//! Where the sessions of an agent go, and what they begin with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::settings::Settings;
use serde_json::json;
use wire::state::PermissionMode;
use wire::{Model, RunLimits, ThinkingLevel};

use super::super::extensions::SubsessionOptions;
use super::model;
use super::stage::CoreStage;
use crate::factory::{Agent, SessionHome};

fn agent(settings: &str, change: impl FnOnce(&mut Agent)) -> Agent {
    let stage = CoreStage::with(&[], settings);
    let mut agent = (*stage.core.agent).clone();
    change(&mut agent);
    agent
}

#[tokio::test]
async fn sessions_go_where_their_home_says() {
    let home = |sessions| agent("{}", |agent| agent.options.sessions = sessions);
    let cwd = Path::new("/work");
    assert_eq!(home(SessionHome::Memory).session_dir(cwd), None);
    let one = PathBuf::from("/sessions");
    assert_eq!(home(SessionHome::One(one.clone())).session_dir(cwd), Some(one));
    let agent = home(SessionHome::ByDirectory);
    let (work, other) = (agent.session_dir(cwd), agent.session_dir(Path::new("/other")));
    assert_ne!(work, other);
    assert!(work.unwrap().starts_with(&agent.agent_dir));
}

#[tokio::test]
async fn next_session_goes_next_to_its_file() {
    let (cwd, current) = (Path::new("/work"), Some(Path::new("/elsewhere/s.jsonl")));
    let next = |sessions, current| {
        let agent = agent("{}", |agent| agent.options.sessions = sessions);
        (agent.next_session_dir(cwd, current), agent.session_dir(cwd))
    };
    assert_eq!(
        next(SessionHome::ByDirectory, current).0,
        Some("/elsewhere".into())
    );
    let (without, usual) = next(SessionHome::ByDirectory, None);
    assert_eq!(without, usual);
    let named = next(SessionHome::One("/sessions".into()), current).0;
    assert_eq!(named, Some("/sessions".into()), "the user named the directory");
    assert_eq!(next(SessionHome::Memory, current).0, None);
}

#[tokio::test]
async fn limits_of_command_line_win_one_by_one() {
    let settings = r#"{"limits": {"maxTurns": 5, "maxTokens": 6}}"#;
    let agent = agent(settings, |agent| {
        agent.options.limits = RunLimits {
            max_turns: Some(2),
            ..RunLimits::default()
        };
    });
    let limits = agent.loop_settings().limits;
    assert_eq!((limits.max_turns, limits.max_tokens), (Some(2), Some(6)));
}

#[tokio::test]
async fn silent_provider_always_has_a_timeout() {
    let stage = CoreStage::new();
    let mut agent = (*stage.core.agent).clone();
    let remote = Model {
        base_url: "https://api.example.org".to_owned(),
        ..model("a", false)
    };
    let local = Model {
        base_url: "http://localhost:8080/v1".to_owned(),
        ..model("a", false)
    };
    let set = |settings: &mut Settings, http: Option<u64>, local: Option<u64>, provider: Option<u64>| {
        settings.http_idle_timeout_ms = http;
        settings.local_servers.idle_timeout_ms = local;
        settings.retry.provider.timeout_ms = provider;
    };
    set(&mut agent.settings, Some(10), Some(20), None);
    let millis = Duration::from_millis;
    assert_eq!(agent.timeouts(&remote), millis(10).into());
    assert_eq!(agent.timeouts(&local), millis(20).into());
    set(&mut agent.settings, Some(10), Some(20), Some(30));
    for (model, idle) in [(&remote, millis(10)), (&local, millis(20))] {
        let timeouts = agent.timeouts(model);
        assert_eq!(timeouts.response, millis(30), "it is for all providers");
        assert_eq!(timeouts.idle, idle, "it ends when the response begins");
    }
    set(&mut agent.settings, None, None, None);
    assert_eq!(agent.timeouts(&remote), Duration::from_secs(86_400).into());
}

#[tokio::test]
async fn thinking_level_of_command_line_wins() {
    let level = |change: fn(&mut Agent)| agent("{}", change).default_thinking(&model("a", true));
    assert_eq!(level(|_| {}), ThinkingLevel::default());
    assert_eq!(
        level(|agent| agent.options.start.default_thinking = Some(ThinkingLevel::Low)),
        ThinkingLevel::Low
    );
    let both = level(|agent| {
        agent.options.start.default_thinking = Some(ThinkingLevel::Low);
        agent.options.start.thinking = Some(ThinkingLevel::High);
    });
    assert_eq!(both, ThinkingLevel::High);
}

#[tokio::test]
async fn switched_session_keeps_its_own_model() {
    let agent = agent("{}", |_| {});
    let mut log = super::log(None);
    let change = json!({"provider": "offline", "modelId": "no-such-model"});
    log.append(wire::EntryBody::ModelChange(
        serde_json::from_value(change).unwrap(),
    ))
    .unwrap();
    let context = log.context(log.leaf_id());
    let with_flags = agent.choose(&context, true).unwrap();
    assert_eq!(with_flags.model.id, "script", "the command line comes first");
    let of_its_own = agent.choose(&context, false).unwrap();
    assert!(
        of_its_own
            .warnings
            .iter()
            .any(|warning| warning.contains("no-such-model")),
        "{:?}",
        of_its_own.warnings
    );
}

#[test]
fn tool_environment_leaves_out_what_is_unknown() {
    let names = |file, model: Option<(&Model, ThinkingLevel)>| -> Vec<String> {
        Agent::tool_env("id", file, model)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    };
    assert_eq!(names(None, None), ["PI_SESSION_ID=id"]);
    assert_eq!(
        names(Some("/s.jsonl"), Some((&model("a", false), ThinkingLevel::Low))),
        [
            "PI_SESSION_ID=id",
            "PI_SESSION_FILE=/s.jsonl",
            "PI_REASONING_LEVEL=low",
            "PI_PROVIDER=test",
            "PI_MODEL=a"
        ]
    );
}

#[tokio::test]
async fn excluded_tool_stays_off_even_if_named() {
    let allows = |only: Option<&[&str]>, excluded: &[&str], tool: &str| {
        let list = |names: &[&str]| Vec::from_iter(names.iter().map(|&name| name.to_owned()));
        let agent = agent("{}", |agent| {
            agent.options.tool_filter.only = Vec::from_iter(only.map(list));
            agent.options.tool_filter.excluded = list(excluded);
        });
        agent.options.allows_tool(tool)
    };
    assert!(allows(None, &[], "any"));
    assert!(allows(Some(&["read", "db_*"]), &[], "db_query"));
    assert!(!allows(Some(&["read"]), &[], "write"));
    assert!(!allows(Some(&["db_*"]), &["db_drop"], "db_drop"));
    assert!(!allows(Some(&[]), &[], "read"), "an empty list allows none");
}

/// The agent of a session that an extension opens with these options, while its own session may use `read` alone.
fn subsession(stage: &CoreStage, options: serde_json::Value, mode: PermissionMode) -> std::sync::Arc<Agent> {
    let mut agent = (*stage.core.agent).clone();
    agent.options.tools = vec!["read".to_owned()];
    agent.options.tool_filter.only = vec![vec!["read".to_owned()]];
    let options: SubsessionOptions = serde_json::from_value(options).unwrap();
    options.configure(agent, mode, &model("a", false))
}

#[tokio::test]
async fn user_list_of_tools_limits_subsessions() {
    let stage = CoreStage::new();
    for tools in [json!(["*"]), json!(["+bash"]), json!(["read", "bash"])] {
        let options = json!({"session": "s", "tools": tools});
        let agent = subsession(&stage, options, PermissionMode::Auto);
        assert_eq!(agent.options.tools, ["read"], "{tools}");
        assert!(agent.options.allows_tool("read") && !agent.options.allows_tool("bash"));
    }
}

#[tokio::test]
async fn remade_agent_of_subsession_stays_limited() {
    let stage = CoreStage::new();
    let options = json!({"session": "s", "noTools": "all"});
    let agent = subsession(&stage, options, PermissionMode::ReadOnly);
    let cwd = agent.cwd.clone();
    let again = agent.maker.make(&cwd, &[]);
    let again = again.maker.make(&cwd, &[]);
    assert_eq!(again.options.permission_mode, Some(PermissionMode::ReadOnly));
    assert!(again.options.extensions.only_named && again.options.tools.is_empty());
    assert!(!again.options.allows_tool("read"));
}

#[tokio::test]
async fn missing_guard_locks_agent_of_subsession() {
    let stage = CoreStage::new();
    let options = json!({"session": "s"});
    let agent = subsession(&stage, options, PermissionMode::Auto);
    assert_eq!(agent.options.permission_mode, Some(PermissionMode::Auto));
    let locked = agent.maker.make(&agent.cwd, &["guard.ts is missing".to_owned()]);
    assert_eq!(locked.options.permission_mode, None, "the settings ask");
    assert_eq!(locked.settings.permissions.user.mode(), PermissionMode::Ask);
}
