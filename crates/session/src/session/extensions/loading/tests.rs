//! Loading with simulated processes, without a session.

use std::sync::Arc;

use config::extensions::{Found, Key};
use config::{Scope as FileScope, SourceInfo};
use extensions::line::{Era, Generation, Kind, Registered, Scope, Source};
use extensions::program::Program;
use extensions::{ExtensionProcess, ProcessError};
use serde_json::{Map, Value, json};

use super::super::simulated::Simulated;
use super::super::{ExtensionEvent, Extensions};
use super::{LoadAction, LoadAnswer, LoadQuestion, Opening, TrustDecision};

fn found(path: &str, scope: Scope) -> Found {
    Found {
        source: Source {
            path: path.to_owned(),
            scope,
            kind: Kind::Extension,
        },
        info: SourceInfo {
            path: path.to_owned(),
            source: "local".to_owned(),
            scope: FileScope::User,
            origin: "top-level",
            base_dir: None,
        },
        runs: Ok(Key::TypeScript),
    }
}

fn extensions(found: Vec<Found>) -> Extensions {
    let hooks = crate::hooks::Hooks::new(config::hooks::Finding::default());
    Extensions::new(found, hooks)
}

fn registered(members: Value) -> Registered {
    serde_json::from_value(members).unwrap()
}

fn opening() -> Opening {
    Opening {
        state: Map::new(),
        flags: Map::new(),
        era: Era {
            generation: Generation::Pi,
            hook_timeout: None,
        },
    }
}

/// The next answer, with its question.
async fn answered(extensions: &mut Extensions) -> (LoadQuestion, LoadAnswer) {
    match extensions.next().await {
        ExtensionEvent::Loading(answered) => {
            let question = extensions.loading.take(answered.number).unwrap();
            (question, answered.answer)
        }
        _ => panic!("another event"),
    }
}

async fn value(extensions: &mut Extensions) -> (LoadQuestion, Result<Value, ProcessError>) {
    match answered(extensions).await {
        (question, LoadAnswer::Answer(answer)) => (question, answer.map(|answer| answer.value)),
        _ => panic!("a process"),
    }
}

/// Starts the process at place 0, as the session does for [`LoadAction::StartProcess`].
async fn start(extensions: &mut Extensions) -> Simulated {
    let (process, simulated) = Simulated::start().await;
    extensions
        .loading
        .wait_for_process(0, std::future::ready(Ok(process)));
    let (question, answer) = answered(extensions).await;
    let LoadAnswer::Process(Ok(process)) = answer else {
        panic!("no process for {question:?}");
    };
    let process: ExtensionProcess = process;
    extensions
        .loading
        .open(&mut extensions.links, 0, process, &opening());
    simulated
}

#[tokio::test]
async fn loading_ends_with_resources_of_ready_processes() {
    let mut extensions = extensions(vec![found("a.ts", Scope::User)]);
    assert_eq!(
        extensions.loading.begin(&mut extensions.links, false),
        [LoadAction::StartProcess(0)]
    );
    assert!(extensions.is_opening() && !extensions.is_at_rest());
    let mut process = start(&mut extensions).await;
    let registered = json!({"extensions": [{"path": "a.ts", "events": ["session_start", "input"]}]});
    let line = process.answer("open", registered).await;
    assert_eq!(line["extensions"][0]["path"], "a.ts");
    let (question, answer) = value(&mut extensions).await;
    assert_eq!(question, LoadQuestion::Open(0));
    assert_eq!(
        extensions.loading.on_opened(&mut extensions.links, 0, answer),
        [LoadAction::UseRegistrations, LoadAction::Begin(vec![0])]
    );
    assert!(extensions.has_listener("input") && !extensions.has_listener("tool_call"));
    // The session begins for the extensions before they are asked for resources.
    assert_eq!(extensions.loading.begin_at(&mut extensions.links, &[0]), None);
    let line = process.answer("event", Value::Null).await;
    assert_eq!(
        line["event"],
        json!({"type": "session_start", "reason": "startup"})
    );
    assert_eq!(value(&mut extensions).await.0, LoadQuestion::Start(0));
    assert_eq!(
        extensions.loading.on_started(&mut extensions.links, 0),
        Some(LoadAction::AskResources)
    );
    extensions.loading.finish(&extensions.links);
    assert!(!extensions.is_opening() && extensions.is_at_rest());
}

