//! The conflicts of dialects.md 5 about input of clients and its effects, one test for each row, from outside.
//! Conflicts about output are in `dialect_outputs`.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::dialect_outputs::{end, speaking, tell};
use crate::kit::{LONG, Pi, World, answered_at, of_type, text};

/// A picture of one pixel, as base64.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn text_base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place > chunk.len() { '=' } else { digit.into() });
        }
    }
    out
}

/// A run that waits for its gate, under way.
fn busy(dialect: &str) -> (World, Pi) {
    let world = World::new([
        Reply::text(["One ", "two."]).gate("more"),
        Reply::text(["Three."]),
    ]);
    let pi = speaking(&world, dialect);
    tell(&pi, json!({"type": "prompt", "message": "Hello"}));
    pi.wait("message_update");
    (world, pi)
}

#[test]
fn row_05_branch_by_line_or_id() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let pi = world.start();
    pi.say("First");
    pi.say("Second");
    let listed = pi.get("get_branch_messages")["messages"].clone();
    let second = &listed[1];
    let content = fs::read_to_string(pi.file()).unwrap();
    let line = content
        .lines()
        .nth(usize::try_from(second["entryIndex"].as_u64().unwrap()).unwrap())
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(line).unwrap()["id"],
        second["entryId"]
    );
    let wrong = json!({"type": "branch", "entryIndex": 0});
    assert_eq!(pi.error(wrong), "Invalid entry index for branching");
    // The id wins over the line.
    let both = json!({"type": "branch", "entryId": second["entryId"], "entryIndex": 0});
    assert_eq!(pi.data(both)["text"], "Second");
    let first = json!({"type": "branch", "entry_index": listed[0]["entryIndex"]});
    assert_eq!(pi.data(first)["text"], "First");
    pi.finish();
}

#[test]
fn row_06_branch_equals_fork() {
    for (list, go) in [("get_branch_messages", "branch"), ("get_fork_messages", "fork")] {
        let world = World::new([Reply::text(["One."])]);
        let pi = world.start();
        pi.say("First");
        let listed = pi.get(list)["messages"].clone();
        assert_eq!(listed[0]["text"], "First");
        let data = pi.data(json!({"type": go, "entryId": listed[0]["entryId"]}));
        assert_eq!(data, json!({"text": "First", "cancelled": false}));
        pi.finish();
    }
}

#[test]
fn row_09_attachments_precede_images() {
    let world = World::new([Reply::text(["Seen."])]);
    let pi = world.start();
    let attachments = json!([
        {"id": "a1", "type": "image", "fileName": "p.png", "mimeType": "image/png", "size": 70, "content": PIXEL, "extractedText": null, "preview": null},
        {"id": "a2", "type": "document", "fileName": "d.pdf", "mimeType": "application/pdf", "size": 3, "content": "JVBE", "extractedText": "What the paper says."},
        {"id": "a3", "type": "document", "fileName": "n.txt", "mimeType": "text/plain", "size": 5, "content": text_base64("Notes.")},
        {"id": "a4", "type": "document", "fileName": "x.pdf", "mimeType": "application/pdf", "size": 3, "content": "JVBE"},
    ]);
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    pi.data(json!({"type": "prompt", "message": "Look", "attachments": attachments, "images": [image]}));
    pi.settled();
    let lines = pi.lines();
    let message = &of_type(&lines, "message_end")[0]["message"];
    assert_eq!(message["attachments"], attachments);
    let content = message["content"].as_array().unwrap();
    assert_eq!(content[0], json!({"type": "text", "text": "Look"}));
    assert_eq!(content[1], image);
    assert_eq!(
        content[2],
        json!({"type": "text", "text": "\n\n[Document: d.pdf]\nWhat the paper says.", "isDocument": true})
    );
    assert_eq!(content[3]["text"], "\n\n[Document: n.txt]\nNotes.");
    assert!(
        content[4]["text"].as_str().unwrap().contains("not available"),
        "{message}"
    );
    assert_eq!((&content[5], content.len()), (&image, 6));
    let asked = world.server.requests()[0].body.to_string();
    assert!(
        asked.contains("What the paper says.") && asked.contains("Notes."),
        "{asked}"
    );
    assert_eq!(asked.matches(PIXEL).count(), 2, "each image once");
    assert!(
        !asked.contains("isDocument") && !asked.contains("attachments"),
        "{asked}"
    );
    assert_eq!(check::messages(&pi.file())[0]["attachments"], attachments);
    pi.finish();
}

