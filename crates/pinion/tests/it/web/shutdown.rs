//! How a server ends: it says that it is not ready, runs end and say so, extensions hear of it, sockets are closed with 1001.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::llm::Reply;

use super::{Web, terminate};
use crate::extensions::{can_run, extended};
use crate::kit::{World, until};

#[test]
fn drain_is_announced_and_refuses_new_clients() {
    // A tool that does not want to end takes a moment.
    let stubborn = json!({"command": "trap '' TERM; echo on > on; while true; do sleep 0.05; done"});
    let world = World::new([Reply::tool("c1", "bash", stubborn), Reply::text(["Done."])]);
    let mut web = Web::start(&world, &[]);
    let own = web.origin();
    let mut one = web.tab();
    one.data(json!({"type": "prompt", "message": "Go"}));
    until("the tool", || world.dir.cwd().join("on").exists());
    assert_eq!(web.get("/ready", &[]).0, 200);
    let mut probe = Instant::now();
    terminate(web.pid());
    let (mut statuses, mut longest_gap) = (Vec::new(), Duration::ZERO);
    // Probes meanwhile report: alive, but not ready. The server may end between two probes.
    while let Ok(mut stream) = std::net::TcpStream::connect(&web.address) {
        longest_gap = longest_gap.max(probe.elapsed());
        probe = Instant::now();
        let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", web.address);
        let mut status = |path: &str| {
            let mut head = [0; 12];
            let _gone = stream.write_all(ask(path).as_bytes());
            let _gone = stream.read_exact(&mut head);
            // The rest of this answer is short, and read with the next one.
            let mut rest = [0; 4096];
            let _rest = stream.read(&mut rest);
            String::from_utf8_lossy(&head[9..]).into_owned()
        };
        let (ready, health) = (status("/ready"), status("/health"));
        if ready == "503" && health == "200" {
            statuses.push((ready, health));
            let refused = web.try_tab("/ws", &[("origin", &own)]);
            match refused {
                Err(503) => {}
                Err(0) => until("the end of the server", || web.has_ended()),
                other => panic!("{:?} instead of 503", other.err()),
            }
            break;
        }
    }
    longest_gap = longest_gap.max(probe.elapsed());
    // Its run ends, and it hears how, before it is sent away.
    let mut end = Ok(json!(null));
    while end.is_ok() {
        end = one.line();
    }
    assert_eq!(end, Err(1001));
    let seen = one.seen.borrow().clone();
    let at = |what: &str| seen.iter().position(|line| line["type"] == what);
    assert!(
        at("tool_execution_end").is_some() && at("agent_end").is_some(),
        "{seen:#?}"
    );
    // The tool is killed after 3 s. A machine that stalls for a good part of that shows nothing here; the web crate's own test of
    // draining has no clock.
    let has_stalled = longest_gap > Duration::from_secs(1);
    assert!(
        statuses.len() == 1 || has_stalled,
        "it was never seen to be alive and not ready; {longest_gap:?} between two probes"
    );
    assert_eq!(web.wait().code(), Some(0), "{}", web.errors());
    // The answer so far is on disk.
    let files = world.session_files();
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.contains("aborted") || text.contains("toolResult"), "{text}");
}

#[test]
fn late_commands_are_refused_during_shutdown() {
    let world = World::new([Reply::text(["Long"]).gate("never")]);
    let mut web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.data(json!({"type": "prompt", "message": "Go"}));
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    terminate(web.pid());
    let mut end = Ok(json!(null));
    while end.is_ok() {
        let command = r#"{"id":"late","type":"get_state"}"#;
        let _gone = tab.socket().send(tungstenite::Message::text(command));
        end = tab.line();
    }
    assert!([Err(1001), Err(1006)].contains(&end), "{end:?}");
    let seen = tab.seen.borrow().clone();
    let ended = seen.iter().find(|line| line["type"] == "agent_end").unwrap();
    assert_eq!(ended["messages"][1]["stopReason"], "aborted", "{ended}");
    for late in seen
        .iter()
        .filter(|line| line["id"] == "late" && line["success"] == false)
    {
        assert_eq!(late["error"], "The agent is shutting down");
    }
    assert_eq!(web.wait().code(), Some(0), "{}", web.errors());
}

#[test]
fn extensions_receive_session_shutdown() {
    if !can_run() {
        return;
    }
    let body = r#"
        pi.on("session_shutdown", async (event: any) => {
            require("node:fs").writeFileSync("shutdown", event.reason);
        });
    "#;
    let world = extended([Reply::text(["Hi."])], body);
    let mut web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.say("Hi");
    terminate(web.pid());
    let mut end = Ok(json!(null));
    while end.is_ok() {
        end = tab.line();
    }
    assert_eq!(end, Err(1001));
    assert_eq!(web.wait().code(), Some(0), "{}", web.errors());
    assert!(world.dir.cwd().join("shutdown").exists(), "{}", web.errors());
}

#[test]
fn event_streams_end_after_last_event() {
    let world = World::new([Reply::text(["Long"]).gate("never")]);
    let mut web = Web::start(&world, &[]);
    let mut stream = web.connect();
    let ask = "GET /api/events HTTP/1.1\r\nsec-fetch-site: same-origin";
    write!(stream, "{ask}\r\nhost: {}\r\n\r\n", web.address).unwrap();
    web.wait_for_clients(1);
    let mut tab = web.tab();
    // A second session ends like the first.
    tab.data(json!({"type": "open_session", "session": "other"}));
    tab.data(json!({"type": "prompt", "message": "Go", "session": "other"}));
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    terminate(web.pid());
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    let last = told.lines().rfind(|line| line.contains("\"session\":\"other\""));
    assert!(
        told.contains("\"type\":\"agent_end\"") && last.is_some(),
        "{told}"
    );
    assert!(told.ends_with("0\r\n\r\n"), "the end of the answer: {told}");
    assert_eq!(web.wait().code(), Some(0), "{}", web.errors());
}

#[test]
fn ctrl_c_shuts_down_and_repeated_exits_immediately() {
    let world = World::new([Reply::text(["Hi."])]);
    let mut web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.say("Hi");
    let sent = std::process::Command::new("kill")
        .args(["-INT", &web.pid().to_string()])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(tab.line(), Err(1001));
    assert_eq!(web.wait().code(), Some(130), "{}", web.errors());
}
