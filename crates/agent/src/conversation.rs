//! The conversation of a session: finished messages, and messages from outside that wait for the results of tools. Not here:
//! what follows from a message (`turn_loop`), the form in which providers get it (`convert`).

use std::sync::Arc;

use wire::{AssistantMessage, Message};

use crate::convert;

/// Finished messages, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    messages: Vec<Arc<Message>>,
    /// Messages from outside that wait until the calls of the newest answer have their results.
    added: Vec<Arc<Message>>,
}

impl Conversation {
    pub(crate) fn new(messages: Vec<Arc<Message>>) -> Self {
        Self {
            messages,
            added: Vec::new(),
        }
    }

    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.messages.push(message);
    }

    /// Keeps a message until the results are there: providers refuse a conversation in which anything stands between a call
    /// and its result.
    pub(crate) fn push_after_results(&mut self, message: Arc<Message>) {
        self.added.push(message);
    }

    /// The results are there: what waited for them follows.
    pub(crate) fn end_calls(&mut self) {
        self.messages.append(&mut self.added);
    }

    /// Leaves out the newest message. It stays in the file.
    pub(crate) fn pop(&mut self) {
        self.messages.pop();
    }

    /// Leaves out the newest answer if it has failed. It stays in the file. Messages from outside that came after it stay.
    pub(crate) fn drop_failed_answer(&mut self) {
        let mut newest = self.messages.iter().enumerate().rev();
        let answer = newest.find_map(|(at, message)| Some((at, message.as_assistant()?.failed())));
        if let Some((at, true)) = answer {
            self.messages.remove(at);
        }
    }

    /// Leaves out answers at the end that failed. They stay in the file.
    pub(crate) fn drop_failed(&mut self) {
        self.drop_answers(AssistantMessage::failed);
    }

    /// Leaves out answers at the end that failed, or that found no room and so say nothing.
    pub(crate) fn drop_void(&mut self) {
        self.drop_answers(|answer| answer.failed() || convert::is_void(answer));
    }

    /// Leaves out empty answers at the end. They stay in the file.
    pub(crate) fn drop_empty(&mut self) {
        self.drop_answers(convert::is_empty);
    }

    fn drop_answers(&mut self, is_dropped: impl Fn(&AssistantMessage) -> bool) {
        while self
            .messages
            .last()
            .and_then(|message| message.as_assistant())
            .is_some_and(&is_dropped)
        {
            self.messages.pop();
        }
    }

    /// Takes over the conversation as it was read from the file. While tools run, their answer `open` stays the newest
    /// message: the file lacks results, so the caller has closed the calls with made-up results, and the real ones are
    /// still to come. Results that were told come with `push`.
    pub(crate) fn set(&mut self, mut messages: Vec<Arc<Message>>, open: Option<&Arc<Message>>) {
        if let Some(open) = open {
            match messages.iter().rposition(|message| is_same(message, open)) {
                Some(at) => messages.truncate(at + 1),
                // The answer comes back, since its results are still to come.
                None => messages.push(Arc::clone(open)),
            }
        }
        self.messages = messages;
    }

    /// Appends messages, in their order, that a conversation from the file lacks because they are not stored yet.
    pub(crate) fn append_unstored(&mut self, unstored: Vec<Arc<Message>>) {
        // The answer whose calls run is the newest already (`set`), and others of them come before it.
        let is_unstored = |last: &mut Arc<Message>| unstored.iter().any(|message| Arc::ptr_eq(message, last));
        self.messages.pop_if(is_unstored);
        for message in unstored {
            // A prompt may be in the file before its run begins.
            if !self.messages.iter().rev().any(|known| is_same(known, &message)) {
                self.messages.push(message);
            }
        }
    }

    /// Puts another message in the place of one. Gives how many equal messages are newer, or nothing if the message has left
    /// the conversation.
    pub(crate) fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) -> Option<usize> {
        // It is one of the newest messages.
        let at = self.messages.iter().rposition(|known| Arc::ptr_eq(known, old))?;
        // Its place among equal messages finds it in the run, too, which may share no memory (`replace_equal`).
        let newer = self.messages.iter().skip(at + 1);
        let newer = newer.filter(|message| is_same(message, old)).count();
        replace_equal(&mut self.messages, old, new, newer);
        Some(newer)
    }

    /// Puts another message in the place of the newest that equals `old`.
    pub(crate) fn replace_newest(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
        replace_equal(&mut self.messages, old, new, 0);
    }

    pub(crate) fn last_answer(&self) -> Option<&AssistantMessage> {
        let mut newest = self.messages.iter().rev();
        newest.find_map(|message| message.as_assistant())
    }

    /// Returns true if a request could be made with the conversation as it is: an answer must not be the newest thing in it.
    pub(crate) fn can_be_asked(&self) -> bool {
        // Unlike in `lacks_answer`, a message of an extension suffices: hooks that want one more request may have added it.
        let newest = self.messages.iter().rev().find_map(|message| match &**message {
            Message::Assistant(answer) if answer.failed() => None,
            Message::Assistant(_) => Some(false),
            _ => Some(true),
        });
        newest == Some(true)
    }

    /// Returns true if the last run died, so that the model could be asked once more: the newest message is the user's, a
    /// tool's result or an answer to one of them that failed. What no run produced (a user's shell command, a note, a summary)
    /// does not count.
    pub(crate) fn lacks_answer(&self) -> bool {
        let newest = self.messages.iter().rev().find_map(|message| match &**message {
            Message::User(_) | Message::ToolResult(_) => Some(true),
            Message::Assistant(answer) if !answer.failed() => Some(false),
            _ => None,
        });
        newest == Some(true)
    }
}

