//! Hooks and custom tools of the older generations, in TypeScript under the real host (dialects.md 10): each sentence there
//! that concerns pi up to 0.34 (`hooks`) and the first oh-my-pi (`omp`), seen from their clients. How the host derives older
//! events is tested with the host itself.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::dialect_outputs::{end, speaking};
use crate::extensions::can_run;
use crate::kit::{LONG, Pi, World, bash, of_type, text, until};
use crate::permissions::ends;

/// Writes a file whose default function has this body.
fn module(path: PathBuf, body: &str) -> String {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        format!("export default function (pi: any) {{\n{body}\n}}\n"),
    )
    .unwrap();
    path.display().to_string()
}

/// A hook of the user's.
fn hook(world: &World, body: &str) -> String {
    module(world.dir.agent_dir().join("hooks/kit.ts"), body)
}

/// A custom tool file: what its factory gives back.
fn tool(path: PathBuf, name: &str, more: &str) -> String {
    let body = format!(
        r#"return {{ name: "{name}", label: "{name}", description: "A tool", parameters: {{ type: "object", properties: {{}} }},
          async execute(id, params, signal, onUpdate) {{ return {{ content: [{{ type: "text", text: "{name} ran" }}] }}; }},
          {more} }};"#
    );
    module(path, &body)
}

fn notes(pi: &Pi) -> Vec<String> {
    let lines = pi.lines();
    let frames = lines.iter().filter(|line| line["method"] == "notify");
    frames
        .map(|frame| frame["message"].as_str().unwrap().to_owned())
        .collect()
}

/// The failures that clients were told of, once there are so many. They are reported in no fixed order with the events of a run.
fn errors(pi: &Pi, count: usize) -> Vec<Value> {
    let reported = || {
        let lines = pi.lines().into_iter();
        let errors = lines.filter(|line| line["type"] == "hook_error");
        errors.collect::<Vec<Value>>()
    };
    until("the failures", || reported().len() >= count);
    reported()
}

/// What the model was told its tools are.
fn tools(world: &World) -> Vec<String> {
    let requests = world.server.requests();
    let tools = requests.last().unwrap().body["tools"].as_array().unwrap().clone();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Every reason of the one `session` event, as a client of that time makes them happen (seeds 002).
#[test]
fn session_hook_event_has_reasons() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"]), Reply::text(["b"])]);
    hook(
        &world,
        r#"pi.on("session", async (event, ctx) => {
          const turn = event.targetTurnIndex === undefined ? "" : " " + event.targetTurnIndex;
          ctx.ui.notify(event.reason + turn);
        });"#,
    );
    let pi = speaking(&world, "hooks");
    pi.say("First");
    pi.say("Second");
    let file = pi.file();
    assert_eq!(pi.get("reset")["cancelled"], false);
    assert_eq!(
        pi.data(json!({"type": "switch_session", "sessionPath": file}))["cancelled"],
        false
    );
    let entries = pi.get("get_branch_messages")["messages"].clone();
    let branched = pi.data(json!({"type": "branch", "entryIndex": entries[1]["entryIndex"]}));
    assert_eq!(branched["text"], "Second");
    until("the branch has begun", || {
        notes(&pi).last().is_some_and(|note| note == "branch")
    });
    let expected = [
        "start",
        "before_new",
        "before_clear",
        "new",
        "clear",
        "before_switch",
        "switch",
        "before_branch 1",
        "branch",
    ];
    assert_eq!(notes(&pi), expected);
    end(&pi);
}

