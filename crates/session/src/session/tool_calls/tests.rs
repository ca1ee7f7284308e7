//! Calls of tools that do nothing, without a session around them.

use std::path::PathBuf;
use std::sync::Arc;

use process::Reaper;
use serde_json::{Map, Value, json};
use tools::{ToolOutcome, Toolbox, ToolsConfig};
use wire::{ToolCall, ToolResult, ToolSpec};

use super::*;
use permissions::Source;

/// How a fake tool ends.
#[derive(Clone, Copy)]
enum Ending {
    /// With its arguments as text, after one partial result.
    Echo,
    /// When it is cancelled.
    Cancelled,
    /// Never.
    Deaf,
}

struct Fake {
    name: &'static str,
    source: Source,
    ending: Ending,
    rewrites: bool,
}

impl Fake {
    fn new(name: &'static str, ending: Ending) -> Self {
        Self {
            name,
            source: Source::Client,
            ending,
            rewrites: false,
        }
    }
}

impl Tool for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self) -> Definition {
        Definition {
            spec: ToolSpec {
                name: self.name.to_owned(),
                description: "does nothing".to_owned(),
                parameters: json!({"type": "object"}),
                prefers_strict: false,
            },
            snippet: None,
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        self.source.clone()
    }

    fn starts_active(&self) -> bool {
        !self.name.starts_with("later")
    }

    fn access(&self, args: &Map<String, Value>, place: Place<'_>) -> Access {
        match &self.source {
            Source::Extension(_) => built_in_access(self.name, args, place),
            _ => Access::Unknown,
        }
    }

    fn rewrite(&self, _call: &ToolCall) -> Option<Rewriting> {
        self.rewrites
            .then(|| -> Rewriting { Box::pin(async { Ok(args(json!({"n": 7}))) }) })
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        if call.arguments.contains_key("bad") {
            return Err("bad arguments".to_owned());
        }
        let args = call.arguments.clone();
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let ending = self.ending;
        Box::pin(async move {
            match ending {
                Ending::Echo => {
                    call.progress.send(ToolResult::text("half")).await;
                    ToolOutcome::ok(ToolResult::text(Value::Object(call.args).to_string()))
                }
                Ending::Cancelled => {
                    call.cancel.cancelled().await;
                    ToolOutcome::error(format!("{} was cancelled", call.id))
                }
                Ending::Deaf => std::future::pending().await,
            }
        })
    }
}

fn args(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: format!("id of {name}"),
        name: name.to_owned(),
        arguments: args(arguments),
        ..ToolCall::default()
    }
}

fn toolbox() -> Toolbox {
    Toolbox::new(ToolsConfig::default(), Reaper::direct())
}

fn environment() -> Environment {
    Environment {
        session: String::new(),
        toolbox: toolbox(),
        cwd: PathBuf::from("/project"),
        env: Vec::new(),
        sees_images: false,
        shrinks_images: false,
        tmp_dir: PathBuf::from("/tmp"),
        checkpoint: None,
        start_line: None,
        task_owner: None,
    }
}

/// A registry of client tools.
fn registry(tools: impl IntoIterator<Item = Fake>) -> ToolRegistry {
    let mut registry = ToolRegistry::default();
    set(&mut registry, Layer::Client, tools);
    registry
}

fn set(registry: &mut ToolRegistry, layer: Layer, tools: impl IntoIterator<Item = Fake>) {
    let tools = tools.into_iter();
    registry.set(
        layer,
        tools.map(|tool| -> Arc<dyn Tool> { Arc::new(tool) }).collect(),
    );
}

fn refusal(prepared: &Prepared) -> String {
    match prepared {
        Prepared::Refused(result) => result.joined_text(),
        Prepared::Run => panic!("it may run"),
    }
}

