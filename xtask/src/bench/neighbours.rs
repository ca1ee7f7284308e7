//! Sessions of one process side by side: how much later a session's deltas reach the client while others flood it. What
//! sessions cost that do nothing is measured in `many`.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use testkit::llm::{Reply, Request};

use super::limits::{
    DELTA_BYTES, DELTAS, FLOODED_BYTES, PROBE_ANSWERS, PROBE_DELTAS, PROBE_MS, RUNS, SERVER_BATCH,
};
use super::output::Head;
use super::probe::{self, Probe};
use super::report::{Row, median};
use super::runner::{Runner, Stage};
use super::subject::Subject;

/// What the updates of the probing session have in them, and nobody else's.
const MARK: &str = "\"delta\":\"probe";
/// The session whose deltas are timed.
const PROBE: &str = "probe";

/// The sessions that flood; the server tells them by their prompts, which are their names.
const SINGLE: &str = "flood-single-writes";
const BATCHED: &str = "flood-large-writes";
const PRINTING: &str = "flood-bash-output";

/// What floods: its name in the table, and the sessions.
const LOADS: [(&str, &[&str]); 4] = [
    ("20,000 deltas, a write per delta", &[SINGLE]),
    ("20,000 deltas, writes of 16 KiB", &[BATCHED]),
    ("bash that prints 20 MB", &[PRINTING]),
    ("both, large writes", &[BATCHED, PRINTING]),
];

/// How late the deltas came.
struct Heard {
    /// Each one's delay, ms, the shortest first.
    delays: Vec<f64>,
    /// Floods that came to their end meanwhile.
    floods: usize,
}

impl Heard {
    /// The delay that this part of all deltas does not exceed, ms.
    fn within(&self, percent: usize) -> f64 {
        let at = (self.delays.len() * percent).div_ceil(100).saturating_sub(1);
        self.delays.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// Measures the delays without and with each load, one after another in the same process.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let mut scene = Scene::new(subject)?;
    let mut alone = Vec::new();
    let mut loaded: Vec<Vec<Heard>> = LOADS.iter().map(|_| Vec::new()).collect();
    for _ in 0..RUNS {
        alone.push(scene.listen(&[])?);
        for ((_, floods), heard) in LOADS.iter().zip(&mut loaded) {
            heard.push(scene.listen(floods)?);
        }
    }
    let quiet: Vec<f64> = alone.iter().map(|heard| heard.within(99)).collect();
    let middle =
        |all: &[Heard], percent| median(&all.iter().map(|heard| heard.within(percent)).collect::<Vec<_>>());
    let mut rows = vec![
        Row::new(
            "many",
            "from the server to the client, nobody floods: p99",
            "ms",
            quiet.clone(),
        )
        .note(&format!("p50 {:.2} ms", middle(&alone, 50))),
    ];
    for ((name, _), heard) in LOADS.iter().zip(&loaded) {
        let more = heard
            .iter()
            .zip(&quiet)
            .map(|(heard, quiet)| heard.within(99) - quiet)
            .collect();
        let floods: usize = heard.iter().map(|heard| heard.floods).sum();
        rows.push(
            Row::new("many", &format!("more of it beside {name}: p99"), "ms", more)
                .at_most(PROBE_MS)
                .note(&format!(
                    "p50 {:.2} ms, p100 {:.1} ms in all; {floods} floods",
                    middle(heard, 50),
                    middle(heard, 100)
                )),
        );
    }
    Ok(rows)
}

/// An agent with the sessions open.
struct Scene {
    agent: Runner,
    probe: Probe,
    /// Holds the scripted model of those that flood.
    _stage: Stage,
}

impl Scene {
    fn new(subject: &Subject) -> Result<Self> {
        let stage = Stage::new()?;
        let probe = Probe::start()?;
        let provider = |url: &str, name: &str| {
            json!({
                "baseUrl": format!("{url}/anthropic"), "api": "anthropic-messages", "apiKey": "mock-key",
                "models": [{
                    "id": name, "name": name, "reasoning": false, "input": ["text"],
                    "contextWindow": 100_000_000, "maxTokens": 1_000_000,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                }],
            })
        };
        stage.workspace.write_models(&json!({"providers": {
            "mock": provider(&stage.server.url(), "mock"),
            "probe": provider(&probe.url(), "probe"),
        }}))?;
        stage.server.set_rule(reply);
        let mut agent = stage.start_keeping(subject, Some(MARK))?;
        for session in [SINGLE, BATCHED, PRINTING, PROBE] {
            agent.ask(json!({"type": "open_session", "session": session}))?;
        }
        let mut scene = Self {
            agent,
            probe,
            _stage: stage,
        };
        // Code is loaded and connections are opened before anything counts.
        for (_, floods) in LOADS {
            scene.listen(floods)?;
        }
        Ok(scene)
    }

    /// Starts the floods, times the probe's deltas while they last, and lets them end. A flood that is over begins anew.
    fn listen(&mut self, floods: &[&str]) -> Result<Heard> {
        self.probe.reset();
        for flood in floods {
            self.prompt(flood)?;
        }
        let mut begun = BTreeSet::new();
        let (mut delays, mut answers, mut ended, mut running) = (Vec::new(), 0, 0, floods.len());
        if floods.is_empty() {
            self.prompt(PROBE)?;
        }
        while running > 0 || answers < PROBE_ANSWERS {
            let head = self.agent.next()?;
            if head.text.contains(MARK) {
                self.hear(&head, &mut delays)?;
                continue;
            }
            let session = head.session().unwrap_or_default().to_owned();
            match head.kind() {
                "agent_start"
                    if session != PROBE && begun.insert(session.clone()) && begun.len() == floods.len() =>
                {
                    self.prompt(PROBE)?;
                }
                "agent_settled" if session == PROBE => {
                    answers += 1;
                    if answers < PROBE_ANSWERS {
                        self.prompt(PROBE)?;
                    }
                }
                "agent_settled" if answers < PROBE_ANSWERS => {
                    ended += 1;
                    self.prompt(&session)?;
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

    /// Lets a session run. Its conversation begins anew, so that every run is like the one before.
    fn prompt(&mut self, session: &str) -> Result<()> {
        self.agent
            .send(&json!({"type": "new_session", "session": session}))?;
        if session == PROBE {
            // A new conversation has the model of the command line.
            self.agent.send(
                &json!({"type": "set_model", "session": session, "provider": "probe", "modelId": "probe"}),
            )?;
        }
        self.agent
            .send(&json!({"type": "prompt", "session": session, "message": session}))
    }

    /// Notes the delays of the deltas in an update; those that it was joined with came with it.
    fn hear(&self, head: &Head, delays: &mut Vec<f64>) -> Result<()> {
        let last = probe::numbers(head.delta().unwrap_or_default()).last();
        let Some(last) = last else {
            bail!("an update without a number: {}", head.text)
        };
        for number in delays.len()..=last {
            let Some(sent) = self.probe.sent_at(number) else {
                bail!("delta {number} came and was never sent")
            };
            delays.push(head.at.saturating_duration_since(sent).as_secs_f64() * 1e3);
        }
        Ok(())
    }
}

/// What the scripted model says to those that flood.
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
