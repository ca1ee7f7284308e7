//! Events of sub-agents for clients of today's oh-my-pi (dialects.md 14), in the form of events of the client's own session: a host
//! shows both with the same code, which reads `message` and `partial`.

use std::collections::BTreeMap;
use std::time::Instant;

use wire::Event;
use wire::subagent::SubagentEvent;

use super::{Encoder, json};

/// The sub-agents whose events the client receives, by id.
#[derive(Debug, Default)]
pub(super) struct Subagents {
    encoders: BTreeMap<String, SubagentEncoder>,
}

/// The encoder of a sub-agent, and what its lines say of the sub-agent.
#[derive(Debug)]
struct SubagentEncoder {
    call_id: String,
    encoder: Encoder,
}

impl Subagents {
    /// Takes an event of a sub-agent, which is written as [`Encoder::event`] would write it. `owner` is the encoder of the session
    /// that gave the task.
    pub(super) fn event(
        &mut self,
        payload: &SubagentEvent,
        owner: &Encoder,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        let entry = self.encoders.entry(payload.id.clone());
        let subagent = entry.or_insert_with(|| SubagentEncoder {
            call_id: payload.parent_tool_call_id.clone(),
            encoder: Encoder {
                // The lines are wrapped here, so each must be complete.
                repeats: None,
                ..owner.for_another()
            },
        });
        subagent.write(&payload.id, out, |encoder, lines| {
            encoder.session_event(&payload.event, now, lines);
        });
    }

    /// Forgets the sub-agent of an event that the client does not get, or its deltas would be written later. Returns false for events
    /// that are of no sub-agent.
    pub(super) fn leave_out(&mut self, event: &Event) -> bool {
        let Event::SubagentEvent { payload } = event else {
            return false;
        };
        self.encoders.remove(&payload.id);
        true
    }

    /// Writes deltas that are due.
    pub(super) fn flush_due(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.write_all(out, |encoder, lines| encoder.flush_due(now, lines));
    }

    /// Writes all deltas that were held back.
    pub(super) fn flush(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.write_all(out, |encoder, lines| encoder.flush(now, lines));
    }

    /// Writes the deltas of a sub-agent that must not come after this event of it.
    pub(super) fn flush_before(&mut self, event: &Event, now: Instant, out: &mut Vec<u8>) {
        if let Event::SubagentEvent { payload } = event
            && let Some(subagent) = self.encoders.get_mut(&payload.id)
        {
            subagent.write(&payload.id, out, |encoder, lines| {
                encoder.flush_before(&payload.event, now, lines);
            });
        }
    }

    /// About how many bytes of deltas that were held back are written before this event of a sub-agent.
    pub(super) fn bytes_before(&self, event: &Event) -> usize {
        let Event::SubagentEvent { payload } = event else {
            return 0;
        };
        let subagent = self.encoders.get(&payload.id);
        subagent.map_or(0, |subagent| subagent.encoder.bytes_before(&payload.event))
    }

    /// When deltas that are held back are due at the latest.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let encoders = self.encoders.values();
        encoders
            .filter_map(|subagent| subagent.encoder.next_deadline())
            .min()
    }

    /// Bytes of deltas that are held back.
    pub(super) fn held_back(&self) -> usize {
        let encoders = self.encoders.values();
        encoders.map(|subagent| subagent.encoder.held_back()).sum()
    }

    fn write_all(&mut self, out: &mut Vec<u8>, mut encode: impl FnMut(&mut Encoder, &mut Vec<u8>)) {
        for (id, subagent) in &mut self.encoders {
            subagent.write(id, out, &mut encode);
        }
    }
}

impl SubagentEncoder {
    /// Has the encoder write lines, and appends each as an event of the sub-agent.
    fn write(&mut self, id: &str, out: &mut Vec<u8>, encode: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let mut lines = Vec::new();
        encode(&mut self.encoder, &mut lines);
        // A line feed inside a JSON text is escaped.
        let lines = lines.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            out.extend_from_slice(b"{\"type\":\"subagent_event\",\"payload\":{\"id\":");
            json::value(out, id);
            out.extend_from_slice(b",\"parentToolCallId\":");
            json::value(out, &self.call_id);
            out.extend_from_slice(b",\"event\":");
            out.extend_from_slice(line);
            out.extend_from_slice(b"}}\n");
        }
    }
}
