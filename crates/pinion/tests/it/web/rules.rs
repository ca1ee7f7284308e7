//! The rules of our own (web.md 1.8) as clients see them, one test each: R1 to R5, R7, R8, R11. R6 is tested on a clock of its
//! own (`serve`, `web/tests/connections.rs`), R4 and R13 in `requests`, R9 and R10 in `access`, R12 with the commands.

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use super::{Tab, Web};
use crate::kit::{World, skipped, until};

fn at(lines: &[Value], what: impl Fn(&Value) -> bool) -> usize {
    lines
        .iter()
        .position(what)
        .unwrap_or_else(|| panic!("{lines:#?}"))
}

/// What both pages do when they are opened; gives the session they end up in.
fn open_like_a_page(tab: &mut Tab) -> Value {
    let state = tab.data(json!({"type": "get_state"}));
    let sessions = tab.data(json!({"type": "list_sessions", "scope": "all"}))["sessions"].clone();
    if let Some(newest) = sessions.get(0)
        && newest["id"] != state["sessionId"]
    {
        tab.data(json!({"type": "switch_session", "sessionPath": newest["path"]}));
    }
    tab.data(json!({"type": "get_messages"}));
    tab.data(json!({"type": "get_state"}))["sessionId"].clone()
}

#[test]
fn r1_second_tab_joins_running_session() {
    let old = World::new([
        Reply::text(["Old."]),
        Reply::text(["Long"]).gate("on").then_text([" run."]),
    ]);
    let web = Web::start(&old, &[]);
    let mut one = web.tab();
    // A finished session that is on disk, then another that is not yet.
    one.say("Before");
    one.data(json!({"type": "new_session"}));
    let state = one.data(json!({"type": "get_state"}));
    one.data(json!({"type": "prompt", "message": "Go"}));
    one.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    // two-tab
    let mut two = web.tab();
    assert_eq!(open_like_a_page(&mut two), state["sessionId"]);
    let sessions = two.data(json!({"type": "list_sessions"}))["sessions"].clone();
    assert_eq!(sessions[0]["id"], state["sessionId"]);
    assert_eq!(sessions[0]["firstMessage"], "Go");
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    old.server.release("on");
    let end = one.wait_type("agent_end");
    assert_eq!(end["messages"][1]["stopReason"], "stop", "{end}");
    assert!(
        one.seen
            .borrow()
            .iter()
            .filter(|line| line["type"] == "session_changed")
            .count()
            == 1
    );
    web.finish();
}

