//! What a delta costs: `cargo run --release -p pinion-serve --example encode_bench`.

#![expect(clippy::print_stdout, reason = "prints its findings")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinion_serve::{Encoder, Form};
use wire::{AssistantMessage, Event, Message, StreamEvent, Usage};

const DELTAS: u32 = 20_000;

fn events() -> Vec<Event> {
    let message = AssistantMessage::begin("anthropic-messages", "anthropic", "some-model", 1_700_000_000_000);
    let start = Event::MessageStart {
        message: Arc::new(Message::Assistant(message)),
    };
    let delta = |at: u32| Event::MessageUpdate {
        usage: Usage {
            output: u64::from(at / 100),
            ..Usage::default()
        },
        assistant_message_event: StreamEvent::TextDelta {
            content_index: 0,
            delta: format!("word {at:013}\n\n"),
        },
    };
    std::iter::once(start).chain((0..DELTAS).map(delta)).collect()
}

/// Encodes everything, `batch` events at a time that come `gap` apart. Gives time and bytes.
fn run(form: Form, events: &[Event], batch: usize, gap: Duration) -> (Duration, usize) {
    let mut encoder = Encoder::new(form);
    let mut out = Vec::new();
    let mut bytes = 0;
    let begin = Instant::now();
    let mut clock = begin;
    for batch in events.chunks(batch) {
        for event in batch {
            encoder.event(event, clock, &mut out);
        }
        encoder.flush_due(clock, &mut out);
        bytes += out.len();
        out.clear();
        clock += gap;
    }
    encoder.flush(clock, &mut out);
    (begin.elapsed(), bytes + out.len())
}

fn main() {
    let events = events();
    for (name, form) in [("cumulative", Form::Cumulative), ("delta", Form::Delta)] {
        for (batch, gap) in [(1, 0), (16, 0), (1, 5)] {
            let gap = Duration::from_millis(gap);
            let best = (0..5)
                .map(|_| run(form, &events, batch, gap))
                .min_by_key(|(time, _)| *time)
                .unwrap_or_default();
            println!(
                "{name:10} batches of {batch:2}, {gap:3?} apart: {:6} ns per delta, {:8} bytes ({} x the answer)",
                best.0.as_nanos() / u128::from(DELTAS),
                best.1,
                best.1 / (DELTAS as usize * 20),
            );
        }
    }
}