/// Cancelled: `reset`, `new_session`, `switch_session` and `branch`, which still gives the text (seeds 002 and 003).
#[test]
fn cancelling_session_hook_prevents_change() {
    if !can_run() {
        return;
    }
    let first = r#"pi.on("session", async (event) => event.reason.startsWith("before_") ? { cancel: true } : undefined);"#;
    let later = r#"pi.on("session_before_switch", async () => ({ cancel: true }));
        pi.on("session_before_branch", async () => ({ cancel: true }));"#;
    for (dialect, body) in [("hooks", first), ("hooks", later), ("omp", later)] {
        let world = World::new([Reply::text(["a"])]);
        hook(&world, body);
        let pi = speaking(&world, dialect);
        pi.say("The original prompt text");
        let before = pi.state()["sessionId"].clone();
        let file = pi.file();
        let other = world.dir.root().join("other.jsonl");
        fs::copy(file, &other).unwrap();
        for kind in ["reset", "new_session"] {
            assert_eq!(pi.get(kind), json!({"cancelled": true}), "{dialect}");
        }
        let switched = pi.data(json!({"type": "switch_session", "sessionPath": other}));
        assert_eq!(switched, json!({"cancelled": true}), "{dialect}");
        let message = pi.get("get_branch_messages")["messages"][0].clone();
        let mut branch = json!({"type": "branch"});
        let which = if dialect == "hooks" {
            "entryIndex"
        } else {
            "entryId"
        };
        branch[which] = message[which].clone();
        assert_eq!(
            pi.data(branch),
            json!({"text": "The original prompt text", "cancelled": true}),
            "{dialect}"
        );
        assert_eq!(pi.state()["sessionId"], before);
        end(&pi);
    }
}

/// `skipConversationRestore`: another file, but the model goes on with what it knew.
#[test]
fn branch_hook_may_skip_restoring_conversation() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"]), Reply::text(["b"]), Reply::text(["c"])]);
    hook(
        &world,
        r#"pi.on("session_before_branch", async () => ({ skipConversationRestore: true }));"#,
    );
    let pi = speaking(&world, "omp");
    pi.say("First");
    pi.say("Second");
    let file = pi.file();
    let messages = pi.get("get_branch_messages")["messages"].clone();
    let branched = pi.data(json!({"type": "branch", "entryId": messages[1]["entryId"]}));
    assert_eq!(branched, json!({"text": "Second", "cancelled": false}));
    assert_ne!(pi.file(), file);
    assert_eq!(pi.roles(), ["user", "assistant", "user", "assistant"]);
    pi.say("Third");
    assert!(world.server.requests()[2].body.to_string().contains("Second"));
    let written = fs::read_to_string(pi.file()).unwrap();
    assert!(written.contains("First") && written.contains("Third") && !written.contains("Second"));
    end(&pi);
}

/// `before_compact` and `session_before_compact`: cancelled, or done by the hook.
#[test]
fn compaction_hook_cancels_or_replaces_summary() {
    if !can_run() {
        return;
    }
    let makes = r#"{ compaction: { summary: "made by a hook", firstKeptEntryId: preparation.firstKeptEntryId, tokensBefore: preparation.tokensBefore, details: { n: 1 } } }"#;
    let later = format!(
        r#"let asked = 0; pi.on("session_before_compact", async ({{ preparation }}) => asked++ === 0 ? {{ cancel: true }} : {makes});"#
    );
    let first = format!(
        r#"let asked = 0; pi.on("session", async ({{ reason, ...preparation }}) => reason !== "before_compact" ? undefined : asked++ === 0 ? {{ cancel: true }} : {makes});"#
    );
    for (dialect, body) in [("hooks", &first), ("omp", &later)] {
        let world = World::new([Reply::text(["a"]), Reply::text(["b"])]);
        world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
        hook(&world, body);
        let pi = speaking(&world, dialect);
        pi.say("A question that is long enough to be compacted away");
        pi.say("Another question that is long enough to stay here");
        assert_eq!(
            pi.error(json!({"type": "compact"})),
            "Compaction cancelled",
            "{dialect}"
        );
        let made = pi.data(json!({"type": "compact"}));
        assert_eq!(made["summary"], "made by a hook", "{dialect}");
        // No model was asked for it.
        assert_eq!(world.server.requests().len(), 2);
        let written = fs::read_to_string(pi.file()).unwrap();
        assert!(written.contains(r#""fromHook":true"#));
        end(&pi);
    }
}

/// The later hooks: commands, whose failures have a path of their own; messages that begin a turn; entries.
#[test]
fn later_hooks_have_commands_messages_and_entries() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"]), Reply::text(["b"])]);
    hook(
        &world,
        r#"pi.registerCommand("note", { description: "Notes", handler: async (args, ctx) => {
            pi.appendEntry("kit", { args });
            pi.sendMessage({ customType: "kit", content: "look at " + args, display: true }, true);
          } });
        pi.registerCommand("bad", { description: "Fails", handler: async () => { throw new Error("no idea"); } });"#,
    );
    let pi = speaking(&world, "omp");
    let told = |line: &str| pi.data(json!({"type": "prompt", "message": line}));
    told("/note this");
    pi.settled();
    assert_eq!(pi.messages()[0]["content"], "look at this");
    assert_eq!(world.server.requests().len(), 1);
    told("/bad");
    let lines = pi.lines();
    assert_eq!(
        *of_type(&lines, "hook_error")[0],
        json!({"type": "hook_error", "hookPath": "command:bad", "event": "command", "error": "no idea"})
    );
    let written = fs::read_to_string(pi.file()).unwrap_or_default();
    assert!(
        written.contains(r#""customType":"kit","data":{"args":"this"}"#),
        "{written}"
    );
    end(&pi);
}

