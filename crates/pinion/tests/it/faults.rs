//! A provider that misbehaves: each run ends with an error or an answer, and the next prompt works.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::{Before, CutHow, DeadPort, End, ErrorKind, Framing, Reply};
use testkit::workspace::default_models;

use crate::kit::{Pi, World, answers, memory_kb, of_type, text, until};

/// Both protocols.
const BOTH: [bool; 2] = [false, true];

fn start(world: &World, chat: bool) -> Pi {
    if chat { world.start_openai() } else { world.start() }
}

/// The faulty reply, then a good one. Retries are off. Gives the answer that the fault made.
fn survives(fault: Reply, chat: bool) -> Value {
    let world = World::new([fault, Reply::text(["well again"])]).without_retries();
    let pi = start(&world, chat);
    let lines = pi.say("Go");
    let answer = answers(&lines).last().copied().cloned().unwrap();
    let lines = pi.say("Again");
    assert_eq!(text(answers(&lines)[0]), "well again", "{answer}");
    pi.finish();
    answer
}

/// Plays a fault that must end in an error; returns the answer.
fn fails(fault: Reply, chat: bool) -> Value {
    let answer = survives(fault, chat);
    assert_eq!(answer["stopReason"], "error", "{answer}");
    assert!(!answer["errorMessage"].as_str().unwrap().is_empty(), "{answer}");
    answer
}

fn before(drop: CutHow) -> Before {
    Before {
        drop: Some(drop),
        ..Before::default()
    }
}

#[test]
fn refused_connection_fails_run() {
    let dead = DeadPort::new().unwrap();
    let world = World::new([Reply::text(["well again"])]).without_retries();
    world.dir.write_models(&default_models(&dead.url())).unwrap();
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(answers(&lines)[0]["stopReason"], "error");
    pi.finish();
}

#[test]
fn connection_closed_before_head_fails_run() {
    for chat in BOTH {
        fails(Reply::text(["x"]).before(before(CutHow::Reset)), chat);
        fails(Reply::text(["x"]).before(before(CutHow::Close)), chat);
    }
}

#[test]
fn connection_cut_at_any_byte_is_survived() {
    for chat in BOTH {
        let whole = || {
            Reply::new()
                .thinking(["hm ", "yes"], "sig")
                .then_text(["Hello ", "World"])
                .then_tool("c", "ls", json!({}))
        };
        let world = World::new([whole(), Reply::text(["x"])]);
        let pi = start(&world, chat);
        pi.say("Go");
        let size = world.server.requests()[0].sent;
        pi.finish();
        let world = World::new([]).without_retries();
        let pi = start(&world, chat);
        let places = 24;
        for place in 0..places {
            let how = if place % 2 == 0 {
                CutHow::Reset
            } else {
                CutHow::Close
            };
            world.server.push(whole().cut(size * place / places, how));
            let lines = pi.say("Go");
            let answer = answers(&lines)[0];
            assert_eq!(
                answer["stopReason"],
                "error",
                "cut at {} of {size}: {answer}",
                size * place / places
            );
            assert!(of_type(&lines, "tool_execution_start").is_empty());
        }
        world.server.push(Reply::text(["well again"]));
        assert_eq!(text(answers(&pi.say("Again"))[0]), "well again");
        pi.finish();
    }
}

#[test]
fn body_without_end_marker_fails_or_completes() {
    for chat in BOTH {
        let cut = |reply: Reply| Reply {
            framing: Framing::Eof,
            ..reply
        };
        fails(cut(Reply::text(["Hello"]).drop_here(CutHow::Close)), chat);
        let answer = survives(Reply::text(["Hello"]).end(End::Missing), chat);
        assert_eq!(text(&answer), "Hello", "{answer}");
        let answer = survives(Reply::text(["Hello"]).end(End::Double), chat);
        assert_eq!(
            (text(&answer), &answer["stopReason"]),
            ("Hello".into(), &json!("stop"))
        );
        fails(
            Reply::new().item(serde_json::from_value(json!({"eof": 1})).unwrap()),
            chat,
        );
    }
}

#[test]
fn stalled_stream_ends_at_idle_limit() {
    for chat in BOTH {
        let world = World::new([Reply::text(["Hel"]).drop_here(CutHow::Stall)]);
        world.server.set_default(Reply::text(["well again"]));
        world.settings(json!({"httpIdleTimeoutMs": 200, "retry": {"enabled": false}}));
        let pi = start(&world, chat);
        let lines = pi.say("Go");
        assert_eq!(answers(&lines)[0]["stopReason"], "error");
        // On a busy machine the server may be late, too.
        until("an answer", || text(answers(&pi.say("Again"))[0]) == "well again");
        pi.finish();
    }
}

#[test]
fn slow_stream_is_not_idle() {
    let reply = Reply::text(["one ", "two ", "three"]).chunk_delay(Duration::from_millis(60));
    let world = World::new([]);
    world.server.set_default(reply);
    world.settings(json!({"httpIdleTimeoutMs": 400, "retry": {"enabled": false}}));
    let pi = world.start();
    // All pauses together take longer than the limit. On a busy machine a single one may, too; then the model is asked again.
    until("the whole answer", || {
        text(answers(&pi.say("Go"))[0]) == "one two three"
    });
    pi.finish();
}

#[test]
fn stream_of_single_bytes_is_decoded() {
    for chat in BOTH {
        let answer = survives(Reply::text(["Hél", "lo \u{1f600}"]).pace(1, Duration::ZERO), chat);
        assert_eq!(text(&answer), "Héllo \u{1f600}");
    }
}

