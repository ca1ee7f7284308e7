//! Going on where a run died: without a new message, when the conversation waits for an answer. How a run goes on by itself
//! after a fault is in `retry` and `machine`.

use wire::Message;

use crate::effect::Effect;
use crate::turn_loop::TurnLoop;

impl TurnLoop {
    /// Did the last run die, so that the model could be asked once more? So it is when the newest message is the user's, a
    /// tool's result or an answer to one of them that failed, and nothing is under way. What no run produced (a user's
    /// shell command, a note, a summary) does not count.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        let newest = self.messages.iter().rev().find_map(|message| match &**message {
            Message::User(_) | Message::ToolResult(_) => Some(true),
            Message::Assistant(answer) if !answer.failed() => Some(false),
            _ => None,
        });
        self.is_idle() && newest == Some(true)
    }

    /// Asks once more. As with a retry, failed answers at the end stay in the file but leave the conversation.
    pub(crate) fn resume(&mut self, full: bool, now: i64, out: &mut Vec<Effect>) {
        if !self.can_continue() {
            return;
        }
        while self
            .messages
            .last()
            .and_then(|message| message.as_assistant())
            .is_some_and(|answer| answer.failed())
        {
            self.messages.pop();
        }
        self.budget.user_spoke();
        self.output.resume();
        self.begin(Vec::new(), full, now, out);
    }
}
