//! The core without extensions, dialogs or a run: what it changes, writes and sends.

use std::sync::Arc;

use agent::Change;
use serde_json::json;
use wire::command::LabelParams;
use wire::event::{ChangeReason, CloseReason};
use wire::hosted::HostUriSchemesParams;
use wire::state::{PermissionMode, QueueMode};
use wire::{Dialect, EntryBody, Message};

use super::super::dialogs::{Answer, NoAnswer};
use super::super::tool_calls::{ChosenBy, PROCESS_TOOL, ToolRegistry};
use super::stage::{CoreStage, DriverStage};
use super::{events, kinds, user};

#[tokio::test]
async fn opened_core_writes_and_sends_nothing() {
    let mut stage = CoreStage::new();
    assert_eq!(events(&mut stage.sent), Vec::<serde_json::Value>::new());
    assert!(!stage.dir.path().join("session.jsonl").exists());
    assert_eq!(stage.warnings, Vec::<String>::new());
    assert_eq!(stage.core.conversation.choice.model.id, "script");
    assert!(stage.core.machine.is_idle() && stage.core.machine.messages().is_empty());
}

#[tokio::test]
async fn invalid_permission_rule_becomes_warning() {
    let stage = CoreStage::with(&[], r#"{"permissions": {"allow": ["nonsense("]}}"#);
    assert_eq!(stage.warnings.len(), 1, "{:?}", stage.warnings);
    assert!(stage.warnings[0].contains("nonsense("), "{:?}", stage.warnings);
}

#[tokio::test]
async fn changed_settings_reach_the_machine() {
    let mut stage = CoreStage::new();
    let before = stage.core.machine.settings();
    stage
        .core
        .change_settings(|settings| settings.follow_up_mode = QueueMode::All);
    let after = stage.core.machine.settings();
    assert_ne!(before.follow_up_mode, after.follow_up_mode);
    assert_eq!(after.steering_mode, before.steering_mode);
    assert_eq!(stage.core.state().follow_up_mode, QueueMode::All);
}

#[tokio::test]
async fn shell_messages_join_conversation_once() {
    let mut stage = CoreStage::new();
    stage.core.conversation.add_unsent_shell(user("ls"));
    assert_eq!(stage.core.machine.messages().len(), 0, "the model has not got it");
    stage.core.add_shell_messages();
    stage.core.add_shell_messages();
    assert_eq!(stage.core.machine.messages(), [user("ls")]);
}

#[tokio::test]
async fn permission_mode_of_client_renews_system_prompt() {
    let mut stage = CoreStage::new();
    let before = stage.core.system_prompt();
    stage.core.choose_permission_mode(PermissionMode::ReadOnly);
    assert_eq!(stage.core.permissions.mode(), PermissionMode::ReadOnly);
    let after = stage.core.system_prompt();
    assert_ne!(before, after);
    assert!(after.contains("Limits of your tools"), "{after}");
}

#[tokio::test]
async fn system_prompt_is_kept_until_forgotten() {
    let mut stage = CoreStage::new();
    let first = stage.core.system_prompt();
    assert!(first.contains("read"), "{first}");
    stage
        .core
        .tools
        .choose(["write".to_owned()].into_iter(), ChosenBy::Client);
    assert_eq!(stage.core.system_prompt(), first, "providers cache it");
    stage.core.workspace.forget_system_prompt();
    assert_ne!(stage.core.system_prompt(), first);
}

#[tokio::test]
async fn missing_guard_locks_the_core_down() {
    let mut stage = CoreStage::new();
    stage.core.choose_permission_mode(PermissionMode::Off);
    stage.core.lock_down(&["guard.ts is missing".to_owned()]);
    assert_eq!(
        stage.core.permissions.chosen(),
        None,
        "the choice does not count any more"
    );
    assert_ne!(stage.core.permissions.mode(), PermissionMode::Off);
    let faults = &stage.core.agent.settings.faults;
    assert_eq!(faults, &["guard.ts is missing".to_owned()]);
}

#[tokio::test]
async fn lock_down_keeps_a_stricter_mode() {
    let guards = ["guard.ts is missing".to_owned()];
    let mut chosen = CoreStage::new();
    chosen.core.choose_permission_mode(PermissionMode::ReadOnly);
    chosen.core.lock_down(&guards);
    assert_eq!(chosen.core.permissions.mode(), PermissionMode::ReadOnly);
    let mut set = CoreStage::with(&[], r#"{"permissions": {"mode": "read-only"}}"#);
    set.core.lock_down(&guards);
    assert_eq!(set.core.permissions.mode(), PermissionMode::ReadOnly);
}

#[tokio::test]
async fn lock_down_keeps_the_open_question() {
    let write = json!({"stream": [{"tool": {"name": "write", "args": {"path": "x", "content": "y"}}}]});
    let mut stage = DriverStage::with(&[write], r#"{"permissions": {"mode": "ask"}}"#);
    stage.prompt("go").await;
    while stage.driver.core.permissions.asking.is_none() {
        let events = stage.next_events().await;
        stage.driver.on_model(events).await;
    }
    stage.driver.core.lock_down(&["guard.ts is missing".to_owned()]);
    let denied = Answer::None(NoAnswer::Cancelled);
    let decided = stage.driver.core.permissions.accept(denied);
    stage
        .driver
        .drive(decided.expect("the call waits for the answer"))
        .await;
    // The run goes on with the next request. The offline model of the agent that was read again begins its replies anew.
    stage.next_events().await;
    assert_eq!(stage.stored(), ["session", "user", "assistant", "toolResult"]);
    assert!(!stage.driver.core.workspace.cwd.join("x").exists());
}

#[tokio::test]
async fn reload_keeps_what_client_switched() {
    let mut stage = CoreStage::new();
    stage
        .core
        .change_settings(|settings| settings.steering_mode = QueueMode::All);
    stage.core.conversation.auto_compaction = false;
    stage.core.reload(&[]);
    assert_eq!(stage.core.machine.settings().steering_mode, QueueMode::All);
    assert!(!stage.core.conversation.auto_compaction);
}

#[tokio::test]
async fn opened_machine_keeps_settings_and_takes_messages() {
    let mut stage = CoreStage::new();
    stage
        .core
        .change_settings(|settings| settings.steering_mode = QueueMode::All);
    stage.core.apply(Change::Add(user("old")));
    stage.core.open_machine(vec![user("new")]);
    assert_eq!(stage.core.machine.messages(), [user("new")]);
    assert_eq!(stage.core.machine.settings().steering_mode, QueueMode::All);
}

#[tokio::test]
async fn session_change_names_the_file_and_messages() {
    let mut stage = CoreStage::new();
    stage.core.apply(Change::Add(user("one")));
    let outbox = stage.outbox.clone();
    stage.core.conversation.store_name("work", &outbox).await.unwrap();
    events(&mut stage.sent);
    stage.core.tell_changed(ChangeReason::New).await;
    let sent = events(&mut stage.sent);
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (&sent[0]["type"], &sent[0]["reason"]),
        (&json!("session_changed"), &json!("new"))
    );
    assert_eq!(sent[0]["sessionId"], stage.core.conversation.log.header().id);
    assert_eq!(
        (&sent[0]["sessionName"], &sent[0]["messageCount"]),
        (&json!("work"), &json!(1))
    );
    assert!(
        sent[0]["sessionFile"]
            .as_str()
            .unwrap()
            .ends_with("session.jsonl")
    );
}

#[tokio::test]
async fn closed_session_says_why() {
    let mut stage = CoreStage::new();
    stage.core.tell_closed(CloseReason::Evicted).await;
    let sent = events(&mut stage.sent);
    assert_eq!(
        (&sent[0]["type"], &sent[0]["reason"]),
        (&json!("session_closed"), &json!("evicted"))
    );
}

#[tokio::test]
async fn missing_directory_of_file_is_reported_once() {
    let mut stage = CoreStage::new();
    stage.core.report_warnings().await;
    assert_eq!(
        events(&mut stage.sent),
        Vec::<serde_json::Value>::new(),
        "/ exists"
    );
    let header = store::new_header("/no/such/directory", None);
    let log = store::SessionLog::create(None, header).unwrap();
    stage.core.conversation.log.replace(log);
    stage.core.report_warnings().await;
    let sent = events(&mut stage.sent);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].to_string().contains("/no/such/directory"), "{sent:?}");
}

