//! The fake model: makes up an answer, streams it piece by piece, and ends it well, badly or early.

use pinion_agent::{ModelInput, Verdict};
use wire::content::AssistantBlock;
use wire::{AssistantMessage, StopReason, StreamEvent, ThinkingContent, ToolCall, Usage};

use super::rng::Rng;

/// How a seed's model behaves: each number is "once in so many answers", 0 is never.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    pub(crate) calls: usize,
    pub(crate) fails: usize,
    pub(crate) overflows: usize,
    pub(crate) cut_off: usize,
}

/// A request that is out, and the answer that is on its way.
#[derive(Debug)]
pub(crate) struct Reply {
    pieces: std::vec::IntoIter<StreamEvent>,
    answer: AssistantMessage,
    verdict: Verdict,
    started: bool,
    pub(crate) cancelled: bool,
}

impl Reply {
    pub(crate) fn new(rng: &mut Rng, habits: Habits, serial: usize, now: i64) -> Self {
        let mut answer = AssistantMessage::begin("api", "provider", "model", now);
        let mut pieces = Vec::new();
        if rng.once_in(3) {
            think(rng, &mut answer, &mut pieces);
        }
        if rng.once_in(2) {
            talk(rng, serial, &mut answer, &mut pieces);
        }
        let calls = match () {
            () if !rng.once_in(habits.calls) => 0,
            () if rng.once_in(6) => 20,
            () => 1 + rng.below(4),
        };
        // Some providers number their calls anew in each answer.
        let again = rng.once_in(2);
        for n in 0..calls {
            let id = if again {
                format!("call_{n}")
            } else {
                format!("c{serial}_{n}")
            };
            call(id, &mut answer, &mut pieces);
        }
        answer.stop_reason = if calls > 0 {
            StopReason::ToolUse
        } else {
            StopReason::Stop
        };
        answer.usage.total_tokens = 10 * u64::try_from(serial).unwrap_or(0);
        let verdict = ending(rng, habits, &mut answer);
        let kept = if answer.failed() {
            rng.below(pieces.len() + 1)
        } else {
            pieces.len()
        };
        pieces.truncate(kept);
        Self {
            pieces: pieces.into_iter(),
            answer,
            verdict,
            started: false,
            cancelled: false,
        }
    }

    /// The next piece of news; the last one is `Finished`.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> ModelInput {
        // A request that was cancelled ends soon, but not always before it has said more.
        let ends = self.cancelled && !rng.once_in(4);
        let failed_early = !self.started && self.answer.failed() && rng.once_in(2);
        if !ends && !failed_early {
            if !self.started {
                self.started = true;
                let answer = &self.answer;
                return ModelInput::Started(AssistantMessage::begin(
                    &answer.api,
                    &answer.provider,
                    &answer.model,
                    answer.timestamp,
                ));
            }
            if let Some(piece) = self.pieces.next() {
                return ModelInput::Update(piece, Usage::default());
            }
        }
        let mut answer = self.answer.clone();
        let mut verdict = self.verdict;
        if ends && !rng.once_in(5) {
            answer.stop_reason = StopReason::Aborted;
            answer.error_message = Some("Request was aborted".to_owned());
            verdict = Verdict::Final;
        }
        ModelInput::Finished(answer, verdict)
    }
}

fn ending(rng: &mut Rng, habits: Habits, answer: &mut AssistantMessage) -> Verdict {
    let verdict = match () {
        () if rng.once_in(habits.overflows) => Verdict::Overflow,
        () if rng.once_in(habits.fails) => match rng.below(3) {
            0 => Verdict::Final,
            1 => Verdict::Retry(None),
            _ => Verdict::Retry(Some(rng.next() % 100_000)),
        },
        () => {
            if rng.once_in(habits.cut_off) {
                answer.stop_reason = StopReason::Length;
            }
            return Verdict::Final;
        }
    };
    answer.stop_reason = StopReason::Error;
    answer.error_message = Some(format!("failed: {verdict:?}"));
    verdict
}

fn think(rng: &mut Rng, answer: &mut AssistantMessage, pieces: &mut Vec<StreamEvent>) {
    let content_index = answer.content.len();
    let mut content = String::new();
    pieces.push(StreamEvent::ThinkingStart { content_index });
    for _ in 0..rng.below(3) {
        content.push_str("hm ");
        let delta = "hm ".to_owned();
        pieces.push(StreamEvent::ThinkingDelta { content_index, delta });
    }
    answer.content.push(AssistantBlock::Thinking(ThinkingContent {
        thinking: content.clone(),
        ..ThinkingContent::default()
    }));
    pieces.push(StreamEvent::ThinkingEnd {
        content_index,
        content,
    });
}

fn talk(rng: &mut Rng, serial: usize, answer: &mut AssistantMessage, pieces: &mut Vec<StreamEvent>) {
    let content_index = answer.content.len();
    let mut content = format!("answer {serial}");
    pieces.push(StreamEvent::TextStart { content_index });
    pieces.push(StreamEvent::TextDelta {
        content_index,
        delta: content.clone(),
    });
    for _ in 0..rng.below(3) {
        content.push_str(" more");
        let delta = " more".to_owned();
        pieces.push(StreamEvent::TextDelta { content_index, delta });
    }
    answer.content.push(AssistantBlock::text(content.clone()));
    pieces.push(StreamEvent::TextEnd {
        content_index,
        content,
    });
}

fn call(id: String, answer: &mut AssistantMessage, pieces: &mut Vec<StreamEvent>) {
    let content_index = answer.content.len();
    let tool_call = ToolCall {
        id: id.clone(),
        name: "tool".to_owned(),
        ..ToolCall::default()
    };
    pieces.push(StreamEvent::ToolcallStart {
        content_index,
        id,
        tool_name: "tool".to_owned(),
    });
    pieces.push(StreamEvent::ToolcallDelta {
        content_index,
        delta: "{}".to_owned(),
    });
    answer.content.push(AssistantBlock::ToolCall(tool_call.clone()));
    pieces.push(StreamEvent::ToolcallEnd {
        content_index,
        tool_call,
    });
}