#[tokio::test]
async fn unavailable_process_is_reported_and_session_goes_on() {
    let mut extensions = extensions(vec![found("a.ts", Scope::User), found("b.ts", Scope::User)]);
    extensions.loading.begin(&mut extensions.links, false);
    let actions = extensions.loading.without(&mut extensions.links, 0, "no runtime");
    let reported: Vec<&str> = actions
        .iter()
        .filter_map(|action| match action {
            LoadAction::Report(failure) => Some(failure.path.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(reported, ["a.ts", "b.ts"]);
    assert_eq!(actions.last(), Some(&LoadAction::Begin(Vec::new())));
    assert_eq!(
        extensions.loading.begin_at(&mut extensions.links, &[]),
        Some(LoadAction::AskResources)
    );
}

#[tokio::test]
async fn project_extensions_load_after_trust_decision() {
    let mut extensions = extensions(vec![found("p.ts", Scope::Project), found("u.ts", Scope::User)]);
    assert!(extensions.may_decide_on_trust());
    extensions.loading.begin(&mut extensions.links, true);
    let mut process = start(&mut extensions).await;
    let line = process
        .answer("open", json!({"extensions": [{"path": "u.ts"}]}))
        .await;
    assert_eq!(line["extensions"].as_array().unwrap().len(), 1);
    let (_, answer) = value(&mut extensions).await;
    assert_eq!(
        extensions.loading.on_opened(&mut extensions.links, 0, answer),
        [LoadAction::UseRegistrations, LoadAction::AskTrust]
    );
    // Undecided: the withheld extension is loaded, and the session begins only then.
    let decision = TrustDecision::parse(&json!({"trusted": "perhaps"}));
    assert_eq!((decision.trusted, decision.remember), (None, false));
    assert_eq!(
        extensions.loading.load_withheld(&mut extensions.links),
        [LoadAction::LoadMore(0), LoadAction::Begin(Vec::new())]
    );
    extensions.loading.load_more(&mut extensions.links, 0);
    let line = process
        .answer("call", json!({"extensions": [{"path": "p.ts"}]}))
        .await;
    assert_eq!(line["params"]["extensions"][0]["path"], "p.ts");
    let (question, answer) = value(&mut extensions).await;
    assert_eq!(question, LoadQuestion::LoadMore(0));
    assert_eq!(
        extensions
            .loading
            .on_loaded_more(&mut extensions.links, 0, answer),
        [LoadAction::UseRegistrations, LoadAction::Begin(vec![0])]
    );
    // Project extensions come first, as without a question.
    let paths: Vec<&str> = extensions
        .links
        .registered()
        .iter()
        .map(|extension| extension.path.as_str())
        .collect();
    assert_eq!(paths, ["p.ts", "u.ts"]);
}

#[tokio::test]
async fn lost_guard_is_missed_until_loaded_again() {
    let mut extensions = extensions(vec![found("a.ts", Scope::User)]);
    extensions.loading.begin(&mut extensions.links, false);
    let mut process = start(&mut extensions).await;
    let guard = json!({"extensions": [{"path": "a.ts", "events": ["tool_call"]}]});
    process.answer("open", guard.clone()).await;
    let (_, answer) = value(&mut extensions).await;
    extensions.loading.on_opened(&mut extensions.links, 0, answer);
    extensions.loading.begin_at(&mut extensions.links, &[0]);
    assert!(!extensions.links.misses_a_guard());
    let actions = extensions.lose(0, "it crashed");
    assert!(matches!(
        actions.as_slice(),
        [LoadAction::UseRegistrations, LoadAction::Report(failure), LoadAction::StartProcess(0)]
            if failure.path == "a.ts"
    ));
    assert!(extensions.links.misses_a_guard() && extensions.is_opening());
    let mut process = start(&mut extensions).await;
    process.answer("open", guard).await;
    let (_, answer) = value(&mut extensions).await;
    extensions.loading.on_opened(&mut extensions.links, 0, answer);
    assert!(!extensions.links.misses_a_guard());
    assert!(extensions.links.has_restarted());
}

#[tokio::test]
async fn guard_of_manifest_stays_when_program_changes_its_registrations() {
    let program = Program {
        path: "/p/gate".into(),
        command: vec!["gate".to_owned()],
        name: "gate".to_owned(),
        events: vec!["tool_call".to_owned()],
    };
    let gate = Found {
        runs: Ok(Key::Program(Arc::new(program))),
        ..found("/p/gate", Scope::User)
    };
    let mut extensions = extensions(vec![gate]);
    extensions.loading.begin(&mut extensions.links, false);
    let mut process = start(&mut extensions).await;
    process.answer("open", json!({"extensions": [{}]})).await;
    let (_, answer) = value(&mut extensions).await;
    extensions.loading.on_opened(&mut extensions.links, 0, answer);
    assert!(extensions.has_listener("tool_call"));
    extensions.change_registered(0, registered(json!({"commands": [{"name": "bye"}]})));
    assert!(extensions.has_listener("tool_call"));
    assert_eq!(extensions.links.registered()[0].commands[0].name, "bye");
    extensions.lose(0, "it crashed");
    assert!(extensions.links.misses_a_guard());
}

#[tokio::test]
async fn change_handled_before_answer_is_kept() {
    let mut extensions = extensions(vec![found("a.ts", Scope::User)]);
    extensions.loading.begin(&mut extensions.links, false);
    let mut process = start(&mut extensions).await;
    let named = |name: &str| json!({"path": "a.ts", "commands": [{"name": name}]});
    process
        .answer("open", json!({"extensions": [named("old")]}))
        .await;
    let (_, answer) = value(&mut extensions).await;
    // Both are there; the session handles messages first.
    extensions.change_registered(0, registered(named("new")));
    extensions.loading.on_opened(&mut extensions.links, 0, answer);
    let commands: Vec<&str> = extensions
        .links
        .registered()
        .iter()
        .flat_map(|extension| &extension.commands)
        .map(|command| command.name.as_str())
        .collect();
    assert_eq!(commands, ["new"]);
}

#[tokio::test]
async fn deadline_reports_late_extensions_once() {
    let mut extensions = extensions(vec![found("a.ts", Scope::User)]);
    extensions.loading.begin(&mut extensions.links, false);
    assert!(matches!(
        extensions.loading.on_deadline(&extensions.links).as_slice(),
        [LoadAction::Report(failure)] if failure.path == "a.ts"
    ));
    assert!(!extensions.is_opening());
    assert_eq!(extensions.loading.on_deadline(&extensions.links), []);
}
