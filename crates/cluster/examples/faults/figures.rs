//! What sessions on several machines cost: times of appends, deltas and takeovers, and memory of workers and servers.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context};
use cluster::NatsStore;
use cluster::address::Address;
use serde_json::{Value, json};
use store::{SessionId, SessionStore as _};

use crate::gateway::{Gateway, Link};
use crate::place::{Place, is};

/// Longest wait for one answer.
const WAIT: Duration = Duration::from_secs(60);

/// Subjects whose memory is measured.
const SUBJECTS: usize = 100_000;

/// Measures everything, and prints each figure when it is known.
pub(crate) fn measure(place: &Place, sessions: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let say = |line: String| writeln!(std::io::stdout(), "{line}");
    say(format!(
        "append of one line to {} servers: {}",
        place.servers.len(),
        runtime.block_on(appends(place))?
    ))?;
    say(format!(
        "delta through a gateway, later than from the agent: {}",
        deltas(place)?
    ))?;
    say(format!(
        "first answer of a stored session of 10 MB: {}",
        runtime.block_on(takeovers(place))?
    ))?;
    say(format!("{sessions} idle sessions: {}", idle(place, sessions)?))?;
    for line in runtime.block_on(subjects(place))? {
        say(line)?;
    }
    Ok(())
}

/// Median and 99th percentile.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| {
        times
            .get(times.len().saturating_sub(1) * share / 100)
            .copied()
            .unwrap_or_default()
    };
    format!("p50 {:.2?}, p99 {:.2?} of {}", at(50), at(99), times.len())
}

async fn store(place: &Place) -> Result<NatsStore> {
    let Address::Nats(address) = Address::parse(&place.url())? else {
        anyhow::bail!("not an address of NATS")
    };
    Ok(NatsStore::connect(&address).await?)
}

fn header(id: &str, place: &Place) -> Vec<u8> {
    let cwd = place.path("project");
    json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd})
        .to_string()
        .into_bytes()
}

