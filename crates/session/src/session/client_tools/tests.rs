//! Tools and URIs of a client, without a session and without a client.

use agent::{Prepared, ToolInput};
use process::Reaper;
use serde_json::{Value, json};
use tools::{Toolbox, ToolsConfig};
use wire::hosted::Frame;
use wire::{Event, ToolCall};

use super::super::tool_calls::{CallUpdate, Environment, Place, ToolCalls, ToolRegistry};
use super::*;
use permissions::Source;

/// Calls, and a client that is asked.
struct Stage {
    calls: ToolCalls,
    tools: ToolRegistry,
    client: ClientTools,
}

fn toolbox() -> Toolbox {
    Toolbox::new(ToolsConfig::default(), Reaper::direct())
}

impl Stage {
    /// A client with one tool, `lookup`, and two schemes, `db` and `log`, of which only `db` is writable.
    fn new() -> Self {
        let client = ClientTools::default();
        let mut stage = Self {
            calls: ToolCalls::new(),
            tools: ToolRegistry::new(Vec::new()),
            client: client.clone(),
        };
        stage.define(&["lookup"]);
        let schemes = [
            json!({"scheme": "db", "writable": true, "description": "a database"}),
            json!({"scheme": "log"}),
        ];
        let schemes = HostUriSchemesParams {
            schemes: schemes.to_vec(),
        };
        client.set_schemes(&schemes, &mut stage.tools).unwrap();
        stage
    }

    fn define(&mut self, names: &[&str]) {
        let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
        let values = names.iter().map(|name| {
            json!({"name": name, "description": format!("finds {name}\nslowly"), "parameters": schema})
        });
        let params = HostToolsParams {
            tools: values.collect(),
        };
        self.set(&params, &[]).unwrap();
    }

    fn set(&mut self, params: &HostToolsParams, excluded: &[String]) -> Result<HostToolNames, String> {
        let activation = Activation {
            named: &["named*".to_owned()],
            excluded,
        };
        self.client.set_tools(params, &mut self.tools, activation)
    }