#[test]
fn row_09_unusable_attachments_are_refused() {
    let world = World::new([Reply::text(["Hi."])]);
    let pi = world.start();
    for (attachment, why) in [
        (
            json!({"type": "image", "fileName": "p.png", "mimeType": "image/png", "content": "no base64!"}),
            "not base64",
        ),
        (
            json!({"type": "image", "fileName": "p.png", "mimeType": "image/png"}),
            "no content",
        ),
        (
            json!({"type": "video", "fileName": "v", "content": ""}),
            "unknown type",
        ),
        (json!("picture"), "Invalid attachment"),
    ] {
        let error = pi.error(json!({"type": "prompt", "message": "Look", "attachments": [attachment]}));
        assert!(error.contains(why), "{error}");
    }
    assert!(world.server.requests().is_empty());
    // None at all is no reason for a trace of them.
    pi.data(json!({"type": "prompt", "message": "Look", "attachments": []}));
    pi.settled();
    assert!(pi.messages()[0].get("attachments").is_none());
    pi.finish();
}

#[test]
fn row_10_all_documented_image_forms_are_accepted() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let forms = [
        json!({"type": "image", "data": PIXEL, "mimeType": "image/png"}),
        json!({"type": "image", "data": PIXEL, "mime_type": "image/png"}),
        json!({"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": PIXEL}}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}),
        json!({"type": "image", "data": url}),
        json!({"type": "image", "source": {"type": "url", "url": url}}),
    ];
    let world = World::new([Reply::text(["Seen."])]);
    let pi = world.start();
    pi.data(json!({"type": "prompt", "message": "Look", "images": forms}));
    pi.settled();
    let content = pi.messages()[0]["content"].as_array().unwrap().clone();
    assert_eq!(content.len(), 1 + forms.len());
    for block in &content[1..] {
        assert_eq!(*block, forms[0]);
    }
    let far = json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}});
    let error = pi.error(json!({"type": "prompt", "message": "Look", "images": [far]}));
    assert!(error.contains("not fetched"), "{error}");
    pi.finish();
}

#[test]
fn row_11_prompt_response_precedes_every_event() {
    for dialect in ["hooks", "omp", "xcsh", "pi", "auto"] {
        let world = World::new([Reply::text(["Hi."])]);
        let pi = speaking(&world, dialect);
        let id = pi.send(json!({"type": "prompt", "message": "Hello"}));
        pi.settled();
        let lines = pi.lines();
        assert_eq!(answered_at(&lines, &id), 1, "{dialect}: only ready before it");
        assert_eq!(of_type(&lines, "response").len(), 1, "{dialect}");
        pi.finish();
    }
}

#[test]
fn prompt_during_compaction_refused_in_dialects_words() {
    let busy = "Agent is already processing.";
    for (dialect, words) in [
        (
            "pi-delta",
            "Cannot submit a prompt while compaction is in progress.",
        ),
        ("pi", busy),
        ("omp-now", busy),
    ] {
        let summary = Reply::text(["Summary."]).gate("summary");
        let world = World::new([Reply::text(["One."]), Reply::text(["Two."]), summary]);
        world.settings(json!({"compaction": {"keepRecentTokens": 6}}));
        let pi = speaking(&world, dialect);
        pi.say(&"Remember the word elephant. ".repeat(40));
        pi.say("And this one, too.");
        let asked = pi.send(json!({"type": "compact"}));
        world.server.wait_requests(3, LONG).unwrap();
        let error = pi.error(json!({"type": "prompt", "message": "Now?"}));
        assert!(error.starts_with(words), "{dialect}: {error}");
        world.server.release("summary");
        assert_eq!(pi.response(&asked)["success"], true);
        pi.finish();
    }
}