/// The frames of seeds 002: `hook_ui_request`, answered with `hook_ui_response`; nothing chosen is null.
#[test]
fn hook_dialogs_use_hook_dialect_frames() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"])]);
    hook(
        &world,
        r#"pi.on("agent_start", async (event, ctx) => {
          const answers = [await ctx.ui.select("Which?", ["one", "two"]), await ctx.ui.confirm("Sure?", "Really"),
            await ctx.ui.input("Name?", "a name"), await ctx.ui.editor?.("Text?", "prefill"),
            await ctx.ui.select("Again?", ["x"]), await ctx.ui.confirm("Again?", "y"), await ctx.ui.input("Again?")];
          ctx.ui.notify(JSON.stringify([...answers, ctx.hasUI]), "warning");
        });"#,
    );
    let pi = speaking(&world, "hooks");
    pi.prompt("Go");
    let question = |method: &str| {
        let frame = pi.wait("hook_ui_request");
        assert_eq!(frame["method"], method, "{frame}");
        frame
    };
    let answer = |frame: &Value, members: Value| {
        let mut line = members;
        line["type"] = "hook_ui_response".into();
        line["id"] = frame["id"].clone();
        pi.agent.send(&line).unwrap();
    };
    let frame = question("select");
    assert_eq!(
        (&frame["title"], &frame["options"]),
        (&json!("Which?"), &json!(["one", "two"]))
    );
    answer(&frame, json!({"value": "two"}));
    let frame = question("confirm");
    assert_eq!(
        (&frame["title"], &frame["message"]),
        (&json!("Sure?"), &json!("Really"))
    );
    answer(&frame, json!({"confirmed": true}));
    let frame = question("input");
    assert_eq!(
        (&frame["title"], &frame["placeholder"]),
        (&json!("Name?"), &json!("a name"))
    );
    answer(&frame, json!({"value": "Ann"}));
    let frame = question("editor");
    assert_eq!(
        (&frame["title"], &frame["prefill"]),
        (&json!("Text?"), &json!("prefill"))
    );
    answer(&frame, json!({"value": "long"}));
    for method in ["select", "confirm", "input"] {
        answer(&question(method), json!({"cancelled": true}));
    }
    let note = question("notify");
    assert_eq!(
        (&note["message"], &note["notifyType"]),
        (
            &json!(r#"["two",true,"Ann","long",null,false,null,false]"#),
            &json!("warning")
        )
    );
    pi.settled();
    end(&pi);
}

