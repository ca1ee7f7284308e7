//! The promises of GUARANTEES.md that only the whole program can show.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::Error;
use testkit::llm::{Before, CutHow, Reply};

use crate::kit::{LONG, Pi, World, answers, bash, memory_kb, of_type, text, until};

/// Longest line, in bytes without its end.
const LINE: usize = 32 << 20;

#[test]
fn noisy_tools_do_not_reach_stdout() {
    let world = World::new([]);
    let mut models = testkit::workspace::default_models(&world.server.url());
    models["providers"]["mock-anthropic"]["apiKey"] = json!("!echo NOISE >&2; echo key-from-a-command");
    world.dir.write_models(&models).unwrap();
    let pi = world.start();
    let noise = format!(
        "echo NOISE; echo NOISE >&2; for fd in 3 4 5 6 7 8 9 10 11 12; do echo NOISE >&$fd; done; \
         echo NOISE > /proc/{0}/fd/1; echo NOISE > /proc/{0}/fd/2; echo NOISE > /proc/$PPID/fd/1; true",
        pi.agent.pid()
    );
    world.server.push(bash("c1", &noise));
    world.server.push(Reply::text(["done"]));
    pi.say("Go");
    assert_eq!(
        world.server.requests()[0].header("x-api-key"),
        Some("key-from-a-command")
    );
    pi.data(json!({"type": "bash", "command": noise}));
    // Only inside of JSON; `finish` looks at every line.
    let lines = pi.lines();
    assert!(lines.iter().any(|line| line.to_string().contains("NOISE")));
    assert!(pi.agent.lines().iter().all(|line| line.json), "{lines:?}");
    pi.finish();
}

/// 10,000 tool calls that write wherever they can, each checked by a hook that does the same. Neither noise on stdout nor a zombie
/// is left.
#[test]
#[ignore = "takes minutes; see docs/project/robustness.md"]
fn ten_thousand_noisy_calls_keep_stdout_clean() {
    const CALLS: usize = 100;
    const ANSWERS: usize = 100;
    let world = World::new([]);
    let hook = world.dir.agent_dir().join("hooks/tool_call-noise.sh");
    let noise =
        "for fd in 3 4 5 6 7 8 9; do echo NOISE >&$fd; done 2>/dev/null; echo NOISE > /proc/$PPID/fd/1";
    crate::hooks::script(
        hook,
        &format!("cat > /dev/null; echo x >> checked; ({noise}) 2>/dev/null; echo NOISE >&2"),
    );
    let pi = world.start();
    for answer in 0..ANSWERS {
        let mut reply = Reply::text(["Go"]);
        for call in 0..CALLS {
            let line = json!({"command": format!("({noise}) 2>/dev/null; echo NOISE; true")});
            reply = reply.then_tool(format!("c{answer}-{call}"), "bash", line);
        }
        world.server.push(reply);
        world.server.push(Reply::text(["done"]));
        pi.prompt("Go");
        pi.settled();
        // Of so many lines, only the newest are kept.
        let lines = pi.agent.lines();
        assert!(lines.iter().all(|line| line.json));
        let ended = lines.iter().filter(|line| {
            let id = line.value["toolCallId"].as_str().unwrap_or_default();
            line.value["type"] == "tool_execution_end" && id.starts_with(&format!("c{answer}-"))
        });
        assert_eq!(ended.count(), CALLS);
    }
    let checked = std::fs::read_to_string(world.dir.cwd().join("checked")).unwrap();
    assert_eq!(checked.lines().count(), CALLS * ANSWERS);
    assert_eq!(zombies(pi.agent.pid()), Vec::<u32>::new());
    // `finish` compares the whole output with the file.
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
}

/// Zombies among the children of a process and the children of these.
fn zombies(pid: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let is_zombie = words.next() == Some("Z");
        let parent: u32 = words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or_default();
        all.push((id, parent, is_zombie));
    }
    let parent_of = |child: u32| {
        all.iter()
            .find(|(id, ..)| *id == child)
            .map(|(_, parent, _)| *parent)
    };
    let is_below = |parent: u32| parent == pid || parent_of(parent) == Some(pid);
    let found = all
        .iter()
        .filter(|(_, parent, is_zombie)| *is_zombie && is_below(*parent));
    found.map(|(id, ..)| *id).collect()
}