#[test]
fn row_12_prompt_during_run_refused_or_queued() {
    for (dialect, words) in [
        ("hooks", "queue_message"),
        ("omp", "queue_message"),
        ("omp-now", "Use steer() or followUp()"),
        ("xcsh", "Use steer() or followUp()"),
        ("pi", "Specify streamingBehavior ('steer' or 'followUp')"),
        ("auto", "Specify streamingBehavior ('steer' or 'followUp')"),
    ] {
        let (world, pi) = busy(dialect);
        let error = pi.error(json!({"type": "prompt", "message": "Me too"}));
        assert!(
            error.starts_with("Agent is already processing.") && error.contains(words),
            "{dialect}: {error}"
        );
        world.server.release("more");
        pi.settled();
        pi.finish();
    }
    let (world, pi) = busy("early");
    tell(&pi, json!({"type": "prompt", "message": "Me too"}));
    let queued = pi.wait("queue_update");
    assert_eq!(
        (&queued["followUp"], &queued["steering"]),
        (&json!(["Me too"]), &json!([]))
    );
    world.server.release("more");
    pi.settled();
    let lines = end(&pi);
    assert_eq!(
        of_type(&lines, "agent_start").len(),
        1,
        "no second run over the first"
    );
    let said: Vec<String> = of_type(&lines, "message_end")
        .iter()
        .map(|line| text(&line["message"]))
        .collect();
    assert_eq!(said, ["Hello", "One two.", "Me too", "Three."]);
}

#[test]
fn row_13_streaming_behaviour_without_run_is_ignored() {
    for behaviour in ["steer", "followUp"] {
        let world = World::new([Reply::text(["Hi."])]);
        let pi = world.start();
        let data = pi.data(json!({"type": "prompt", "message": "Hello", "streamingBehavior": behaviour}));
        assert_eq!(data["disposition"], "started");
        pi.settled();
        pi.finish();
    }
}

#[test]
fn row_14_queued_message_skips_remaining_calls() {
    let calls = Reply::new()
        .then_tool(
            "first",
            "bash",
            json!({"command": "while [ ! -e go ]; do sleep 0.01; done"}),
        )
        .then_tool("rest", "bash", json!({"command": "sleep 600"}));
    let world = World::new([calls, Reply::text(["Heard."])]);
    let pi = speaking(&world, "hooks");
    pi.prompt("go");
    pi.agent
        .wait(
            |line| line["type"] == "tool_execution_start" && line["toolCallId"] == "rest",
            LONG,
        )
        .unwrap();
    pi.data(json!({"type": "queue_message", "message": "Stop that"}));
    assert_eq!(pi.state()["queuedMessageCount"], 1);
    world.dir.write("go", "").unwrap();
    pi.settled();
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    assert_eq!(
        (&ends[0]["toolCallId"], &ends[0]["isError"]),
        (&json!("first"), &json!(false))
    );
    assert_eq!(
        (&ends[1]["toolCallId"], &ends[1]["isError"]),
        (&json!("rest"), &json!(true))
    );
    assert_eq!(
        ends[1]["result"]["content"][0]["text"],
        "Skipped due to queued user message."
    );
    let told: Vec<String> = pi
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(text)
        .collect();
    assert_eq!(told, ["go", "Stop that"]);
    pi.finish();
}

#[test]
fn row_14_single_queue_waits_for_next_prompt() {
    let world = World::new([Reply::text(["Hi."])]);
    let pi = speaking(&world, "hooks");
    pi.data(json!({"type": "set_queue_mode", "mode": "all"}));
    let state = pi.state();
    for name in ["queueMode", "steeringMode", "followUpMode"] {
        assert_eq!(state[name], "all", "{name}");
    }
    pi.data(json!({"type": "queue_message", "message": "One"}));
    pi.data(json!({"type": "queue_message", "message": "Two"}));
    assert_eq!(pi.state()["queuedMessageCount"], 2);
    assert!(world.server.requests().is_empty(), "nothing runs by itself");
    pi.say("Three");
    let told: Vec<String> = pi
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(text)
        .collect();
    assert_eq!(told, ["Three", "One", "Two"]);
    pi.finish();
}

#[test]
fn row_15_steering_without_run_waits_except_omp() {
    for dialect in ["auto", "pi", "xcsh"] {
        let world = World::new([]);
        let pi = speaking(&world, dialect);
        for command in ["steer", "follow_up"] {
            let data = pi.data(json!({"type": command, "message": "Later"}));
            assert_eq!(data["disposition"], "queued", "{dialect}");
        }
        assert_eq!(pi.state()["pendingMessageCount"], 2);
        pi.finish();
    }
    let world = World::new([Reply::text(["Now."])]);
    let pi = speaking(&world, "omp");
    // The first omp had no such command.
    let response = pi.ask(json!({"type": "steer", "message": "Now"}));
    assert_eq!(
        (&response["command"], &response["success"]),
        (&json!("steer"), &json!(true))
    );
    pi.settled();
    assert_eq!(pi.roles(), ["user", "assistant"]);
    pi.finish();

    let world = World::new([]);
    let pi = speaking(&world, "omp-now");
    let data = pi.data(json!({"type": "follow_up", "message": "Later"}));
    assert_eq!(data["disposition"], "queued");
    let state = pi.state();
    assert_eq!(
        (&state["queuedMessageCount"], &state["isSettled"]),
        (&json!(1), &json!(false))
    );
    pi.finish();
}