/// Clients of xcsh get `extension_ui_request` with a time limit instead (seeds 004).
#[test]
fn hook_dialogs_of_xcsh_use_extension_frames() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"])]);
    let path = world.dir.root().join("asks.ts");
    let path = module(
        path,
        r#"pi.on("agent_start", async (event, ctx) => {
          const yes = await ctx.ui.confirm("Confirm", "Continue?", { timeout: 30000 });
          ctx.ui.notify([yes, await ctx.ui.input("Branch name", "feature/..."), ctx.hasUI].join(" "));
        });"#,
    );
    let pi = world.start_with(&["--rpc-dialect", "xcsh", "--hook", &path]);
    pi.prompt("Go");
    for (expected, answer) in [
        (
            json!({"method": "confirm", "title": "Confirm", "message": "Continue?", "timeout": 30000}),
            json!({"confirmed": true}),
        ),
        (
            json!({"method": "input", "title": "Branch name", "placeholder": "feature/..."}),
            json!({"value": "feature/x"}),
        ),
    ] {
        let frame = pi.wait("extension_ui_request");
        for (name, member) in expected.as_object().unwrap() {
            assert_eq!(frame[name], *member, "{frame}");
        }
        let mut answer = answer;
        answer["type"] = "extension_ui_response".into();
        answer["id"] = frame["id"].clone();
        pi.agent.send(&answer).unwrap();
    }
    pi.settled();
    assert_eq!(notes(&pi), ["true feature/x true"]);
    end(&pi);
}

/// A handler that throws causes `hook_error`, and the next one runs. On `tool_call` its message blocks the call instead.
#[test]
fn throwing_hook_is_reported_and_throwing_check_blocks() {
    if !can_run() {
        return;
    }
    for dialect in ["hooks", "omp"] {
        let world = World::new([
            bash("c1", "echo throws"),
            bash("c2", "echo blocked"),
            Reply::text(["done"]),
        ]);
        let path = hook(
            &world,
            r#"pi.on("agent_start", () => { throw new Error("no idea"); });
            pi.on("agent_start", (event, ctx) => ctx.ui.notify("went on"));
            pi.on("tool_call", async (event) => {
              if (event.input.command.includes("throws")) throw new Error("cannot check");
              return { block: true };
            });"#,
        );
        let pi = speaking(&world, dialect);
        pi.say("Go");
        assert_eq!(
            ends(&pi),
            [
                (true, "cannot check".to_owned()),
                (true, "Tool execution was blocked by a hook".to_owned()),
            ],
            "{dialect}"
        );
        let errors = errors(&pi, 1);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(
            errors[0],
            json!({"type": "hook_error", "hookPath": path, "event": "agent_start", "error": "no idea"})
        );
        assert_eq!(notes(&pi), ["went on"]);
        end(&pi);
    }
}

/// The first hooks have a time limit, except on `tool_call`; the later ones have none.
#[test]
fn first_hooks_time_out_except_on_tool_call() {
    if !can_run() {
        return;
    }
    let body = r#"const slow = () => new Promise((go) => setTimeout(() => go({ block: true, reason: "late" }), 900));
        pi.on("turn_start", slow); pi.on("tool_call", slow);"#;
    let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
    world.settings(json!({"hookTimeout": 150}));
    hook(&world, body);
    let pi = speaking(&world, "hooks");
    pi.say("Go");
    assert_eq!(ends(&pi), [(true, "late".to_owned())]);
    let errors = errors(&pi, 2);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(
        (&errors[0]["event"], &errors[0]["error"]),
        (&json!("turn_start"), &json!("Hook timed out after 150ms"))
    );
    end(&pi);
    let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
    hook(&world, body);
    let pi = speaking(&world, "omp");
    pi.say("Go");
    assert!(of_type(&pi.lines(), "hook_error").is_empty());
    end(&pi);
}