/// Puts another message in the place of the one with `newer` equal ones behind it. By value, since a conversation that was read
/// again shares no memory with the run; equal messages are two prompts with the same text within a millisecond.
pub(crate) fn replace_equal(
    messages: &mut [Arc<Message>],
    old: &Arc<Message>,
    new: &Arc<Message>,
    newer: usize,
) {
    let mut equal = messages.iter_mut().rev().filter(|message| is_same(message, old));
    if let Some(message) = equal.nth(newer) {
        *message = Arc::clone(new);
    }
}

pub(crate) fn is_same(a: &Arc<Message>, b: &Arc<Message>) -> bool {
    // The address first, which saves comparing long texts.
    Arc::ptr_eq(a, b) || a == b
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{StopReason, UserMessage};

    fn user(text: &str) -> Arc<Message> {
        let message = serde_json::json!({"role": "user", "content": text, "timestamp": 1});
        Arc::new(Message::User(
            serde_json::from_value::<UserMessage>(message).unwrap(),
        ))
    }

    fn answer(reason: StopReason) -> Arc<Message> {
        let mut answer = AssistantMessage::begin("api", "provider", "model", 1);
        answer.stop_reason = reason;
        answer.into()
    }

    #[test]
    fn outside_message_follows_the_results() {
        let mut conversation = Conversation::new(vec![answer(StopReason::ToolUse)]);
        conversation.push_after_results(user("note"));
        assert_eq!(conversation.messages().len(), 1);
        conversation.push(user("result"));
        conversation.end_calls();
        assert_eq!(conversation.messages()[1..], [user("result"), user("note")]);
        conversation.end_calls();
        assert_eq!(conversation.messages().len(), 3, "once");
    }

    #[test]
    fn failed_answers_leave_the_end_only() {
        let mut conversation = Conversation::new(vec![
            answer(StopReason::Error),
            user("a"),
            answer(StopReason::Error),
            answer(StopReason::Aborted),
        ]);
        conversation.drop_failed();
        assert_eq!(conversation.messages().len(), 2);
        assert!(conversation.lacks_answer());
    }

    #[test]
    fn failed_answer_leaves_notes_behind_it() {
        let mut conversation = Conversation::new(vec![user("a"), answer(StopReason::Error), user("note")]);
        conversation.drop_failed_answer();
        assert_eq!(conversation.messages(), [user("a"), user("note")]);
        let mut conversation = Conversation::new(vec![user("a"), answer(StopReason::Stop), user("note")]);
        conversation.drop_failed_answer();
        assert_eq!(conversation.messages().len(), 3, "it has not failed");
    }

    #[test]
    fn reread_conversation_ends_at_open_answer() {
        let open = answer(StopReason::ToolUse);
        let mut conversation = Conversation::default();
        conversation.set(
            vec![user("a"), answer(StopReason::ToolUse), user("made up")],
            Some(&open),
        );
        assert_eq!(conversation.messages(), [user("a"), Arc::clone(&open)]);
        conversation.set(vec![user("b")], Some(&open));
        assert_eq!(conversation.messages(), [user("b"), Arc::clone(&open)]);
        conversation.set(vec![user("c")], None);
        assert_eq!(conversation.messages(), [user("c")]);
    }

    #[test]
    fn replacement_hits_the_named_one_of_equals() {
        let (first, second) = (user("same"), user("same"));
        let mut conversation = Conversation::new(vec![Arc::clone(&first), Arc::clone(&second)]);
        assert_eq!(conversation.replace(&first, &user("new")), Some(1));
        assert_eq!(conversation.messages(), [user("new"), user("same")]);
        assert_eq!(conversation.replace(&second, &user("newer")), Some(0));
        assert_eq!(conversation.messages(), [user("new"), user("newer")]);
        assert_eq!(conversation.replace(&second, &user("late")), None, "has left");
    }

    #[test]
    fn newest_message_decides_whether_model_is_asked() {
        let of = |messages: &[Arc<Message>]| {
            let conversation = Conversation::new(messages.to_vec());
            (conversation.can_be_asked(), conversation.lacks_answer())
        };
        let note = Arc::new(crate::ttsr::hidden("note", "n".to_owned(), 1));
        assert_eq!(of(&[]), (false, false));
        assert_eq!(of(&[user("a")]), (true, true));
        assert_eq!(of(&[user("a"), answer(StopReason::Stop)]), (false, false));
        assert_eq!(of(&[user("a"), answer(StopReason::Error)]), (true, true));
        assert_eq!(
            of(&[user("a"), answer(StopReason::Stop), note]),
            (true, false),
            "a note is no run that died"
        );
    }
}