#[test]
fn row_25_set_todos_reveals_dialect() {
    let world = World::new([]);
    let pi = world.start();
    let data = pi.data(json!({"type": "set_todos", "phases": []}));
    assert_eq!(data, json!({"todoPhases": []}));
    assert!(pi.data(json!({"type": "bash", "command": "true"}))["totalLines"].is_u64());
    pi.finish();
}

#[test]
fn row_27_session_files_of_vendors_are_read() {
    let world = World::new([]);
    let at = "2026-01-01T00:00:00.000Z";
    let said = json!({"type": "message", "id": "a0000001", "parentId": null, "timestamp": at,
        "message": {"role": "user", "content": "Hello", "timestamp": 1}});
    let header = |more: Value| {
        let mut header =
            json!({"type": "session", "version": 3, "id": "s1", "timestamp": at, "cwd": world.dir.cwd()});
        for (key, value) in more.as_object().unwrap() {
            header[key] = value.clone();
        }
        header
    };
    let change = |more: Value| {
        let mut entry =
            json!({"type": "model_change", "id": "a0000002", "parentId": "a0000001", "timestamp": at});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    };
    let info = json!({"type": "session_info", "id": "a0000003", "parentId": "a0000002", "timestamp": at, "name": "Gears"});
    let of_pi = [
        header(json!({})),
        said.clone(),
        change(json!({"provider": "mock-openai", "modelId": "gpt-mock"})),
        info,
    ];
    let of_xcsh = [
        header(json!({"title": "Gears", "titleSource": "user"})),
        said,
        change(json!({"model": "mock-openai/gpt-mock", "role": "default"})),
        json!({"type": "thinking_level_change", "id": "a0000003", "parentId": "a0000002", "timestamp": at, "thinkingLevel": "off"}),
    ];
    for lines in [of_pi, of_xcsh] {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = world.dir.root().join("vendor.jsonl");
        fs::write(&file, text).unwrap();
        let pi = Pi::spawn(world.dir.agent(crate::kit::PROGRAM).args([
            "--mode",
            "rpc",
            "--session",
            file.to_str().unwrap(),
        ]));
        let state = pi.state();
        assert_eq!(
            (&state["sessionName"], &state["model"]["id"]),
            (&json!("Gears"), &json!("gpt-mock")),
            "{state}"
        );
        pi.finish();
    }
}

#[test]
fn row_31_reset_starts_new_session() {
    let world = World::new([Reply::text(["Hi."])]);
    let pi = speaking(&world, "hooks");
    pi.say("Hello");
    pi.data(json!({"type": "queue_message", "message": "Left over"}));
    let before = pi.state();
    let response = pi.ask(json!({"type": "reset"}));
    assert_eq!(
        (&response["command"], &response["data"]),
        (&json!("reset"), &json!({"cancelled": false}))
    );
    let after = pi.state();
    assert_ne!(before["sessionId"], after["sessionId"]);
    assert_ne!(before["sessionFile"], after["sessionFile"]);
    assert_eq!(
        (&after["messageCount"], &after["queuedMessageCount"]),
        (&json!(0), &json!(0))
    );
    pi.finish();
}

#[test]
fn row_32_modes_stay_in_their_session() {
    let world = World::new([]);
    let settings = || fs::read_to_string(world.dir.agent_dir().join("settings.json")).unwrap();
    let before = settings();
    let pi = world.start();
    for command in ["set_queue_mode", "set_steering_mode", "set_follow_up_mode"] {
        pi.data(json!({"type": command, "mode": "all"}));
    }
    pi.data(json!({"type": "set_interrupt_mode", "mode": "immediate"}));
    pi.finish();
    assert_eq!(settings(), before);
    let pi = world.start();
    assert_eq!(
        (&pi.state()["queueMode"], &pi.state()["interruptMode"]),
        (&json!("one-at-a-time"), &json!("wait"))
    );
    pi.finish();
}