/// Only results that are no errors, and the last handler counts.
#[test]
fn tool_result_hooks_see_successes_and_last_wins() {
    if !can_run() {
        return;
    }
    for dialect in ["hooks", "omp"] {
        let world = World::new([
            bash("c1", "false"),
            bash("c2", "echo fine"),
            Reply::text(["done"]),
        ]);
        hook(
            &world,
            r#"pi.on("tool_result", (event, ctx) => { ctx.ui.notify("saw " + event.toolCallId); return { content: [{ type: "text", text: "first" }], isError: true }; });
            pi.on("tool_result", (event) => ({ content: [{ type: "text", text: event.content[0].text.trim() + " and more" }] }));"#,
        );
        let pi = speaking(&world, dialect);
        pi.say("Go");
        assert_eq!(notes(&pi), ["saw c2"], "{dialect}");
        let ends = ends(&pi);
        assert!(ends[0].0, "{ends:?}");
        assert_eq!(ends[1], (false, "fine and more".to_owned()), "{dialect}");
        end(&pi);
    }
}

/// Seen, changed, added: `context` on a copy, `before_agent_start` with the first message only.
#[test]
fn context_hooks_change_request_but_not_session() {
    if !can_run() {
        return;
    }
    for dialect in ["hooks", "omp"] {
        let world = World::new([Reply::text(["a"])]);
        hook(
            &world,
            r#"pi.on("before_agent_start", () => ({ message: { customType: "kit", content: "one", display: true } }));
            pi.on("before_agent_start", () => ({ message: { customType: "kit", content: "two", display: true } }));
            pi.on("context", (event) => { event.messages[0].content = "something else"; return { messages: event.messages }; });"#,
        );
        let pi = speaking(&world, dialect);
        pi.say("What I said");
        let messages = pi.messages();
        assert_eq!(messages.len(), 3, "{dialect}: {messages:?}");
        assert_eq!(text(&messages[0]), "What I said");
        assert_eq!(messages[1]["content"], "one");
        let body = world.server.requests()[0].body.to_string();
        assert!(
            body.contains("something else") && !body.contains("What I said"),
            "{body}"
        );
        end(&pi);
    }
}

/// What the first hooks found on `ctx` and `pi`: exec, cwd, sessionFile, `send` with attachments.
#[test]
fn first_hooks_have_exec_session_file_and_send() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"]), Reply::text(["b"]), Reply::text(["c"])]);
    hook(
        &world,
        r#"let said = 0;
        pi.on("agent_start", async (event, ctx) => {
          const { stdout, code } = await ctx.exec("echo", ["from", "exec"]);
          if (said === 0) ctx.ui.notify([stdout.trim(), code, ctx.cwd, ctx.sessionFile].join(" "));
        });
        pi.on("turn_start", () => { if (said++ === 0) pi.send("while it runs", [{ type: "image", fileName: "p.png", mimeType: "image/png", size: 8, content: "iVBORw0KGgo=" }]); });
        pi.on("agent_end", () => { if (said < 10) { said = 10; pi.send("when it is idle"); } });"#,
    );
    let pi = speaking(&world, "hooks");
    pi.prompt("Go");
    until("all is said", || world.server.requests().len() == 3);
    pi.agent
        .wait(
            |line| line["type"] == "agent_settled" && world.server.requests().len() == 3,
            LONG,
        )
        .unwrap();
    let users: Vec<String> = pi
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(text)
        .collect();
    assert_eq!(users, ["Go", "while it runs", "when it is idle"]);
    assert!(
        world.server.requests()[1]
            .body
            .to_string()
            .contains("iVBORw0KGgo=")
    );
    let state = pi.state();
    let cwd = world.dir.cwd().canonicalize().unwrap();
    let expected = format!(
        "from exec 0 {} {}",
        cwd.display(),
        state["sessionFile"].as_str().unwrap()
    );
    assert_eq!(notes(&pi), [expected]);
    end(&pi);
}