#[tokio::test]
async fn damaged_file_is_reported_with_its_lines() {
    let mut stage = CoreStage::new();
    let path = stage.dir.path().join("damaged.jsonl");
    let header = serde_json::to_string(&store::new_header("/", None)).unwrap();
    let header = header.replacen(
        '{',
        r#"{"type":"session","#,
        usize::from(!header.contains(r#""type":"session""#)),
    );
    std::fs::write(&path, format!("{header}\n{{nonsense\n{{\"torn")).unwrap();
    let (log, _damage) = store::SessionLog::open(&path, "/").unwrap();
    stage.core.conversation.log.replace(log);
    stage.core.report_warnings().await;
    let sent = events(&mut stage.sent);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(
        (&sent[0]["type"], &sent[0]["lines"]),
        (&json!("session_damage"), &json!([2]))
    );
    assert_eq!(sent[0]["path"], json!(path));
    assert_eq!(sent[0]["tornBytes"], 6);
}

#[tokio::test]
async fn session_without_waiting_entries_may_be_left() {
    let mut stage = CoreStage::new();
    assert_eq!(stage.core.stored(false).await, Ok(()));
}

#[tokio::test]
async fn slash_text_without_template_is_left_alone() {
    let mut stage = CoreStage::new();
    assert_eq!(stage.core.expand("/nothing here").await, "/nothing here");
    assert_eq!(events(&mut stage.sent), Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn template_is_expanded_with_its_arguments() {
    let stage = CoreStage::new();
    let prompts = stage.dir.path().join("prompts");
    std::fs::create_dir(&prompts).unwrap();
    std::fs::write(prompts.join("fix.md"), "Fix $1 now").unwrap();
    assert_eq!(stage.core.expand("/fix it").await, "Fix it now");
}

#[tokio::test]
async fn environment_of_calls_names_session_and_model() {
    let mut stage = CoreStage::new();
    stage.core.conversation.choice.for_run();
    let environment = stage.core.environment();
    assert_eq!(environment.cwd, stage.core.workspace.cwd);
    assert_eq!(environment.session, stage.core.conversation.log.header().id);
    assert!(!environment.sees_images, "the offline model reads text only");
    let env = format!("{:?}", environment.env);
    assert!(
        env.contains(&environment.session) && env.contains("session.jsonl"),
        "{env}"
    );
}

#[tokio::test]
async fn hook_facts_name_agent_session_and_model() {
    let stage = CoreStage::new();
    let facts = stage.core.hook_facts();
    assert_eq!(facts.session["id"], stage.core.conversation.log.header().id);
    assert_eq!(
        facts.session["model"],
        json!({"provider": "offline", "id": "script"})
    );
    assert_eq!(facts.agent["name"], "pinion");
    let dir = facts.env.iter().find(|(name, _)| name == "PI_CODING_AGENT_DIR");
    assert_eq!(dir.unwrap().1, stage.dir.path());
    let mut names: Vec<_> = facts.env.iter().map(|(name, _)| name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "no variable is there twice");
}

#[tokio::test]
async fn other_conversation_takes_the_place() {
    let mut stage = CoreStage::new();
    stage.core.apply(Change::Add(user("old")));
    stage.core.conversation.add_unsent_shell(user("ls"));
    let log = super::log(None);
    let context = log.context(None);
    let start = stage.core.agent.choose(&context, false).unwrap();
    stage.core.conversation.log.replace(log);
    let ui = super::super::dialogs::Dialogs::new(None).ui();
    stage.core.take_up(context, start, ui).await;
    stage.core.add_shell_messages();
    assert_eq!(stage.core.machine.messages(), Vec::<Arc<wire::Message>>::new());
    assert!(kinds(&stage.core.conversation.log).is_empty());
}

#[tokio::test]
async fn label_of_unknown_entry_is_refused() {
    let mut stage = CoreStage::new();
    let params: LabelParams = serde_json::from_value(json!({"entryId": "none", "label": "x"})).unwrap();
    let outbox = stage.outbox.clone();
    assert!(stage.core.conversation.set_label(params, &outbox).await.is_err());
    assert!(kinds(&stage.core.conversation.log).is_empty());
}

#[tokio::test]
async fn context_is_full_only_with_auto_compaction() {
    let mut stage = CoreStage::new();
    assert!(!stage.core.context_is_full(), "an empty conversation");
    let window = usize::try_from(stage.core.conversation.choice.model.context_window).unwrap();
    stage.core.apply(Change::Add(user(&"word ".repeat(window))));
    assert!(stage.core.context_is_full());
    stage.core.conversation.auto_compaction = false;
    assert!(!stage.core.context_is_full());
}

#[tokio::test]
async fn fallback_without_models_ends_the_run() {
    let mut stage = CoreStage::new();
    assert!(stage.core.fall_back().await.is_none());
    assert_eq!(events(&mut stage.sent), Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn client_uris_leave_bash_its_background() {
    let stage = CoreStage::new();
    let mut agent = (*stage.core.agent).clone();
    agent.options.tools = vec!["bash".to_owned(), PROCESS_TOOL.to_owned()];
    let mut tools = ToolRegistry::of_agent(&agent);
    let has_background = |tools: &ToolRegistry| {
        let bash = tools.find("bash").unwrap().definition();
        bash.spec.parameters.pointer("/properties/background").is_some()
    };
    assert!(has_background(&tools));
    let params = HostUriSchemesParams {
        schemes: vec![json!({"scheme": "db"})],
    };
    stage.core.client_tools.set_schemes(&params, &mut tools).unwrap();
    assert!(has_background(&tools));
}

#[tokio::test]
async fn stored_session_brings_its_tools() {
    let mut stage = CoreStage::new();
    let mut agent = (*stage.core.agent).clone();
    agent.options.dialect = Dialect::PiDelta;
    agent.options.tool_filter.restored = Some(vec!["+ls".to_owned(), "-grep".to_owned()]);
    agent.options.tool_filter.excluded = vec!["edit".to_owned()];
    stage.core.agent = Arc::new(agent);
    let says = |added: &[&str], removed: &[&str]| {
        let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
        let message = json!({"role": "system", "content": "", "toolsAdded": named(added), "toolsRemoved": named(removed)});
        EntryBody::message(Arc::new(Message::Other(message)))
    };
    let log = stage.core.conversation.log.direct();
    log.append(says(&["read", "write", "bash", "later"], &[]))
        .unwrap();
    log.append(says(&["grep", "edit", "fetch"], &["write", "gone"]))
        .unwrap();
    stage.core.restore_tools(false);
    // `later` may be registered yet; `fetch` reaches the network, which a file must not switch on.
    assert_eq!(stage.core.tools.active_names(), ["read", "bash", "later", "ls"]);
    let log = stage.core.conversation.log.direct();
    let leaf = log.leaf_id().map(str::to_owned);
    log.set_leaf(None).unwrap();
    stage.core.restore_tools(true);
    assert_eq!(
        stage.core.tools.active_names(),
        ["read", "write"],
        "the next session begins with the tools of the command line"
    );
    stage
        .core
        .conversation
        .log
        .direct()
        .set_leaf(leaf.as_deref())
        .unwrap();
    stage
        .core
        .tools
        .activate(vec!["read".to_owned()], ChosenBy::Client);
    stage.core.restore_tools(true);
    assert_eq!(
        stage.core.tools.active_names(),
        ["read"],
        "a file widens no choice of a client"
    );
    let mut agent = (*stage.core.agent).clone();
    agent.options.tool_filter.restored = None;
    stage.core.agent = Arc::new(agent);
    stage
        .core
        .tools
        .activate(vec!["write".to_owned()], ChosenBy::Options);
    stage.core.restore_tools(false);
    assert_eq!(
        stage.core.tools.active_names(),
        ["write"],
        "the command line decides"
    );
}