#[test]
fn snake_case_parameter_names_are_accepted() {
    let world = World::new([Reply::text(["Hi."])]);
    let pi = world.start();
    pi.data(json!({"type": "prompt", "message": "Hello", "streaming_behavior": "follow_up"}));
    pi.settled();
    let file = pi.file();
    let model = pi.state()["model"].clone();
    pi.data(json!({"type": "set_model", "provider": model["provider"], "model_id": model["id"]}));
    pi.data(json!({"type": "new_session", "parent_session": file}));
    pi.data(json!({"type": "switch_session", "session_path": file}));
    let entry = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
    assert_eq!(
        pi.data(json!({"type": "fork", "entry_id": entry}))["text"],
        "Hello"
    );
    pi.finish();
}

#[test]
fn client_dialect_is_detected_and_kept() {
    let world = World::new([]);
    // What a line gives away shows in the names that follow it.
    for (line, counts) in [
        (json!({"type": "get_commands"}), false),
        (json!({"type": "abort_and_prompt", "message": ""}), true),
        (json!({"type": "set_interrupt_mode", "mode": "wait"}), true),
        (json!({"type": "negotiate_protocol", "protocolVersion": 1}), true),
        (json!({"type": "set_queue_mode", "mode": "all"}), false),
    ] {
        let pi = world.start();
        pi.ask(line.clone());
        // The first one counts.
        pi.ask(json!({"type": "get_tree"}));
        pi.get("abort");
        let result = pi.data(json!({"type": "bash", "command": "true"}));
        assert_eq!(result["totalLines"].is_u64(), counts, "{line}");
        end(&pi);
    }
    let pi = world.start();
    assert_eq!(
        pi.data(json!({"type": "negotiate_protocol", "protocolVersion": 1})),
        json!({"protocolVersion": 1})
    );
    let refused = pi.error(json!({"type": "negotiate_protocol", "protocolVersion": 3}));
    assert_eq!(refused, "Unsupported RPC protocol version: 3");
    pi.finish();
}

/// The first lines of oh-my-pi's RpcClient 18.3: it expects `ready` to offer version 2 with these limits.
#[test]
fn protocol_version_2_splits_long_lines() {
    let world = World::new([Reply::text(["Long."])]);
    let pi = world.start();
    let ready = pi.wait("ready");
    assert_eq!(ready["supportedProtocolVersions"], json!([1, 2]));
    assert_eq!(ready["maxFrameBytes"], 1024 * 1024);
    assert_eq!(ready["maxReassembledFrameBytes"], 64 * 1024 * 1024);
    assert_eq!(
        pi.data(json!({"type": "negotiate_protocol", "protocolVersion": 2})),
        json!({"protocolVersion": 2})
    );
    let long = "x".repeat(3 * 1024 * 1024);
    pi.prompt(&long);
    pi.wait("session_settled");
    let lines = pi.lines();
    let chunks: Vec<_> = of_type(&lines, "rpc_chunk")
        .into_iter()
        .filter(|chunk| chunk["chunkId"] == "chunk-1")
        .collect();
    let bytes: Vec<u8> = chunks
        .iter()
        .flat_map(|chunk| STANDARD.decode(chunk["data"].as_str().unwrap()).unwrap())
        .collect();
    let event: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(event["type"], "message_start");
    assert_eq!(text(&event["message"]), long);
    assert_eq!(chunks.len(), bytes.len().div_ceil(256 * 1024));
    pi.finish();
}

#[test]
fn dialect_is_chosen_by_variable_name_or_options() {
    let world = World::new([]);
    let counts = |pi: &Pi| pi.data(json!({"type": "bash", "command": "true"}))["totalLines"].is_u64();
    let pi = Pi::spawn(world.config().env("PI_RPC_DIALECT", "xcsh"));
    assert!(counts(&pi));
    pi.finish();
    let pi = Pi::spawn(world.config().env("PI_RPC_DIALECT", "klingon"));
    assert!(!counts(&pi));
    pi.warns("PI_RPC_DIALECT=klingon is ignored");
    pi.finish();
    let link = world.dir.root().join("xcsh");
    std::os::unix::fs::symlink(crate::kit::PROGRAM, &link).unwrap();
    let mut config = world.config();
    config.program = link;
    let pi = Pi::spawn(config);
    assert!(counts(&pi));
    pi.finish();
    let pi = world.start_with(&[
        "--no-title",
        "--provider-session-id",
        "s1",
        "--no-rules",
        "--no-pty",
        "--no-lsp",
    ]);
    assert!(counts(&pi));
    pi.finish();
}