/// Where hooks and tools are found, and that a project's need trust.
#[test]
fn hooks_and_tools_load_from_every_place_ordered() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    world.server.set_default(Reply::text(["a"]));
    let place = |folder: &Path, name: &str| {
        module(
            folder.join(format!("hooks/{name}.ts")),
            &format!(r#"pi.on("agent_start", (event, ctx) => ctx.ui.notify("{name}"));"#),
        );
        tool(
            folder.join(format!("tools/{name}_tool.ts")),
            &format!("{name}_tool"),
            "",
        );
    };
    let (user, project) = (world.dir.agent_dir(), world.dir.cwd().join(".pi"));
    place(&user, "user");
    place(&project, "project");
    tool(user.join("tools/folder/index.ts"), "folder_tool", "");
    let root = world.dir.root();
    for name in ["listed", "named"] {
        place(&root.join(name), name);
    }
    world.settings(json!({
        "hooks": [root.join("listed/hooks/listed.ts")],
        "customTools": [root.join("listed/tools/listed_tool.ts")],
    }));
    let (hook, tool) = (
        root.join("named/hooks/named.ts"),
        root.join("named/tools/named_tool.ts"),
    );
    let named = ["--hook", hook.to_str().unwrap(), "--tool", tool.to_str().unwrap()];
    let heard = |more: &[&str]| {
        let args: Vec<&str> = ["--rpc-dialect", "hooks"]
            .into_iter()
            .chain(named)
            .chain(more.iter().copied())
            .collect();
        let pi = world.start_with(&args);
        pi.say("Go");
        let heard = notes(&pi).join(" ");
        end(&pi);
        let found: Vec<String> = tools(&world)
            .into_iter()
            .filter(|name| name.ends_with("_tool"))
            .collect();
        (heard, found.join(" "))
    };
    let all = |middle: &str| {
        (
            format!("user{middle} listed named"),
            format!(
                "folder_tool user_tool{} listed_tool named_tool",
                middle.replace("project", "project_tool")
            ),
        )
    };
    assert_eq!(heard(&["--approve"]), all(" project"));
    assert_eq!(heard(&[]), all(""));
    let only = ("named".to_owned(), "named_tool".to_owned());
    assert_eq!(heard(&["--approve", "--no-extensions"]), only);
    assert_eq!(heard(&["--approve", "--no-hooks"]).0, "named");
    // The directories of other agents are theirs.
    place(&world.dir.cwd().join(".omp"), "omp");
    module(
        world.dir.cwd().join(".xcsh/extensions/x.ts"),
        r#"pi.on("agent_start", (event, ctx) => ctx.ui.notify("xcsh"));"#,
    );
    let pi = world.start_with(&["--rpc-dialect", "xcsh", "--approve"]);
    pi.say("Go");
    assert_eq!(notes(&pi), ["xcsh", "user", "project", "omp", "listed"]);
    end(&pi);
    // Nothing of it needs that dialect: today's clients get the same files.
    let pi = world.start();
    pi.say("Go");
    assert_eq!(notes(&pi), ["user", "listed"]);
    pi.finish();
}

/// `onSession` with its reasons; no user interface for tools of that time.
#[test]
fn custom_tools_run_and_receive_session_events() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::tool("c1", "older", json!({})), Reply::text(["done"])]);
    let log = world.dir.cwd().join("sessions.log");
    let body = format!(
        r#"async onSession(event) {{ const fs = await import("node:fs");
            fs.appendFileSync({:?}, JSON.stringify([event.reason, event.entries.length > 2, event.previousSessionFile ?? null, pi.hasUI, await pi.ui.select("?", ["a"])]) + "\n"); }}"#,
        log.display().to_string()
    );
    tool(world.dir.agent_dir().join("tools/older.ts"), "older", &body);
    let pi = speaking(&world, "hooks");
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "older ran".to_owned())]);
    let file = pi.file();
    pi.get("reset");
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    let messages = pi.get("get_branch_messages")["messages"].clone();
    pi.data(json!({"type": "branch", "entryIndex": messages[0]["entryIndex"]}));
    until("the branch has begun", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("branch"))
    });
    let lines = end(&pi);
    assert!(of_type(&lines, "hook_ui_request").is_empty());
    let heard = fs::read_to_string(log).unwrap();
    let heard: Vec<Value> = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let reasons: Vec<&str> = heard.iter().map(|event| event[0].as_str().unwrap()).collect();
    assert_eq!(
        reasons,
        [
            "start", "shutdown", "new", "shutdown", "switch", "shutdown", "branch", "shutdown"
        ]
    );
    assert!(
        heard.iter().all(|event| event[3] == false && event[4].is_null()),
        "{heard:?}"
    );
    assert_eq!(
        (&heard[4][1], &heard[4][2].is_string()),
        (&json!(true), &true),
        "{heard:?}"
    );
}

