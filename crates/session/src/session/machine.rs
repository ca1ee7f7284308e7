//! The machine of a session together with the record of its inputs. Reading is the machine's own; `step` is the only way to
//! change it, so no input can miss the record.

use std::ops::Deref;
use std::sync::Arc;

use agent::{Change, Effect, Input, LoopSettings, Machine};
use wire::Message;

use crate::input_record::{InputRecord, SessionRecord};

use super::clock::now_ms;

/// A machine whose inputs may be recorded.
#[derive(Debug)]
pub(super) struct RecordedMachine {
    machine: Machine,
    record: Option<SessionRecord>,
}

impl RecordedMachine {
    /// A machine for a session with these settings and this conversation.
    pub(super) fn open(
        record: Option<&InputRecord>,
        settings: LoopSettings,
        messages: Vec<Arc<Message>>,
    ) -> Self {
        let mut machine = Self {
            machine: Machine::default(),
            record: record.map(InputRecord::session),
        };
        machine.step(Change::Open { settings, messages }.into(), &mut Vec::new());
        machine
    }

    /// Gives the machine an input, now, and appends its effects.
    pub(super) fn step(&mut self, input: Input, out: &mut Vec<Effect>) {
        let now = now_ms();
        match &mut self.record {
            None => self.machine.step(input, now, out),
            Some(record) => record.step(&mut self.machine, input, now, out),
        }
    }
}

impl Deref for RecordedMachine {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}