/// The next report that counts: the slot, the text, and whether it is a failure; none for a partial result.
async fn next(calls: &mut ToolCalls) -> (usize, String, Option<bool>) {
    loop {
        let report = calls.next().await;
        match calls.accept(report) {
            Some((slot, CallUpdate::Input(ToolInput::Progress(partial)))) => {
                return (slot, partial.joined_text(), None);
            }
            Some((slot, CallUpdate::Input(ToolInput::Done { result, is_error, .. }))) => {
                return (slot, result.joined_text(), Some(is_error));
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
}

/// Prepares a call and starts it.
fn start(calls: &mut ToolCalls, tools: &ToolRegistry, slot: usize, call: &ToolCall) {
    assert!(matches!(calls.prepare(tools, slot, call), Prepared::Run));
    calls.run(slot, environment());
}

#[test]
fn prepare_of_unknown_tool_refuses() {
    let (mut calls, tools) = (ToolCalls::new(), registry([]));
    let prepared = calls.prepare(&tools, 0, &call("nothing", json!({})));
    assert_eq!(refusal(&prepared), "Tool nothing not found");
    assert!(calls.args(0).is_none());
}

#[test]
fn prepare_with_bad_arguments_refuses() {
    let (mut calls, tools) = (ToolCalls::new(), registry([Fake::new("echo", Ending::Echo)]));
    let prepared = calls.prepare(&tools, 0, &call("echo", json!({"bad": 1})));
    assert_eq!(refusal(&prepared), "bad arguments");
    assert!(calls.args(0).is_none());
}

#[tokio::test]
async fn changed_arguments_reach_the_tool() {
    let (mut calls, tools) = (ToolCalls::new(), registry([Fake::new("echo", Ending::Echo)]));
    assert!(matches!(
        calls.prepare(&tools, 3, &call("echo", json!({"n": 1}))),
        Prepared::Run
    ));
    assert_eq!(calls.args(3), Some(&args(json!({"n": 1}))));
    calls.change_args(3, args(json!({"n": 2})));
    assert_eq!(calls.args(3), Some(&args(json!({"n": 2}))));
    calls.run(3, environment());
    assert_eq!(next(&mut calls).await, (3, "half".to_owned(), None));
    assert_eq!(next(&mut calls).await, (3, r#"{"n":2}"#.to_owned(), Some(false)));
}

#[tokio::test]
async fn prepared_call_keeps_replaced_tool() {
    let (mut calls, mut tools) = (ToolCalls::new(), registry([Fake::new("echo", Ending::Echo)]));
    assert!(matches!(
        calls.prepare(&tools, 0, &call("echo", json!({}))),
        Prepared::Run
    ));
    set(&mut tools, Layer::Client, []);
    calls.run(0, environment());
    assert_eq!(next(&mut calls).await.1, "half");
}

#[test]
fn subject_names_source_and_access() {
    let mut tools = ToolRegistry::new(Vec::new());
    let extension = Fake {
        source: Source::Extension("/e.ts".to_owned()),
        ..Fake::new("edit", Ending::Echo)
    };
    set(&mut tools, Layer::Extension, [extension]);
    set(&mut tools, Layer::Client, [Fake::new("lookup", Ending::Echo)]);
    let toolbox = toolbox();
    let place = Place {
        toolbox: &toolbox,
        cwd: "/project".as_ref(),
    };
    let subject = |name: &str, arguments: Value| {
        let mut calls = ToolCalls::new();
        assert!(matches!(
            calls.prepare(&tools, 0, &call(name, arguments)),
            Prepared::Run
        ));
        let subject = calls.subject(0, place).unwrap();
        (
            subject.proposal().source,
            subject.proposal().identity().is_some(),
            subject.call().shown(),
        )
    };
    assert_eq!(
        subject("bash", json!({"command": "ls -l"})),
        (Source::BuiltIn, false, "ls -l".to_owned())
    );
    assert_eq!(
        subject("read", json!({"path": "a"})),
        (Source::BuiltIn, false, "/project/a".to_owned())
    );
    // The extension took the place of a built-in tool, so rules for files hold for it.
    assert_eq!(
        subject("edit", json!({"path": "b"})),
        (
            Source::Extension("/e.ts".to_owned()),
            true,
            "/project/b".to_owned()
        )
    );
    assert_eq!(
        subject("lookup", json!({"path": "b"})),
        (Source::Client, true, String::new())
    );
    assert!(ToolCalls::new().subject(0, place).is_none());
}

#[tokio::test]
async fn cancel_ends_all_calls() {
    let (mut calls, tools) = (ToolCalls::new(), registry([Fake::new("wait", Ending::Cancelled)]));
    start(&mut calls, &tools, 0, &call("wait", json!({})));
    start(&mut calls, &tools, 1, &call("wait", json!({})));
    calls.cancel();
    let mut slots = Vec::new();
    for _ in 0..2 {
        let (slot, text, failed) = next(&mut calls).await;
        assert_eq!((text.as_str(), failed), ("id of wait was cancelled", Some(true)));
        slots.push(slot);
    }
    slots.sort_unstable();
    assert_eq!(slots, [0, 1]);
}

#[tokio::test]
async fn cancel_one_leaves_other_calls_running() {
    let (mut calls, tools) = (ToolCalls::new(), registry([Fake::new("wait", Ending::Cancelled)]));
    calls.isolate(1);
    start(&mut calls, &tools, 0, &call("wait", json!({})));
    start(&mut calls, &tools, 1, &call("wait", json!({})));
    calls.cancel_one(1);
    assert_eq!(next(&mut calls).await.0, 1);
    assert!(calls.token(1).is_cancelled() && !calls.token(0).is_cancelled());
    // Without a token of its own a call is stopped only with the batch.
    calls.cancel_one(0);
    assert!(!calls.token(0).is_cancelled());
    calls.cancel();
    assert_eq!(next(&mut calls).await.0, 0);
}

#[tokio::test]
async fn cancelled_tool_that_hangs_is_given_up() {
    let grace = Duration::from_millis(20);
    let (mut calls, tools) = (
        ToolCalls::with_grace(grace),
        registry([Fake::new("deaf", Ending::Deaf)]),
    );
    start(&mut calls, &tools, 0, &call("deaf", json!({})));
    calls.cancel();
    let started = Instant::now();
    assert_eq!(
        next(&mut calls).await,
        (0, "Operation aborted".to_owned(), Some(true))
    );
    assert!(started.elapsed() >= grace);
}

#[tokio::test]
async fn reset_drops_reports_of_older_batch() {
    let tools = registry([
        Fake::new("wait", Ending::Cancelled),
        Fake::new("echo", Ending::Echo),
    ]);
    let mut calls = ToolCalls::new();
    calls.note(0, &call("wait", json!({})));
    start(&mut calls, &tools, 0, &call("wait", json!({})));
    assert!(calls.call(0).is_some());
    calls.cancel();
    let late = calls.next().await;
    calls.reset();
    assert!(calls.accept(late).is_none());
    assert!(calls.call(0).is_none());
    // The next batch is not cancelled.
    assert!(!calls.token(0).is_cancelled());
    start(&mut calls, &tools, 0, &call("echo", json!({})));
    assert_eq!(next(&mut calls).await.1, "half");
}

#[tokio::test]
async fn reset_forgets_prepared_calls() {
    let (mut calls, tools) = (ToolCalls::new(), registry([Fake::new("echo", Ending::Echo)]));
    assert!(matches!(
        calls.prepare(&tools, 0, &call("echo", json!({}))),
        Prepared::Run
    ));
    calls.reset();
    assert!(calls.args(0).is_none());
    calls.run(0, environment());
    // Only the second call reports, since the first was forgotten.
    start(&mut calls, &tools, 1, &call("echo", json!({})));
    assert_eq!(next(&mut calls).await.0, 1);
}

#[tokio::test]
async fn settle_keeps_reports_of_other_calls() {
    let tools = registry([
        Fake::new("echo", Ending::Echo),
        Fake::new("wait", Ending::Cancelled),
    ]);
    let mut calls = ToolCalls::new();
    calls.isolate(1);
    start(&mut calls, &tools, 0, &call("echo", json!({"n": 1})));
    start(&mut calls, &tools, 1, &call("wait", json!({})));
    // The reports of the first call are there before the second call reports.
    tokio::task::yield_now().await;
    calls.cancel_one(1);
    let settled = calls.settle(1).await.unwrap();
    assert!(matches!(
        calls.accept(settled),
        Some((1, CallUpdate::Input(ToolInput::Done { .. })))
    ));
    assert_eq!(next(&mut calls).await, (0, "half".to_owned(), None));
    assert_eq!(next(&mut calls).await, (0, r#"{"n":1}"#.to_owned(), Some(false)));
}

#[tokio::test]
async fn settle_without_report_times_out() {
    let (mut calls, tools) = (
        ToolCalls::with_grace(Duration::from_millis(20)),
        registry([Fake::new("deaf", Ending::Deaf)]),
    );
    start(&mut calls, &tools, 0, &call("deaf", json!({})));
    assert!(calls.settle(0).await.is_none());
}

fn rewriting() -> ToolRegistry {
    registry([Fake {
        rewrites: true,
        ..Fake::new("echo", Ending::Echo)
    }])
}

#[tokio::test]
async fn rewritten_arguments_are_reported() {
    let (mut calls, tools) = (ToolCalls::new(), rewriting());
    assert!(calls.rewrite(&tools, 2, &call("echo", json!({"n": 1}))));
    let report = calls.next().await;
    match calls.accept(report) {
        Some((2, CallUpdate::Rewritten(Ok(rewritten)))) => assert_eq!(rewritten, args(json!({"n": 7}))),
        other => panic!("{other:?}"),
    }
    assert!(calls.stop_rewriting().is_empty());
}

#[tokio::test]
async fn stopped_rewriting_does_not_count() {
    let (mut calls, tools) = (ToolCalls::new(), rewriting());
    assert!(calls.rewrite(&tools, 2, &call("echo", json!({}))));
    let late = calls.next().await;
    assert_eq!(calls.stop_rewriting(), [2]);
    assert!(calls.accept(late).is_none());
}

#[test]
fn rewrite_without_wish_reports_nothing() {
    let (mut calls, tools) = (ToolCalls::new(), registry([Fake::new("echo", Ending::Echo)]));
    assert!(!calls.rewrite(&tools, 0, &call("echo", json!({}))));
    assert!(!calls.rewrite(&tools, 0, &call("nothing", json!({}))));
}

#[tokio::test]
async fn todo_call_waits_for_the_session() {
    let (mut calls, tools) = (ToolCalls::new(), ToolRegistry::new(Vec::new()));
    let name = agent::todo::TOOL;
    let bad = calls.prepare(&tools, 0, &call(name, json!({"ops": 1})));
    assert!(matches!(bad, Prepared::Refused(_)));
    let ops = json!({"ops": [{"op": "add_phase", "name": "One"}]});
    start(&mut calls, &tools, 4, &call(name, ops));
    let [write] = <[_; 1]>::try_from(tools.take_todo_writes()).ok().unwrap();
    assert_eq!((write.slot, write.ops.len()), (4, 1));
    assert!(tools.take_todo_writes().is_empty());
    write.done.send(ToolResult::text("written")).unwrap();
    assert_eq!(next(&mut calls).await, (4, "written".to_owned(), Some(false)));
}

/// The source of the tool that runs for a name.
fn found(tools: &ToolRegistry, name: &str) -> Source {
    tools.find(name).unwrap().source()
}

fn of(source: Source, name: &'static str) -> Fake {
    Fake {
        source,
        ..Fake::new(name, Ending::Echo)
    }
}

#[test]
fn lookup_prefers_extension_over_other_layers() {
    let mut tools = ToolRegistry::new(Vec::new());
    assert_eq!(found(&tools, "read"), Source::BuiltIn);
    let client = || of(Source::Client, "read");
    set(&mut tools, Layer::Client, [client()]);
    assert_eq!(found(&tools, "read"), Source::Client);
    set(
        &mut tools,
        Layer::Mcp,
        [of(Source::McpResources(Vec::new()), "read")],
    );
    assert_eq!(found(&tools, "read"), Source::McpResources(Vec::new()));
    set(
        &mut tools,
        Layer::Extension,
        [of(Source::Extension("e".to_owned()), "read")],
    );
    assert_eq!(found(&tools, "read"), Source::Extension("e".to_owned()));
    set(&mut tools, Layer::Extension, []);
    assert_eq!(found(&tools, "read"), Source::McpResources(Vec::new()));
}

#[test]
fn lists_keep_order_of_layers() {
    let mut tools = ToolRegistry::new(Vec::new());
    let todo = agent::todo::TOOL;
    // Set in another order than they are listed in.
    set(
        &mut tools,
        Layer::Client,
        [of(Source::Client, "c"), of(Source::Client, "m")],
    );
    set(
        &mut tools,
        Layer::Mcp,
        [of(Source::McpResources(Vec::new()), "m")],
    );
    set(
        &mut tools,
        Layer::Extension,
        [of(Source::Extension("e".to_owned()), "write")],
    );
    let active = ["c", "m", todo, "write", "read", "bash"].map(str::to_owned);
    tools.activate(active.to_vec(), ChosenBy::Client);
    let names = |tools: &ToolRegistry| -> Vec<String> {
        let active = tools.active();
        active.map(|tool| tool.name().to_owned()).collect()
    };
    // The built-in `write` is replaced; two tools of one name in other layers are both listed.
    assert_eq!(names(&tools), ["read", "bash", todo, "write", "m", "c", "m"]);
    set(
        &mut tools,
        Layer::Extension,
        [of(Source::Extension("e".to_owned()), todo)],
    );
    assert_eq!(names(&tools), ["read", "bash", "write", todo, "m", "c", "m"]);
    assert!(tools.has(Layer::Optional, todo));
}

/// Replaces the client tools by others, of which names with `h` at the start are hidden.
fn replace(registry: &mut ToolRegistry, names: &[&'static str]) {
    let tools = names.iter();
    let tools = tools.map(|name| -> Arc<dyn Tool> { Arc::new(Fake::new(name, Ending::Echo)) });
    registry.replace(
        Layer::Client,
        tools.collect(),
        |name| name == "kept",
        |name| !name.starts_with('h'),
    );
}

#[test]
fn replaced_tools_stay_as_active_as_before() {
    let mut tools = ToolRegistry::new(vec!["read".to_owned()]);
    replace(&mut tools, &["a", "b", "hidden", "kept"]);
    assert_eq!(tools.active_names(), ["read", "a", "b", "kept"]);
    tools.activate(
        ["read", "b", "hidden", "kept"].map(str::to_owned).to_vec(),
        ChosenBy::Client,
    );
    // `a` was switched off and `hidden` on; `b` and `kept` go, but the name of one of them stays.
    replace(&mut tools, &["hidden", "a", "new"]);
    assert_eq!(tools.active_names(), ["read", "hidden", "kept", "new"]);
    assert!(tools.is_active("new") && !tools.is_active("a"));
    replace(&mut tools, &[]);
    assert_eq!(tools.active_names(), ["read", "kept"]);
}

#[test]
fn tool_that_starts_inactive_has_to_be_named() {
    let mut tools = ToolRegistry::new(vec!["later_named".to_owned()]);
    replace(&mut tools, &["a", "later", "later_named"]);
    assert_eq!(tools.active_names(), ["later_named", "a"]);
    tools.activate(vec!["later".to_owned()], ChosenBy::Session);
    assert_eq!(tools.active_names(), ["later"]);
    tools.begin_session(vec!["read".to_owned()], |_, _| true);
    assert_eq!(tools.active_names(), ["read", "a"]);
}

#[test]
fn active_name_of_other_layer_is_not_doubled() {
    let mut tools = ToolRegistry::new(vec!["read".to_owned()]);
    replace(&mut tools, &["read"]);
    assert_eq!(tools.active_names(), ["read"]);
}

#[test]
fn settings_leave_tools_that_others_brought() {
    let named = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<String>>()
    };
    let mut tools = ToolRegistry::new(named(&["read", "bash"]));
    replace(&mut tools, &["a"]);
    tools.follow_options(&named(&["read", "bash"]), named(&["read", "write"]));
    assert_eq!(tools.active_names(), ["read", "write", "a"]);
    for chosen_by in [ChosenBy::Client, ChosenBy::Session] {
        // The same names as in the settings: who chose them decides.
        tools.activate(named(&["read", "write"]), chosen_by);
        tools.follow_options(&named(&["read", "write"]), named(&["read"]));
        assert_eq!(tools.active_names(), ["read", "write"]);
    }
}