/// A file that does not load is named in the client's words, and the others go on.
#[test]
fn unloadable_hook_file_is_reported() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["a"])]);
    let path = world.dir.agent_dir().join("hooks/broken.ts");
    hook(
        &world,
        r#"pi.on("agent_start", (event, ctx) => ctx.ui.notify("here"));"#,
    );
    fs::write(&path, "throw new Error('not today');").unwrap();
    let pi = speaking(&world, "hooks");
    pi.say("Go");
    let errors = errors(&pi, 1);
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (&errors[0]["hookPath"], &errors[0]["event"]),
        (&json!(path), &json!("load"))
    );
    assert!(errors[0]["error"].as_str().unwrap().contains("not today"));
    assert_eq!(notes(&pi), ["here"]);
    end(&pi);
}

/// The extension process gets the generation and the time limit of the dialect and the setting.
#[test]
fn hook_generation_and_timeout_follow_dialect() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    hook(&world, "");
    let (host, log) = (
        world.dir.root().join("host.mjs"),
        world.dir.root().join("lines.log"),
    );
    let body = format!(
        r#"import readline from "node:readline"; import fs from "node:fs";
        const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
        readline.createInterface({{ input: process.stdin }}).on("line", (line) => {{
          const {{ type, id }} = JSON.parse(line);
          if (type === "open") fs.appendFileSync({:?}, line + "\n");
          if (type === "hello") say({{ type: "ready", protocol: 1, runtime: "node 22.0.0" }});
          else if (id) say({{ type: "result", id, value: {{ extensions: [] }} }});
        }});"#,
        log.display().to_string()
    );
    fs::write(&host, body).unwrap();
    let opened = |dialect: &[&str]| {
        let _no_matter = fs::remove_file(&log);
        let config = world
            .config()
            .args(["--rpc-dialect"])
            .args(dialect.iter().copied());
        let pi = Pi::spawn(config.env("PINION_EXTENSION_HOST", &host));
        until("it was opened", || log.exists());
        pi.get("get_commands");
        end(&pi);
        let line = fs::read_to_string(&log).unwrap();
        let line: Value = serde_json::from_str(line.trim()).unwrap();
        assert_eq!(line["extensions"][0]["kind"], "hook");
        let state = &line["state"];
        json!([
            line["generation"],
            line["hookTimeout"],
            state["hasUI"],
            state["hookEra"]
        ])
    };
    assert_eq!(opened(&["auto"]), json!(["pi", null, true, false]));
    assert_eq!(opened(&["hooks"]), json!(["hooks", 30_000, false, true]));
    assert_eq!(opened(&["omp"]), json!(["omp", null, false, true]));
    assert_eq!(opened(&["xcsh"]), json!(["omp", null, true, false]));
    assert_eq!(
        opened(&["omp-now", "--no-ui"]),
        json!(["omp", null, false, false])
    );
    world.settings(json!({"hookTimeout": 700}));
    assert_eq!(opened(&["hooks"]), json!(["hooks", 700, false, true]));
    assert_eq!(opened(&["pi"]), json!(["pi", 700, true, false]));
}