#[test]
fn html_answer_fails_with_short_error() {
    for chat in BOTH {
        for status in [200, 403, 502] {
            let answer = fails(Reply::html(status), chat);
            let error = answer["errorMessage"].as_str().unwrap();
            assert!(error.len() < 1_000, "{error}");
            assert!(status == 200 || error.contains(&status.to_string()), "{error}");
        }
    }
}

#[test]
fn garbage_in_stream_is_survived() {
    for chat in BOTH {
        survives(
            Reply::text(["x"]).item(serde_json::from_value(json!({"garbage": 100_000})).unwrap()),
            chat,
        );
        survives(Reply::new().raw("data: {\"type\":\n\n"), chat);
        survives(
            Reply::new().raw("data: [1,2,3]\n\nevent: \n\n: comment\n\ndata:\n\n"),
            chat,
        );
        survives(Reply::new().raw_bytes(&[0xff, 0xfe, 0, 10, 10, 13, 10]), chat);
        survives(
            Reply::text(["a"]).item(serde_json::from_value(json!({"text": ["b", {"hex": "c328"}]})).unwrap()),
            chat,
        );
    }
}

#[test]
fn unknown_events_and_pings_are_ignored() {
    for chat in BOTH {
        let mut reply = Reply::text(["Hel"]);
        for item in [
            json!({"event": "surprise", "data": {"type": "surprise", "x": [1]}}),
            json!({"ping": 3}),
            json!({"comment": "still here", "count": 1000}),
        ] {
            reply = reply.item(serde_json::from_value(item).unwrap());
        }
        let answer = survives(reply.then_text(["lo"]), chat);
        assert_eq!(
            (text(&answer), &answer["stopReason"]),
            ("Hello".into(), &json!("stop")),
            "{answer}"
        );
    }
}

#[test]
fn error_events_inside_stream_fail_run() {
    for chat in BOTH {
        let answer = fails(Reply::text(["Hel"]).error_event(ErrorKind::Overloaded), chat);
        assert_eq!(text(&answer), "Hel");
    }
}

#[test]
fn unknown_stop_reasons_are_survived() {
    for chat in BOTH {
        assert_eq!(
            survives(Reply::text(["x"]).stop("length"), chat)["stopReason"],
            "length"
        );
        survives(Reply::text(["x"]).stop("something new"), chat);
    }
}

#[test]
fn call_of_truncated_answer_is_not_run() {
    let world = World::new([
        Reply::new()
            .tool_chunks("c1", "bash", [r#"{"command": "touch must-not-run; echo "#])
            .stop("length"),
        Reply::text(["sorry"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(of_type(&lines, "tool_execution_end")[0]["isError"], true);
    assert!(!world.dir.cwd().join("must-not-run").exists());
    pi.finish();
}

#[test]
fn non_object_tool_arguments_fail_call() {
    for chat in BOTH {
        for raw in ["null", "[1]", "\"x\"", "", "{\"command\": 7}", "}{"] {
            let world = World::new([
                Reply::new().tool_chunks("c1", "bash", [raw]),
                Reply::text(["sorry"]),
            ])
            .without_retries();
            let pi = start(&world, chat);
            let lines = pi.say("Go");
            for end in of_type(&lines, "tool_execution_end") {
                assert_eq!(end["isError"], true, "{raw}: {end}");
            }
            assert!(of_type(&lines, "agent_end").len() == 1, "{raw}");
            pi.finish();
        }
    }
}

#[test]
fn gzip_bomb_is_not_unpacked() {
    let world = World::new([Reply::gzip_bomb(256 << 20), Reply::text(["well again"])]).without_retries();
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(answers(&lines)[0]["stopReason"], "error");
    let most = memory_kb(pi.agent.pid(), "VmHWM");
    assert!(most < 128 * 1024, "{most} kB");
    assert_eq!(text(answers(&pi.say("Again"))[0]), "well again");
    pi.finish();
}

#[test]
fn compressed_answers_are_decoded() {
    for chat in BOTH {
        let reply = Reply {
            gzip: true,
            ..Reply::text(["squeezed"])
        };
        assert_eq!(text(&survives(reply, chat)), "squeezed");
    }
}

#[test]
fn ten_thousand_calls_in_one_answer_run() {
    let world = World::new([
        Reply::many_tools(10_000, "no_such_tool", json!({"n": "{i}"})).batch(65_536),
        Reply::text(["phew"]),
    ]);
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    let lines = pi.say("Go");
    assert_eq!(of_type(&lines, "tool_execution_start").len(), 10_000);
    let results = of_type(&lines, "turn_end")[0]["toolResults"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(results.len(), 10_000);
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result["toolCallId"], format!("call_{number}"));
    }
    assert_eq!(text(answers(&lines).last().unwrap()), "phew");
    pi.finish();
}

#[test]
fn calls_beyond_limit_fail_run() {
    let world = World::new([
        Reply::many_tools(20_001, "ls", json!({})).batch(65_536),
        Reply::text(["well again"]),
    ])
    .without_retries();
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    let lines = pi.say("Go");
    assert_eq!(answers(&lines)[0]["stopReason"], "error");
    assert_eq!(text(answers(&pi.say("Again"))[0]), "well again");
    pi.finish();
}

#[test]
fn answer_without_content_is_accepted() {
    for chat in BOTH {
        let answer = survives(Reply::new(), chat);
        assert_eq!(answer["content"], json!([]), "{answer}");
    }
}