    fn prepare(&mut self, slot: usize, name: &str, arguments: Value) -> Prepared {
        let call = ToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            ..ToolCall::default()
        };
        self.calls.prepare(&self.tools, slot, &call)
    }

    /// Starts a call; gives the event that asks the client, as JSON, and its id.
    fn start(&mut self, slot: usize, name: &str, arguments: Value) -> (Value, String) {
        assert!(matches!(self.prepare(slot, name, arguments), Prepared::Run));
        self.run(slot);
        let [event] = <[Event; 1]>::try_from(self.client.take_outgoing()).unwrap();
        let event = serde_json::to_value(event).unwrap();
        let id = event.get("id").unwrap().as_str().unwrap().to_owned();
        (event, id)
    }

    fn run(&mut self, slot: usize) {
        let environment = Environment {
            session: String::new(),
            toolbox: toolbox(),
            cwd: "/project".into(),
            env: Vec::new(),
            sees_images: false,
            shrinks_images: false,
            tmp_dir: "/tmp".into(),
            checkpoint: None,
            start_line: None,
            task_owner: None,
        };
        self.calls.run(slot, environment);
    }

    /// What a call that goes on now reports: its text, and whether it has failed if it has ended.
    async fn settled(&mut self, slot: usize) -> (String, Option<bool>) {
        let report = self.calls.settle(slot).await.unwrap();
        match self.calls.accept(report) {
            Some((_, CallUpdate::Input(ToolInput::Progress(partial)))) => (partial.joined_text(), None),
            Some((_, CallUpdate::Input(ToolInput::Done { result, is_error, .. }))) => {
                (result.joined_text(), Some(is_error))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn result(id: &str, result: Value) -> Frame {
    let frame = json!({"id": id, "result": result});
    Frame::ToolResult(serde_json::from_value(frame).unwrap())
}

fn update(id: &str, partial: Value) -> Frame {
    let frame = json!({"id": id, "partialResult": partial});
    Frame::ToolUpdate(serde_json::from_value(frame).unwrap())
}

fn uri_result(id: &str, content: Value) -> Frame {
    let frame = json!({"id": id, "content": content});
    Frame::UriResult(serde_json::from_value(frame).unwrap())
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn call_waits_for_the_answer() {
    let mut stage = Stage::new();
    let (event, id) = stage.start(2, "lookup", json!({"n": "5"}));
    assert_eq!(event.get("toolCallId"), Some(&json!("c1")));
    // The arguments have the types of the schema.
    assert_eq!(event.get("arguments"), Some(&json!({"n": 5})));
    assert!(stage.client.are_asked() && stage.client.are_in_use());
    assert_eq!(stage.client.answer(update(&id, text("half"))), Ok(Some(2)));
    assert_eq!(stage.settled(2).await, ("half".to_owned(), None));
    assert_eq!(stage.client.answer(result(&id, text("found"))), Ok(Some(2)));
    assert_eq!(stage.settled(2).await, ("found".to_owned(), Some(false)));
    assert!(!stage.client.are_asked());
    // A second answer finds no request.
    assert_eq!(stage.client.answer(result(&id, text("again"))), Ok(None));
}

#[tokio::test]
async fn malformed_answer_leaves_request_open() {
    let mut stage = Stage::new();
    let (_, id) = stage.start(0, "lookup", json!({}));
    assert!(stage.client.answer(result(&id, json!({}))).is_err());
    assert!(stage.client.answer(update(&id, json!(1))).is_err());
    assert_eq!(stage.client.answer(uri_result(&id, json!("x"))), Ok(None));
    assert_eq!(stage.client.answer(result(&id, text("found"))), Ok(Some(0)));
}

#[tokio::test]
async fn withdrawn_request_ends_the_call() {
    let mut stage = Stage::new();
    let (_, id) = stage.start(0, "lookup", json!({}));
    stage.calls.cancel();
    assert!(stage.client.withdraw(|slot| slot == 1).is_empty());
    let [withdrawn] = <[_; 1]>::try_from(stage.client.withdraw(|_| true)).ok().unwrap();
    assert_eq!(withdrawn.slot, 0);
    assert!(matches!(withdrawn.event, Some(Event::HostToolCancel { target_id, .. }) if target_id == id));
    let aborted = strings::host_tool_aborted("lookup");
    assert_eq!(stage.settled(0).await, (aborted, Some(true)));
    assert_eq!(stage.client.answer(result(&id, text("late"))), Ok(None));
}

#[tokio::test]
async fn lost_client_fails_calls_without_event() {
    let mut stage = Stage::new();
    let (_, _) = stage.start(0, "lookup", json!({}));
    stage.client.lose_client();
    let [withdrawn] = <[_; 1]>::try_from(stage.client.withdraw(|_| true)).ok().unwrap();
    assert!(withdrawn.event.is_none());
    let gone = (strings::HOST_GONE_TOOL.to_owned(), Some(true));
    assert_eq!(stage.settled(0).await, gone);
    assert!(matches!(stage.prepare(1, "lookup", json!({})), Prepared::Run));
    stage.run(1);
    assert!(stage.client.take_outgoing().is_empty());
    assert_eq!(stage.settled(1).await, gone);
}

#[tokio::test]
async fn cancelled_call_asks_nothing() {
    let mut stage = Stage::new();
    assert!(matches!(stage.prepare(0, "lookup", json!({})), Prepared::Run));
    stage.calls.cancel();
    stage.run(0);
    assert!(stage.client.take_outgoing().is_empty());
    let aborted = strings::host_tool_aborted("lookup");
    assert_eq!(stage.settled(0).await, (aborted, Some(true)));
}

#[test]
fn definition_follows_what_was_set_last() {
    let mut stage = Stage::new();
    let tool = Arc::clone(stage.tools.find("lookup").unwrap());
    let definition = tool.definition();
    assert_eq!(definition.spec.description, "finds lookup\nslowly");
    assert_eq!(definition.snippet.as_deref(), Some("finds lookup"));
    stage.define(&["other"]);
    assert!(stage.tools.find("lookup").is_none());
    let definition = tool.definition();
    assert_eq!(definition.spec.name, "lookup");
    assert!(definition.spec.description.is_empty() && definition.spec.parameters.is_null());
}

#[tokio::test]
async fn read_of_client_uri_asks_the_client() {
    let mut stage = Stage::new();
    let (event, id) = stage.start(0, "read", json!({"path": " DB://a/b "}));
    assert_eq!(event.get("url"), Some(&json!("DB://a/b")));
    assert!(stage.client.answer(uri_result(&id, json!(1))).is_err());
    assert_eq!(stage.client.answer(uri_result(&id, json!("rows"))), Ok(Some(0)));
    assert_eq!(stage.settled(0).await, ("rows".to_owned(), Some(false)));
}

#[test]
fn hook_cannot_lead_client_uri_elsewhere() {
    let mut stage = Stage::new();
    assert!(matches!(
        stage.prepare(0, "read", json!({"path": "db://a"})),
        Prepared::Run
    ));
    let other = json!({"path": "/etc/passwd"});
    stage.calls.change_args(0, other.as_object().unwrap().clone());
    let toolbox = toolbox();
    let place = Place {
        toolbox: &toolbox,
        cwd: "/project".as_ref(),
    };
    let subject = stage.calls.subject(0, place).unwrap();
    assert_eq!(subject.proposal().source, Source::ClientUri);
    assert_eq!(subject.proposal().description, "a database");
    assert_eq!(subject.proposal().args.get("path"), Some(&json!("db://a")));
    assert_eq!(subject.call().shown(), "db://a");
}

#[tokio::test]
async fn hook_changes_content_of_client_uri() {
    let mut stage = Stage::new();
    let write = json!({"path": "db://a", "content": "secret"});
    assert!(matches!(stage.prepare(0, "write", write), Prepared::Run));
    let changed = json!({"path": "db://b", "content": "[removed]"});
    stage.calls.change_args(0, changed.as_object().unwrap().clone());
    stage.run(0);
    let [event] = <[Event; 1]>::try_from(stage.client.take_outgoing()).unwrap();
    let event = serde_json::to_value(event).unwrap();
    assert_eq!(
        (event.get("url"), event.get("content")),
        (Some(&json!("db://a")), Some(&json!("[removed]")))
    );
}

#[test]
fn write_to_readable_scheme_is_refused() {
    let mut stage = Stage::new();
    let args = json!({"path": "log://a", "content": "x"});
    match stage.prepare(0, "write", args) {
        Prepared::Refused(refused) => {
            assert_eq!(refused.joined_text(), strings::read_only_scheme("log"));
        }
        Prepared::Run => panic!("it may run"),
    }
}

#[test]
fn path_without_client_scheme_stays_a_file() {
    let mut stage = Stage::new();
    assert!(matches!(
        stage.prepare(0, "read", json!({"path": "other://a"})),
        Prepared::Run
    ));
    let toolbox = toolbox();
    let place = Place {
        toolbox: &toolbox,
        cwd: "/project".as_ref(),
    };
    let subject = stage.calls.subject(0, place).unwrap();
    assert_eq!(subject.proposal().source, Source::BuiltIn);
}

fn definition(name: &str, hidden: bool) -> Value {
    json!({"name": name, "description": "d", "parameters": {"type": "object"}, "hidden": hidden})
}

#[test]
fn hidden_tool_needs_the_command_line() {
    let mut stage = Stage::new();
    let tools = ["plain", "hidden", "named_one", "off"]
        .map(|name| definition(name, name != "plain" && name != "off"));
    let params = HostToolsParams {
        tools: tools.to_vec(),
    };
    let names = stage.set(&params, &["off".to_owned()]).unwrap().tool_names;
    assert_eq!(names, ["plain", "hidden", "named_one", "off"]);
    let active: Vec<_> = names.iter().filter(|name| stage.tools.is_active(name)).collect();
    assert_eq!(active, ["plain", "named_one"]);
}

#[test]
fn tool_with_built_in_name_changes_nothing() {
    let mut stage = Stage::new();
    let params = HostToolsParams {
        tools: vec![definition("other", false), definition("read", false)],
    };
    assert!(stage.set(&params, &[]).unwrap_err().contains("read"));
    assert!(stage.tools.has(Layer::Client, "lookup") && !stage.tools.has(Layer::Client, "other"));
}

#[tokio::test]
async fn open_request_leads_answers_to_its_session() {
    let mut stage = Stage::new();
    let (_, id) = stage.start(0, "lookup", json!({}));
    assert_eq!(stage.client.routes.find(&id), Some(None));
    stage.client.withdraw(|_| true);
    assert_eq!(stage.client.routes.find(&id), None);
}