fn message(number: u64, text: &str) -> Vec<u8> {
    let parent = number.checked_sub(1).map(|before| format!("{before:08x}"));
    let message = if number.is_multiple_of(2) {
        json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": number})
    } else {
        json!({
            "role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": number, "api": "offline",
            "provider": "offline", "model": "script", "stopReason": "stop",
            "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
        })
    };
    let entry = json!({
        "type": "message", "id": format!("{number:08x}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": message,
    });
    entry.to_string().into_bytes()
}

/// What storing a message adds to its `message_end`.
async fn appends(place: &Place) -> Result<String> {
    let store = store(place).await?;
    let session = SessionId::new("appends")?;
    let mut position = store.append(&session, &[header("appends", place)], 0).await?;
    let mut times = Vec::new();
    for number in 0..1_000 {
        let line = message(number, &"x".repeat(1_000));
        let begin = Instant::now();
        position = store.append(&session, &[line], position).await?;
        times.push(begin.elapsed());
    }
    Ok(spread(times))
}

/// How much later a client of a gateway gets a delta than the reader of the agent's output.
fn deltas(place: &Place) -> Result<String> {
    // The output of the agent goes to the worker and, through a pipe, here.
    let (pipe, wrapper) = (place.path("lines"), place.path("agent.sh"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status()?;
    ensure!(made.success());
    let script = format!(
        "#!/bin/sh\n{} \"$@\" | tee {}\n",
        place.pinion.display(),
        pipe.display()
    );
    std::fs::write(&wrapper, script)?;
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))?;
    let text: Vec<Value> = (0..500)
        .flat_map(|n| [json!(format!("d{n} ")), json!({"delay": 0.02})])
        .collect();
    let wrapper = wrapper.display().to_string();
    let reader = std::thread::spawn(move || -> Result<HashMap<String, Instant>> {
        let mut times = HashMap::new();
        for line in BufReader::new(std::fs::File::open(pipe)?)
            .lines()
            .map_while(Result::ok)
        {
            times.extend(delta(&serde_json::from_str(&line)?).map(|delta| (delta, Instant::now())));
            if line.contains("agent_settled") {
                break;
            }
        }
        Ok(times)
    });
    let _worker = place.worker(
        "deltas",
        &json!([{"stream": [{"text": text}]}]),
        &["--program", &wrapper],
    )?;
    let mut client = place.start_gateway("deltas")?;
    client.until("ready")?;
    client.ask(json!({"id": 1, "type": "hello", "deltas": true}))?;
    client.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    let mut arrived = Vec::new();
    while !client
        .seen
        .last()
        .is_some_and(|line| is(line, "type", "agent_settled"))
    {
        let line = client.find("line", |_| true)?;
        arrived.extend(delta(&line).map(|delta| (delta, Instant::now())));
    }
    let local = reader
        .join()
        .map_err(|_| anyhow::anyhow!("the reader panicked"))??;
    let times = arrived
        .iter()
        .filter_map(|(delta, at)| Some(at.saturating_duration_since(*local.get(delta)?)));
    Ok(spread(times.collect()))
}

fn delta(line: &Value) -> Option<String> {
    let delta = line.pointer("/assistantMessageEvent/delta")?.as_str()?;
    is(line, "type", "message_update").then(|| delta.to_owned())
}

/// The time from a command until its answer, for sessions of 10 MB that no worker has.
async fn takeovers(place: &Place) -> Result<String> {
    let store = store(place).await?;
    let mut times = Vec::new();
    let _worker = place.worker("takeover", &json!([]), &[])?;
    let mut first = place.start_gateway("small")?;
    first.ask(json!({"id": 1, "type": "get_state"}))?;
    for index in 0..10 {
        let name = format!("big{index}");
        let session = SessionId::new(&name)?;
        let mut position = store.append(&session, &[header(&name, place)], 0).await?;
        for batch in 0..20 {
            let lines: Vec<Vec<u8>> = (0..50)
                .map(|n| message(batch * 50 + n, &"x".repeat(10_000)))
                .collect();
            position = store.append(&session, &lines, position).await?;
        }
        let mut client = place.start_gateway(&name)?;
        client.until("ready")?;
        let begin = Instant::now();
        let state = client.ask(json!({"id": 1, "type": "get_state"}))?;
        times.push(begin.elapsed());
        ensure!(
            state.pointer("/data/messageCount") == Some(&json!(1_000)),
            "{state}"
        );
    }
    Ok(spread(times))
}

/// Memory of a worker whose sessions have had one prompt, and what their prompts stored.
fn idle(place: &Place, sessions: usize) -> Result<String> {
    let before = storage(place)?;
    let script = json!([{"repeat": true, "stream": [{"text": "An answer of one line."}]}]);
    let worker = place.worker(
        "idle",
        &script,
        &["--max-sessions", "2000", "--lease-seconds", "10"],
    )?;
    let gateway = Arc::new(Gateway::start(place)?);
    for index in 0..sessions {
        let mut link = Link::new(Arc::clone(&gateway), &format!("idle{index}"));
        link.ask(WAIT, &json!({"id": index, "type": "prompt", "message": "Go"}))?;
        if !link.seen.iter().any(|line| is(line, "type", "agent_settled")) {
            link.find(WAIT, |line| is(line, "type", "agent_settled"))?;
        }
    }
    std::thread::sleep(Duration::from_secs(10));
    let (own, agent) = (memory(worker.0.id())?, memory(child(worker.0.id())?)?);
    let stored = (storage(place)? - before) / sessions as u64;
    Ok(format!(
        "worker {} MB, agent {} MB, together {} MB; {stored} bytes stored per session with one prompt",
        own >> 10,
        agent >> 10,
        (own + agent) >> 10
    ))
}

/// Resident memory of a process, in KiB.
fn memory(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The first child of a process.
fn child(process: u32) -> Result<u32> {
    let mut children = String::new();
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        children.push_str(&std::fs::read_to_string(thread?.path().join("children"))?);
    }
    Ok(children.split_whitespace().next().context("no child")?.parse()?)
}

/// Bytes of all streams on the first server.
fn storage(place: &Place) -> Result<u64> {
    let state: Value = serde_json::from_str(&place.servers.first().context("no server")?.page("/jsz")?)?;
    state.get("storage").and_then(Value::as_u64).context("no storage")
}

/// Memory of the servers, in KiB.
fn servers(place: &Place) -> Result<u64> {
    let engines = place.servers.iter().filter_map(|server| server.engine.as_ref());
    engines.map(|engine| memory(engine.child.id())).sum()
}

/// What a subject costs the servers, and how many leases a stream can renew.
async fn subjects(place: &Place) -> Result<Vec<String>> {
    let server = place.servers.first().context("no server")?;
    let client = async_nats::connect(format!("nats://127.0.0.1:{}", server.port)).await?;
    let context = jetstream::new(client);
    let count = place.servers.len();
    let mut lines = Vec::new();
    // As the streams of `Bus`: one message per subject, or many.
    for (name, latest, bytes) in [("lease", 1, 8), ("event", 20_000, 300)] {
        let config = Config {
            name: format!("figures-{name}"),
            subjects: vec![format!("figures.{name}.*")],
            max_messages_per_subject: latest,
            num_replicas: count,
            ..Config::default()
        };
        context.create_stream(config).await?;
        let (memory, stored) = (servers(place)?, storage(place)?);
        let begin = Instant::now();
        publish_all(&context, name, bytes).await?;
        let first = begin.elapsed();
        let begin = Instant::now();
        publish_all(&context, name, bytes).await?;
        let second = begin.elapsed();
        tokio::time::sleep(Duration::from_secs(20)).await;
        let grown = (servers(place)?.saturating_sub(memory) << 10) / (SUBJECTS * count) as u64;
        let stored = storage(place)?.saturating_sub(stored) / SUBJECTS as u64;
        let rate = |time: Duration| SUBJECTS as f64 / time.as_secs_f64();
        lines.push(format!(
            "{SUBJECTS} subjects of a stream like {name}s, {bytes} bytes each, published twice: {grown} bytes of memory and {stored} bytes \
             of storage per subject and server, {:.0} then {:.0} messages a second",
            rate(first),
            rate(second)
        ));
    }
    Ok(lines)
}

/// Publishes one message to each subject, up to 256 at a time.
async fn publish_all(context: &Context, name: &str, bytes: usize) -> Result<()> {
    let mut waiting = std::collections::VecDeque::new();
    for index in 0..SUBJECTS {
        let subject = format!("figures.{name}.019b7a2c-5000-7000-8000-{index:012}");
        let message = PublishMessage::build().payload("x".repeat(bytes).into());
        waiting.push_back(context.send_publish(subject, message).await?);
        if waiting.len() >= 256
            && let Some(first) = waiting.pop_front()
        {
            first.await?;
        }
    }
    for last in waiting {
        last.await?;
    }
    Ok(())
}