#[test]
#[ignore = "sends 1 GiB; see docs/project/robustness.md"]
fn line_of_one_gigabyte_is_refused() {
    let world = World::new([]);
    let pi = world.start();
    pi.state();
    pi.agent.skip();
    let before = memory_kb(pi.agent.pid(), "VmRSS");
    let piece = vec![b'x'; 1 << 20];
    pi.agent.send_raw(b"{\"id\":\"monster\",\"pad\":\"").unwrap();
    for _ in 0..1_024 {
        pi.agent.send_raw(&piece).unwrap();
    }
    // The line has not ended, and memory does not grow with it.
    let most = memory_kb(pi.agent.pid(), "VmHWM") - before;
    let limit = u64::try_from(LINE >> 10).unwrap() + 20 * 1024;
    assert!(most < limit, "{most} kB more memory");
    pi.agent.send_raw(b"\n").unwrap();
    assert_eq!(pi.wait("response")["success"], false);
    pi.state();
    pi.finish();
}

#[test]
fn line_over_limit_is_refused_without_storing() {
    let world = World::new([]);
    let pi = world.start();
    pi.state();
    pi.agent.skip();
    let before = memory_kb(pi.agent.pid(), "VmRSS");
    let begun = std::time::Instant::now();
    let piece = vec![b'x'; 1 << 20];
    pi.agent
        .send_raw(b"{\"id\":\"monster\",\"type\":\"prompt\",\"message\":\"")
        .unwrap();
    for _ in 0..64 {
        pi.agent.send_raw(&piece).unwrap();
    }
    pi.agent.send_raw(b"\"}\n").unwrap();
    let refused = pi.wait("response");
    let took = begun.elapsed();
    assert_eq!(
        (&refused["success"], &refused["command"]),
        (&json!(false), &json!("parse"))
    );
    assert!(
        refused["error"].as_str().unwrap().contains("33554432"),
        "{refused}"
    );
    pi.state();
    let most = memory_kb(pi.agent.pid(), "VmHWM") - before;
    let limit = u64::try_from(LINE >> 10).unwrap() + 20 * 1024;
    eprintln!("64 MB: {most} kB more memory, refused after {took:?}");
    assert!(most < limit, "{most} kB more memory");
    pi.finish();
}

#[test]
fn line_at_limit_is_accepted() {
    let world = World::new([]);
    let pi = world.start();
    for (over, success) in [(0, true), (1, false)] {
        let head = "{\"id\":\"long\",\"type\":\"get_state\",\"pad\":\"";
        let line = format!("{head}{}\"}}\n", "x".repeat(LINE + over - head.len() - 2));
        pi.agent.skip();
        pi.agent.send_raw(line.as_bytes()).unwrap();
        let response = pi.wait("response");
        assert_eq!(response["success"], success, "{over}: {}", response["error"]);
    }
}

/// Sends bytes to an agent that reads again, however long it takes. A single write may be held up for longer than its timeout,
/// which the tests here make short.
fn send_all(pi: &Pi, bytes: &[u8]) {
    let mut left = bytes.to_vec();
    until("the agent to read its input", || match pi.agent.send_raw(&left) {
        Ok(()) => true,
        Err(Error::StdinBlocked { written, .. }) => {
            left.drain(..written);
            false
        }
        Err(error) => panic!("{error}"),
    });
}

#[test]
fn unread_stdout_stops_reading_and_loses_nothing() {
    let world = World::new([]);
    let mut config = world.config().paused();
    config.write_timeout = Duration::from_millis(1_500);
    let pi = Pi::spawn(config);
    let pad = "x".repeat(1_000);
    let line = |number: usize| {
        format!("{{\"id\":\"n{number}\",\"type\":\"get_messages\",\"pad\":\"{pad}\"}}\n").into_bytes()
    };
    let mut sent = 0;
    let rest = loop {
        match pi.agent.send_raw(&line(sent)) {
            Ok(()) => sent += 1,
            Err(Error::StdinBlocked { written, .. }) => break line(sent).split_off(written),
            Err(error) => panic!("{error}"),
        }
        assert!(
            sent < 500_000,
            "it reads on and on although nobody reads what it says"
        );
    };
    let memory = memory_kb(pi.agent.pid(), "VmHWM");
    assert!(memory < 96 * 1024, "{memory} kB");
    pi.agent.resume_stdout();
    send_all(&pi, &rest);
    pi.response(&format!("n{sent}"));
    let lines = pi.lines();
    let ids: Vec<&str> = of_type(&lines, "response")
        .into_iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        (0..=sent).map(|number| format!("n{number}")).collect::<Vec<_>>(),
        "nothing lost, nothing reordered"
    );
}