#[test]
fn r1_switching_to_current_session_loses_nothing() {
    let world = World::new([Reply::text(["Long"]).gate("never")]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.data(json!({"type": "prompt", "message": "Go"}));
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    let state = tab.data(json!({"type": "get_state"}));
    tab.data(json!({"type": "switch_session", "sessionPath": state["sessionFile"]}));
    let after = tab.data(json!({"type": "get_state"}));
    assert_eq!(
        (&after["sessionId"], &after["sessionFile"]),
        (&state["sessionId"], &state["sessionFile"])
    );
    let messages = tab.data(json!({"type": "get_messages"}))["messages"].clone();
    assert_eq!(messages[0]["content"][0]["text"], "Go", "{messages}");
    // One in which nothing was said yet is not on disk.
    let fresh = tab.data(json!({"type": "new_session"}));
    assert_eq!(fresh["cancelled"], false);
    let state = tab.data(json!({"type": "get_state"}));
    let answer = tab.ask(json!({"type": "switch_session", "sessionPath": state["sessionFile"]}));
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(
        tab.data(json!({"type": "get_state"}))["sessionFile"],
        state["sessionFile"]
    );
    web.finish();
}

#[test]
fn r2_leaving_session_ends_run_for_all() {
    let replies = [
        Reply::text(["Old."]),
        Reply::text(["One"]).gate("never1"),
        Reply::text(["Two"]).gate("never2"),
    ];
    let world = World::new(replies);
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    one.say("Before");
    let before = one.data(json!({"type": "get_state"}))["sessionFile"].clone();
    two.wait_type("agent_settled");
    let ways = [
        (json!({"type": "new_session"}), "new"),
        (json!({"type": "switch_session", "sessionPath": before}), "switch"),
    ];
    for (command, reason) in ways {
        one.data(json!({"type": "prompt", "message": "Go"}));
        two.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
        one.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
        let (from_one, from_two) = (one.seen.borrow().len(), two.seen.borrow().len());
        let answer = two.ask(command);
        assert_eq!(answer["data"]["cancelled"], false);
        one.wait_type("session_changed");
        for (tab, from) in [(&one, from_one), (&two, from_two)] {
            let lines = tab.seen.borrow()[from..].to_vec();
            let aborted = at(&lines, |line| line["message"]["stopReason"] == "aborted");
            let ended = at(&lines, |line| line["type"] == "agent_end");
            let changed = at(&lines, |line| line["type"] == "session_changed");
            assert!(aborted < ended && ended < changed, "{reason}: {lines:#?}");
            assert_eq!(lines[changed]["reason"], reason);
        }
        let lines = two.seen.borrow();
        let changed = at(&lines[from_two..], |line| line["type"] == "session_changed");
        assert!(changed < at(&lines[from_two..], |line| line["id"] == answer["id"]));
        drop(lines);
        assert_eq!(one.data(json!({"type": "get_state"}))["isStreaming"], false);
    }
    web.finish();
}

#[test]
fn r3_response_reaches_only_its_sender_once() {
    let world = World::new([Reply::error(ErrorKind::Auth)]).without_retries();
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    // Fails before it begins: one answer, of failure.
    let answer = one.ask(json!({"type": "prompt", "message": 7}));
    assert_eq!(answer["success"], false);
    // A failure during the run: the response reports the start, and the message contains the error, for all clients.
    let id = one.send(json!({"type": "prompt", "message": "Hi"}));
    for tab in [&mut one, &mut two] {
        let end = tab.wait(|line| line["type"] == "message_end" && line["message"]["role"] == "assistant");
        assert_eq!(end["message"]["stopReason"], "error");
        assert!(
            end["message"]["errorMessage"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{end}"
        );
        tab.wait_type("agent_settled");
    }
    one.data(json!({"type": "get_state"}));
    two.data(json!({"type": "get_state"}));
    let answers = |tab: &Tab, id: &str| tab.seen.borrow().iter().filter(|line| line["id"] == *id).count();
    assert_eq!(answers(&one, &id), 1);
    assert_eq!(
        two.seen
            .borrow()
            .iter()
            .filter(|line| line["type"] == "response")
            .count(),
        1
    );
    web.finish();
}

#[test]
fn r5_slow_reader_gets_merged_deltas_then_1013() {
    let large = || Reply::text_deltas(100, 100_000);
    let world = World::new([Reply::text_deltas(5_000, 10), large(), large(), large(), large()]);
    let web = Web::start(&world, &[]);
    let (mut slow, mut busy) = (web.tab(), web.tab());
    slow.data(json!({"type": "get_state"}));
    busy.say("Small ones");
    slow.wait_type("agent_settled");
    for tab in [&slow, &busy] {
        let lines = tab.seen.borrow();
        let updates: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["assistantMessageEvent"]["delta"].as_str())
            .collect();
        assert!(updates.len() < 5_000, "{} frames for 5000 deltas", updates.len());
        let text = lines
            .iter()
            .rev()
            .find(|line| line["type"] == "message_end")
            .unwrap();
        assert_eq!(
            text["message"]["content"][0]["text"],
            updates.concat(),
            "nothing is lost"
        );
    }
    drop(busy);
    slow.hold_little();
    // It does not read at all now, while far more comes than is kept. Nothing else reads these events either: parsing them
    // here could take longer than the 30 s after which a stalled connection is cut without a code.
    let own = web.origin();
    let headers = [("origin", own.as_str()), ("content-type", "application/json")];
    let command = |body: Value| {
        let (status, _, body) = web.request("POST", "/api/command", &headers, &body.to_string());
        assert_eq!(status, 200);
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let begin = Instant::now();
    for run in 2..=5 {
        command(json!({"type": "prompt", "message": "Large ones"}));
        until("the end of the run", || {
            command(json!({"type": "get_state"}))["data"]["messageCount"] == 2 * run
        });
    }
    let mut end = Ok(Value::Null);
    while end.is_ok() {
        end = slow.line();
    }
    // On a machine that needs longer for these runs, the stalled connection has been cut before.
    let is_slow_machine = begin.elapsed() > Duration::from_secs(30);
    assert!(
        end == Err(1013) || is_slow_machine && end == Err(1006),
        "{end:?} after {:?}",
        begin.elapsed()
    );
    // It comes back, and is shown where things stand.
    let mut back = web.tab();
    let answer = back.data(json!({"type": "replay", "after": 1}));
    assert_eq!(answer["snapshot"]["messages"].as_array().unwrap().len(), 10);
    web.finish();
}

#[test]
fn r7_only_own_host_names_are_accepted() {
    let world = World::new([]);
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        let web = Web::start(&world, &["--host", "::1"]);
        assert!(web.address.starts_with("[::1]:"), "{}", web.banner);
        web.tab().data(json!({"type": "get_state"}));
        let port = web.port();
        for (host, status) in [
            ("[::1]", 200),
            ("localhost", 200),
            ("evil.example", 403),
            ("[::2]", 403),
        ] {
            assert_eq!(
                web.get("/health", &[("host", &format!("{host}:{port}"))]).0,
                status,
                "{host}"
            );
        }
        let local = format!("http://localhost:{port}");
        web.try_tab("/ws", &[("origin", &local)]).unwrap();
        web.finish();
    } else {
        skipped("the part with IPv6, which this system has not");
    }
    let web = Web::start(
        &world,
        &[
            "--web-host",
            "localhost",
            "--web-allowed-origin",
            "https://box.example",
        ],
    );
    for (host, status) in [
        ("box.example", 200),
        ("BOX.example", 200),
        ("box.example:81", 403),
        ("other.example", 403),
    ] {
        for path in ["/", "/health", "/ready"] {
            assert_eq!(web.get(path, &[("host", host)]).0, status, "{host} {path}");
        }
    }
    web.try_tab("/ws", &[("origin", "https://box.example")]).unwrap();
    assert_eq!(
        web.try_tab("/ws", &[("origin", "http://box.example")]).err(),
        Some(403)
    );
    web.finish();
}

#[test]
fn r8_non_loopback_address_needs_token() {
    let world = World::new([]);
    for host in ["0.0.0.0", "::"] {
        if host == "::" && std::net::TcpListener::bind("[::]:0").is_err() {
            skipped("the part with IPv6, which this system has not");
            continue;
        }
        let mut refused = Web::try_start(&world, &["--host", host]);
        assert_eq!(refused.wait().code(), Some(1));
        assert!(refused.errors().contains("--web-token"), "{}", refused.errors());
        let made_up = Web::start(&world, &["--host", host, "--web-token"]);
        assert_eq!(made_up.get("/api/events", &[]).0, 401);
        made_up.finish();
    }
    let open = Web::start(&world, &["--host", "0.0.0.0", "--web-insecure"]);
    open.tab().data(json!({"type": "get_state"}));
    open.finish();
}

#[test]
fn r11_dialog_reaches_all_and_is_answered_once() {
    let call = |name: &str| Reply::tool("c1", "bash", json!({"command": format!("echo > {name}")}));
    let world = World::new([
        call("one"),
        Reply::text(["Done."]),
        call("two"),
        Reply::text(["Refused."]),
    ]);
    let web = Web::start(&world, &["--permission-mode", "ask"]);
    let mut one = web.tab();
    one.data(json!({"type": "prompt", "message": "Go"}));
    let question = one.wait_type("extension_ui_request");
    // Who comes later is asked, too, by socket and by events; who comes back to a place after it is not asked twice.
    let mut late = web.tab();
    assert_eq!(late.wait_type("extension_ui_request")["id"], question["id"]);
    let mut stream = web.connect();
    let ask = format!(
        "GET /api/events HTTP/1.1\r\nhost: {}\r\nsec-fetch-site: same-origin\r\n\r\n",
        web.address
    );
    std::io::Write::write_all(&mut stream, ask.as_bytes()).unwrap();
    let mut told = String::new();
    while !told.contains(question["id"].as_str().unwrap()) {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&some[..count]));
    }
    // answer-elsewhere: an answer to another session reaches no dialog, and closes none.
    let lost =
        json!({"type": "extension_ui_response", "session": "s9", "id": question["id"], "cancelled": true});
    late.send_text(&lost.to_string());
    late.data(json!({"type": "get_state"}));
    assert_eq!(web.tab().wait_type("extension_ui_request")["id"], question["id"]);
    // Both answer: the first answer counts, and all clients are asked to close the dialog.
    let answer = |tab: &mut Tab, option: usize| {
        let value = question["options"][option].clone();
        let frame = json!({"type": "extension_ui_response", "id": question["id"], "value": value});
        tab.send_text(&frame.to_string());
    };
    answer(&mut late, 0);
    for tab in [&mut one, &mut late] {
        let over = tab.wait_type("extension_ui_request");
        assert_eq!(
            (&over["method"], &over["targetId"]),
            (&json!("cancel"), &question["id"])
        );
    }
    let no = question["options"].as_array().unwrap().len() - 1;
    answer(&mut one, no);
    one.wait_type("agent_settled");
    assert!(world.dir.cwd().join("one").exists());
    // An answer to nothing, and one to a question that is over, change nothing.
    one.send_text(r#"{"type":"extension_ui_response","id":"nothing","value":"x"}"#);
    one.data(json!({"type": "prompt", "message": "Again"}));
    let second = one.wait_type("extension_ui_request");
    assert_ne!(second["id"], question["id"]);
    assert_eq!(second["method"], question["method"]);
    one.send_text(
        &json!({"type": "extension_ui_response", "id": second["id"], "cancelled": true}).to_string(),
    );
    one.wait_type("agent_settled");
    assert!(!world.dir.cwd().join("two").exists());
    web.finish();
}
