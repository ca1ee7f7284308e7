//! Deltas that were taken but not written, and when they are due. How they are written is decided in `encode`.

use std::time::{Duration, Instant};

use wire::{StreamEvent, Usage};

use super::answer::Prose;
use super::json;
use crate::limits::{SMALL_ANSWER, UPDATE_RATE, UPDATE_SHARE};

/// What a delta adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text or reasoning block.
    Prose(Prose),
    /// The arguments of a tool call.
    Call,
}

/// What an event says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Start,
    Delta,
    End,
}

/// The block that an event is about.
pub(super) fn block(event: &StreamEvent) -> (usize, Stage) {
    match event {
        StreamEvent::TextStart { content_index }
        | StreamEvent::ThinkingStart { content_index }
        | StreamEvent::ToolcallStart { content_index, .. } => (*content_index, Stage::Start),
        StreamEvent::TextDelta { content_index, .. }
        | StreamEvent::ThinkingDelta { content_index, .. }
        | StreamEvent::ToolcallDelta { content_index, .. } => (*content_index, Stage::Delta),
        StreamEvent::TextEnd { content_index, .. }
        | StreamEvent::ThinkingEnd { content_index, .. }
        | StreamEvent::ToolcallEnd { content_index, .. } => (*content_index, Stage::End),
    }
}

/// Deltas of one block, put together.
#[derive(Debug)]
pub(crate) struct Delta {
    pub(crate) index: usize,
    pub(crate) kind: Kind,
    /// What stands between the quotes of the `delta` string.
    pub(crate) escaped: Vec<u8>,
}

/// All deltas that wait, and the pace at which they may leave.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    deltas: Vec<Delta>,
    bytes: usize,
    usage: Usage,
    /// When the newest update of this answer left, and its bytes.
    last: Option<(Instant, usize)>,
    /// Size of the answer at that time.
    shown: usize,
}

impl Pending {
    /// Forgets the pace: another answer begins.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns true if a delta of this block can be added without writing an earlier one first. Small answers keep the
    /// exact order of interleaved deltas. In large ones, deltas may swap places with deltas of other blocks, never with
    /// other events.
    pub(crate) fn takes(&self, index: usize, kind: Kind, size: usize) -> bool {
        match self.deltas.last() {
            // With nothing that waits there is no order to keep.
            None => true,
            Some(delta) => (delta.index, delta.kind) == (index, kind) || size > SMALL_ANSWER,
        }
    }

    /// Adds a delta. Gives its escaped text.
    pub(crate) fn add(&mut self, index: usize, kind: Kind, text: &str, usage: &Usage) -> &[u8] {
        if self.usage != *usage {
            self.usage = usage.clone();
        }
        // From the end: the block that grows is nearly always the newest.
        let found = self
            .deltas
            .iter()
            .rposition(|delta| (delta.index, delta.kind) == (index, kind));
        let place = found.unwrap_or_else(|| {
            self.deltas.push(Delta {
                index,
                kind,
                escaped: Vec::new(),
            });
            self.deltas.len() - 1
        });
        let Some(delta) = self.deltas.get_mut(place) else {
            return &[];
        };
        let before = delta.escaped.len();
        json::escape(&mut delta.escaped, text);
        self.bytes += delta.escaped.len() - before;
        delta.escaped.get(before..).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }

    /// Returns true if a delta of this block waits.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.deltas.iter().any(|delta| delta.index == index)
    }

    /// Escaped bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if the deltas of an answer of `size` bytes must be written now.
    pub(crate) fn due(&self, size: usize, now: Instant) -> bool {
        // Each delta that waits becomes an update of its own, which repeats the answer: so many blocks need so much more growth.
        size <= SMALL_ANSWER
            || size.saturating_sub(self.shown).saturating_mul(UPDATE_SHARE)
                >= size.saturating_mul(self.deltas.len())
            || self.deadline().is_none_or(|deadline| deadline <= now)
    }

    /// When deltas that wait are due at the latest; `None` when nothing holds them back or nothing waits.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        // A slow stream is not delayed further than its last update would take at this rate: a person reads along.
        let (at, bytes) = self.last?;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let wait = Duration::from_micros(bytes.saturating_mul(1_000_000) / UPDATE_RATE);
        (!self.is_empty()).then(|| at + wait)
    }

    /// Takes everything that waits, with the newest token counts.
    pub(crate) fn take(&mut self) -> (Vec<Delta>, Usage) {
        // The counts stay: a later update without new ones repeats them.
        self.bytes = 0;
        (std::mem::take(&mut self.deltas), self.usage.clone())
    }

    /// Takes what waits of one block, with the newest token counts.
    pub(crate) fn take_of(&mut self, index: usize) -> (Vec<Delta>, Usage) {
        let all = std::mem::take(&mut self.deltas);
        let (taken, rest): (Vec<Delta>, _) = all.into_iter().partition(|delta| delta.index == index);
        self.deltas = rest;
        let bytes: usize = taken.iter().map(|delta| delta.escaped.len()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        (taken, self.usage.clone())
    }

    /// An update of `bytes` bytes left; it showed `size` bytes of the answer.
    pub(crate) fn wrote(&mut self, now: Instant, bytes: usize, size: usize) {
        self.last = Some((now, bytes));
        self.shown = size;
    }
}