#[test]
fn unread_long_responses_are_bounded_in_bytes() {
    let world = World::new([Reply::text(["Read."])]);
    let mut config = world.config();
    config.write_timeout = Duration::from_millis(1_500);
    let pi = Pi::spawn(config);
    let text = "x".repeat(256 << 10);
    pi.say(&text);
    let before = memory_kb(pi.agent.pid(), "VmHWM");
    pi.agent.pause_stdout();
    // Long lines, so that few of them fill the queue of commands.
    let pad = "x".repeat(10_000);
    let line = |number: usize| {
        format!("{{\"id\":\"n{number}\",\"type\":\"get_fork_messages\",\"pad\":\"{pad}\"}}\n").into_bytes()
    };
    let mut sent = 0;
    loop {
        match pi.agent.send_raw(&line(sent)) {
            Ok(()) => sent += 1,
            Err(Error::StdinBlocked { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 50_000, "stdin is read on and on");
    }
    let more = memory_kb(pi.agent.pid(), "VmHWM").saturating_sub(before);
    assert!(more < 64 * 1024, "{more} kB");
    pi.agent.resume_stdout();
    for number in [0, 1, 2] {
        let response = pi.response(&format!("n{number}"));
        let message = &response["data"]["messages"][0];
        assert_eq!(message["text"].as_str().map(str::len), Some(256 << 10));
    }
}

#[test]
fn unread_answer_is_held_at_provider() {
    let world = World::new([
        Reply::text_deltas(60_000, 100).batch(65_536),
        Reply::text(["next"]),
    ]);
    let pi = Pi::spawn(world.config().paused());
    pi.send(json!({"type": "prompt", "message": "Go"}));
    world.server.wait_requests(1, LONG).unwrap();
    // The provider cannot send the whole answer while the client does not read.
    assert!(world.server.wait_ended(1, Duration::from_millis(1_500)).is_err());
    let memory = memory_kb(pi.agent.pid(), "VmHWM");
    assert!(memory < 96 * 1024, "{memory} kB");
    pi.agent.resume_stdout();
    pi.settled();
    assert_eq!(text(answers(&pi.lines())[0]).len(), 6_000_000);
    pi.finish();
}

#[test]
fn unread_output_of_user_command_is_held() {
    let world = World::new([]);
    let pi = Pi::spawn(world.config().paused());
    let started = started_kb(&world);
    // More than any pipe holds, so the file appears only after the client has read.
    let done = world.dir.cwd().join("done");
    let command = format!("yes 0123456789 | head -c 100000000; touch '{}'", done.display());
    pi.send(json!({"id": "b", "type": "bash", "command": command}));
    std::thread::sleep(Duration::from_secs(3));
    let more = memory_kb(pi.agent.pid(), "VmHWM").saturating_sub(started);
    assert!(more < 40 * 1024, "{more} kB without a reader");
    assert!(!done.exists(), "all output was taken although nobody reads it");
    pi.agent.resume_stdout();
    let response = pi.response("b");
    assert_eq!(
        (&response["data"]["exitCode"], &response["data"]["truncated"]),
        (&json!(0), &json!(true))
    );
    assert!(done.exists());
    pi.finish();
}

/// Memory of an agent that has started, in kB.
fn started_kb(world: &World) -> u64 {
    let started = Pi::spawn(world.config());
    started.send(json!({"id": "state", "type": "get_state"}));
    started.response("state");
    let most = memory_kb(started.agent.pid(), "VmHWM");
    started.finish();
    most
}

/// Commands before the prompt, and the session that it is for, if it is not the first.
type Client = (&'static str, Vec<Value>, Option<&'static str>);

/// Clients for which a long answer is encoded in different ways.
fn slow_clients() -> [Client; 3] {
    [
        ("first session", vec![], None),
        (
            "numbered lines",
            vec![json!({"type": "hello", "sequence": true})],
            None,
        ),
        (
            "another session",
            vec![json!({"type": "open_session", "session": "s"})],
            Some("s"),
        ),
    ]
}

/// A client that stops reading while an answer of so many deltas comes, and goes on: its lines, and how much more memory than at
/// the start the agent took, in kB.
fn slow_client(deltas: u64, (about, before, session): Client) -> (Vec<Value>, u64) {
    let world = World::new([Reply::text_deltas(deltas, 15_000).batch(65_536)]);
    let pi = Pi::spawn(world.config().paused());
    // Paused, so no answer is read: the memory of a started agent is that of another one.
    let started = started_kb(&world);
    for command in before {
        pi.send(command);
    }
    let mut prompt = json!({"type": "prompt", "message": "Go"});
    if let Some(session) = session {
        prompt["session"] = session.into();
    }
    pi.send(prompt);
    world.server.wait_requests(1, LONG).unwrap();
    // The server waits, too, unless the agent and the system's buffers, which grow to many megabytes, have taken the whole answer.
    let has_ended = world.server.wait_ended(1, Duration::from_millis(1_500)).is_ok();
    assert!(!has_ended || deltas < 3_000);
    let more = || memory_kb(pi.agent.pid(), "VmHWM").saturating_sub(started);
    let stalled = more();
    assert!(stalled < 24 * 1024, "{about}: {stalled} kB without a reader");
    pi.agent.resume_stdout();
    pi.settled();
    let peak = more();
    (pi.lines(), peak)
}

#[test]
fn answer_over_limit_stays_small_for_slow_client() {
    for client in slow_clients() {
        let about = client.0;
        let (lines, peak) = slow_client(5_000, client);
        let length = text(answers(&lines)[0]).len();
        assert!((16_700_000..=16 << 20).contains(&length), "{length}");
        // The text is in the stream, in the encoder, and once more in the line for the session file; the allocator keeps some
        // freed memory.
        assert!(peak < 68 * 1024, "{about}: {peak} kB");
    }
}

#[test]
fn longest_whole_answer_reaches_slow_client() {
    let [client, ..] = slow_clients();
    let (lines, peak) = slow_client(1_110, client);
    let whole = |line: &Value| {
        let event = &line["assistantMessageEvent"];
        let text = match line["type"].as_str() {
            Some("message_update") if event["type"] == "text_end" => &event["content"],
            Some("message_end" | "turn_end") if line["message"]["role"] == "assistant" => {
                &line["message"]["content"][0]["text"]
            }
            Some("agent_end") => &line["messages"][1]["content"][0]["text"],
            _ => return None,
        };
        text.as_str().map(str::len)
    };
    let lengths: Vec<usize> = lines.iter().filter_map(whole).collect();
    assert_eq!(lengths, [1_110 * 15_000; 4]);
    assert!(peak < 96 * 1024, "{peak} kB");
}

/// The client reads nothing for a minute, requests come until stdin blocks, and the provider has an answer of 1 GB.
#[test]
#[ignore = "takes minutes; see docs/project/robustness.md"]
fn minute_without_reader_costs_little_memory() {
    let world = World::new([Reply::text_deltas(66_667, 15_000).batch(65_536)]);
    let mut config = world.config().paused();
    config.write_timeout = Duration::from_secs(5);
    // Long updates are not kept, so that all responses are.
    config.max_line = 1 << 16;
    let pi = Pi::spawn(config);
    let started = started_kb(&world);
    let begun = std::time::Instant::now();
    pi.send(json!({"type": "prompt", "message": "Go"}));
    world.server.wait_requests(1, LONG).unwrap();
    let pad = "x".repeat(1_000);
    let line = |number: usize| {
        format!("{{\"id\":\"n{number}\",\"type\":\"get_commands\",\"pad\":\"{pad}\"}}\n").into_bytes()
    };
    let mut sent = 0;
    let rest = loop {
        match pi.agent.send_raw(&line(sent)) {
            Ok(()) => sent += 1,
            Err(Error::StdinBlocked { written, .. }) => break line(sent).split_off(written),
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 500_000, "stdin is read on and on");
    };
    std::thread::sleep(Duration::from_secs(60).saturating_sub(begun.elapsed()));
    assert!(world.server.wait_ended(1, Duration::ZERO).is_err());
    let stalled = memory_kb(pi.agent.pid(), "VmHWM").saturating_sub(started);
    pi.agent.resume_stdout();
    send_all(&pi, &rest);
    pi.response(&format!("n{sent}"));
    let mut lines = pi.lines();
    if of_type(&lines, "agent_settled").is_empty() {
        pi.settled();
        lines.extend(pi.lines());
    }
    let responses = of_type(&lines, "response").into_iter();
    let ids = responses.filter_map(|line| line["id"].as_str());
    let ids: Vec<&str> = ids.filter(|id| id.starts_with('n')).collect();
    let wanted: Vec<String> = (0..=sent).map(|number| format!("n{number}")).collect();
    assert!(ids == wanted, "nothing lost, nothing reordered: {ids:?}");
    let peak = memory_kb(pi.agent.pid(), "VmHWM").saturating_sub(started);
    eprintln!("{sent} requests; {stalled} kB more after a minute, {peak} kB at most");
    assert!(stalled < 64 * 1024 && peak < 68 * 1024, "{stalled}, {peak} kB");
    // The line of the answer is too long for the driver; the file has it.
    let file = std::fs::read_to_string(pi.file()).unwrap();
    let answer: Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    let length = text(&answer["message"]).len();
    assert!((16_700_000..=16 << 20).contains(&length), "{length}");
}

#[test]
fn silent_provider_hits_idle_limit_and_retries() {
    let silent = Before {
        drop: Some(CutHow::Stall),
        ..Before::default()
    };
    let world = World::new([
        Reply::text(["x"]).before(silent),
        Reply::text(["half"]).drop_here(CutHow::Stall),
    ]);
    // On a busy machine this answer may be late as well, and is asked for again.
    world.server.set_default(Reply::text(["whole"]));
    let retry = json!({"baseDelayMs": 10, "maxRetries": 10, "provider": {"maxRetries": 0}});
    world.settings(json!({"httpIdleTimeoutMs": 250, "retry": retry}));
    let pi = world.start();
    let lines = pi.say("Go");
    let answers = answers(&lines);
    let (whole, failed) = answers.split_last().unwrap();
    assert!(failed.len() >= 2, "{answers:?}");
    assert!(
        failed.iter().all(|answer| answer["stopReason"] == "error"),
        "{failed:?}"
    );
    assert_eq!(of_type(&lines, "auto_retry_start").len(), failed.len());
    assert_eq!(
        (text(whole), &whole["stopReason"]),
        ("whole".to_owned(), &json!("stop"))
    );
    pi.finish();
}

#[test]
fn tools_do_not_see_keys() {
    let world = World::new([
        bash("c1", "env; cat /proc/$PPID/environ | tr '\\0' '\\n'"),
        Reply::text(["done"]),
    ]);
    let mut models = testkit::workspace::default_models(&world.server.url());
    models["providers"]["mock-anthropic"]["apiKey"] = json!("MY_OWN_KEY");
    world.dir.write_models(&models).unwrap();
    let keys = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
        "MY_OWN_KEY",
    ];
    let mut config = world.config().env("HARMLESS", "seen");
    for key in keys {
        config = config.env(key, "sk-secret-value");
    }
    let pi = Pi::spawn(config);
    let lines = pi.say("Go");
    assert_eq!(
        world.server.requests()[0].header("x-api-key"),
        Some("sk-secret-value")
    );
    let result = of_type(&lines, "tool_execution_end")[0].to_string();
    assert!(
        result.contains("HARMLESS=seen") && !result.contains("sk-secret-value"),
        "{result}"
    );
    let own = pi.data(json!({"type": "bash", "command": "env"}))["output"].to_string();
    assert!(
        own.contains("HARMLESS=seen") && !own.contains("sk-secret-value"),
        "{own}"
    );
    let file = std::fs::read_to_string(pi.file()).unwrap();
    assert!(!file.contains("sk-secret-value"));
    pi.finish();
}

#[test]
fn closed_stdout_ends_agent() {
    let world = World::new([]);
    let mut command = std::process::Command::new(crate::kit::PROGRAM);
    command
        .args(["--mode", "rpc", "--model", "offline/echo"])
        .env_clear()
        .envs(world.dir.env())
        .current_dir(world.dir.cwd());
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    until("its end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
