//! An agent with several sessions: some flood on request, and the deltas of one are timed. `neighbours` evaluates the
//! times.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use testkit::llm::{Reply, Request};

use super::limits::{
    DELTA_BYTES, DELTAS, FLOODED_BYTES, PATIENCE, PROBE_ANSWERS, PROBE_DELTAS, PROBE_PACE, SERVER_BATCH,
};
use super::output::Head;
use super::probe::{self, Probe};
use super::runner::{Runner, Stage};
use super::subject::Subject;

/// Text that only the updates of the probing session contain.
const MARK: &str = "\"delta\":\"probe";
/// The session whose deltas are timed.
const PROBE: &str = "probe";

/// The sessions that flood; the server tells them by their prompts, which are their names.
pub(super) const SINGLE: &str = "flood-single-writes";
pub(super) const BATCHED: &str = "flood-large-writes";
pub(super) const PRINTING: &str = "flood-bash-output";

/// How late the deltas came.
pub(super) struct Heard {
    /// Each one's delay, ms, the shortest first.
    pub(super) delays: Vec<f64>,
    /// Floods that came to their end meanwhile.
    pub(super) floods: usize,
}

impl Heard {
    /// The delay that this part of all deltas does not exceed, ms.
    pub(super) fn within(&self, percent: usize) -> f64 {
        let at = (self.delays.len() * percent).div_ceil(100).saturating_sub(1);
        self.delays.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// An agent with the sessions open.
pub(super) struct Scene {
    agent: Runner,
    /// Another one, whose floods take the machine's time and nothing else.
    other: Runner,
    probe: Probe,
    /// Holds the scripted model of the flooding sessions.
    _stage: Stage,
}

impl Scene {
    /// Starts everything and lets each flood happen once, so that code is loaded and connections are open.
    pub(super) fn new(subject: &Subject) -> Result<Self> {
        let stage = Stage::new()?;
        let probe = Probe::start(PROBE_DELTAS, PROBE_PACE)?;
        stage.workspace.write_models(&json!({"providers": {
            "mock": probe::provider(&stage.server.url(), "mock"),
            "probe": probe.provider(),
        }}))?;
        stage.server.set_rule(reply);
        let mut agent = stage.start_keeping(subject, Some(MARK))?;
        let mut other = stage.start(subject)?;
        for session in [SINGLE, BATCHED, PRINTING] {
            agent.ask(json!({"type": "open_session", "session": session}))?;
            other.ask(json!({"type": "open_session", "session": session}))?;
        }
        agent.ask(json!({"type": "open_session", "session": PROBE}))?;
        let mut scene = Self {
            agent,
            other,
            probe,
            _stage: stage,
        };
        for flood in [SINGLE, BATCHED, PRINTING] {
            scene.beside(&[flood])?;
            scene.far_from(&[flood])?;
        }
        Ok(scene)
    }

    /// Times the deltas while other sessions of the same process flood.
    pub(super) fn beside(&mut self, floods: &[&str]) -> Result<Heard> {
        listen(&mut self.agent, &self.probe, floods)
    }

    /// Measures while the floods happen in the other process.
    pub(super) fn far_from(&mut self, floods: &[&str]) -> Result<Heard> {
        let over = &AtomicBool::new(false);
        let (begun, beginning) = channel();
        let Self {
            agent, other, probe, ..
        } = self;
        thread::scope(|scope| {
            let flooding = scope.spawn(move || flood(other, floods, &begun, over));
            // When it breaks, the channel does, and its error comes below.
            let _begun = beginning.recv_timeout(PATIENCE);
            let heard = listen(agent, probe, &[]);
            over.store(true, Ordering::Relaxed);
            let floods = flooding.join().ok().context("the flood broke")??;
            Ok(Heard { floods, ..heard? })
        })
    }
}

/// Starts the floods, times the probe's deltas while they last, and lets them end. A flood that is over begins anew.
fn listen(agent: &mut Runner, probe: &Probe, floods: &[&str]) -> Result<Heard> {
    probe.reset();
    for flood in floods {
        prompt(agent, flood)?;
    }
    let mut begun = BTreeSet::new();
    let (mut delays, mut answers, mut ended, mut running) = (Vec::new(), 0, 0, floods.len());
    if floods.is_empty() {
        prompt(agent, PROBE)?;
    }
    while running > 0 || answers < PROBE_ANSWERS {
        let head = agent.next()?;
        if head.text.contains(MARK) {
            hear(probe, &head, &mut delays)?;
            continue;
        }
        let session = head.session().unwrap_or_default().to_owned();
        match head.kind() {
            "agent_start"
                if session != PROBE && begun.insert(session.clone()) && begun.len() == floods.len() =>
            {
                prompt(agent, PROBE)?;
            }
            "agent_settled" if session == PROBE => {
                answers += 1;
                if answers < PROBE_ANSWERS {
                    prompt(agent, PROBE)?;
                }
            }
            "agent_settled" if answers < PROBE_ANSWERS => {
                ended += 1;
                prompt(agent, &session)?;
            }
            "agent_settled" => running -= 1,
            "response" if head.text.contains("\"success\":false") => {
                bail!("a command was refused: {}", head.text)
            }
            _ => {}
        }
    }
    let all = PROBE_ANSWERS * PROBE_DELTAS;
    ensure!(delays.len() == all, "{} of {all} deltas came", delays.len());
    delays.sort_by(f64::total_cmp);
    Ok(Heard {
        delays,
        floods: ended,
    })
}

/// Notes the delays of the deltas in an update; deltas merged into one update arrived together.
fn hear(probe: &Probe, head: &Head, delays: &mut Vec<f64>) -> Result<()> {
    let last = probe::numbers(head.delta().unwrap_or_default()).last();
    let Some(last) = last else {
        bail!("an update without a number: {}", head.text)
    };
    for number in delays.len()..=last {
        let Some(sent) = probe.sent_at(number) else {
            bail!("delta {number} came and was never sent")
        };
        delays.push(head.at.saturating_duration_since(sent).as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Lets the sessions flood again and again until it is over; gives back how often they did.
fn flood(agent: &mut Runner, floods: &[&str], begun: &Sender<()>, over: &AtomicBool) -> Result<usize> {
    for flood in floods {
        prompt(agent, flood)?;
    }
    let (mut starts, mut ended, mut running) = (0, 0, floods.len());
    while running > 0 {
        let head = agent.next()?;
        match head.kind() {
            "agent_start" => {
                starts += 1;
                if starts == floods.len() {
                    begun.send(())?;
                }
            }
            "agent_settled" if over.load(Ordering::Relaxed) => running -= 1,
            "agent_settled" => {
                ended += 1;
                prompt(agent, head.session().unwrap_or_default())?;
            }
            _ => {}
        }
    }
    Ok(ended)
}

/// Lets a session run. Its conversation begins anew, so that every run is like the one before.
fn prompt(agent: &mut Runner, session: &str) -> Result<()> {
    agent.send(&json!({"type": "new_session", "session": session}))?;
    if session == PROBE {
        // A new conversation has the model of the command line.
        agent.send(
            &json!({"type": "set_model", "session": session, "provider": "probe", "modelId": "probe"}),
        )?;
    }
    agent.send(&json!({"type": "prompt", "session": session, "message": session}))
}

/// The scripted model's reply to flooding sessions.
fn reply(request: &Request) -> Reply {
    let body = request.body.to_string();
    if body.contains(SINGLE) {
        Reply::text_deltas(DELTAS.0, DELTA_BYTES)
    } else if body.contains(BATCHED) {
        Reply::text_deltas(DELTAS.0, DELTA_BYTES).batch(SERVER_BATCH)
    } else if body.contains("tool_result") {
        Reply::text(["done"])
    } else {
        let command = format!("yes 'the quick brown fox jumps over the lazy dog' | head -c {FLOODED_BYTES}");
        Reply::tool(
            format!("call_{}", request.n),
            "bash",
            json!({ "command": command }),
        )
    }
}
