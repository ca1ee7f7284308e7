//! The queued messages of a session. The agent has them in memory only, so the worker stores them with each change, before clients see
//! the change. The agent names texts; their images come from the commands that brought them.

use serde_json::{Value, json};
use store::{SessionId, StoreError};

use super::child::Line;
use crate::bus::{Bus, Fault, Publication, Until};
use crate::limits::COMMAND_BYTES;

/// The queued messages of one session.
#[derive(Default)]
pub(crate) struct StoredQueue {
    /// Commands that queue each message again, in order.
    messages: Vec<Line>,
    /// Commands with images whose message may become queued.
    arriving: Vec<Line>,
    /// Stored messages that this worker has given to its agent, which has not named them yet. They count as queued.
    restored: Vec<Line>,
    /// Sequence of the stored state: the fence.
    sequence: u64,
}

impl StoredQueue {
    /// Reads the stored state.
    pub(crate) async fn open(bus: &Bus, session: &SessionId) -> Result<Self, StoreError> {
        let last = bus.queues.last(&bus.subject("queue", session)).await?;
        let Some(last) = last else {
            return Ok(Self::default());
        };
        let messages: Vec<Line> =
            serde_json::from_slice(&last.payload).map_err(|error| StoreError::Engine {
                action: "read the queued messages",
                reason: error.to_string(),
            })?;
        Ok(Self {
            restored: messages.clone(),
            messages,
            arriving: Vec::new(),
            sequence: last.sequence,
        })
    }

    /// Commands that queue the messages again.
    pub(crate) fn messages(&self) -> &[Line] {
        &self.messages
    }

    /// Notes a command that the agent gets.
    pub(crate) fn sent(&mut self, command: &Line) {
        let has_images = command
            .get("images")
            .and_then(Value::as_array)
            .is_some_and(|images| !images.is_empty());
        if has_images && command.contains_key("message") {
            self.arriving.push(command.clone());
        }
    }

    /// Forgets the commands with images that had their response and are not queued.
    pub(crate) fn settled(&mut self) {
        self.arriving.clear();
    }

    /// Takes a `queue_update` of the agent.
    fn update(&mut self, event: &Line) {
        let mut known = std::mem::take(&mut self.messages);
        for (list, kind) in [("steering", "steer"), ("followUp", "follow_up")] {
            let texts = event.get(list).and_then(Value::as_array);
            for text in texts.into_iter().flatten() {
                let mut message = Line::new();
                message.insert("type".to_owned(), json!(kind));
                message.insert("message".to_owned(), text.clone());
                let same = |line: &Line| line.get("message") == Some(text);
                let images = match known.iter().position(same) {
                    Some(at) => known.remove(at).shift_remove("images"),
                    None => {
                        let at = self.arriving.iter().position(same);
                        at.and_then(|at| self.arriving.remove(at).shift_remove("images"))
                    }
                };
                message.extend(images.map(|images| ("images".to_owned(), images)));
                if let Some(at) = self.restored.iter().position(same) {
                    self.restored.remove(at);
                }
                self.messages.push(message);
            }
        }
        self.messages.extend(self.restored.iter().cloned());
    }

    /// The state as a message of the stream. Images that do not fit are left out: a text without them is better than none.
    fn payload(&self) -> String {
        let mut messages = self.messages.clone();
        loop {
            let payload = json!(messages).to_string();
            if payload.len() <= COMMAND_BYTES {
                return payload;
            }
            let last = messages
                .iter_mut()
                .rev()
                .find(|message| message.contains_key("images"));
            match last {
                Some(last) => drop(last.shift_remove("images")),
                None => return payload,
            }
        }
    }

    /// Stores the state after the `queue_update` events of a batch, if there are any.
    pub(crate) async fn store<'a>(
        &mut self,
        bus: &Bus,
        session: &SessionId,
        updates: impl Iterator<Item = &'a Line>,
        until: &Until,
    ) -> Result<(), Fault> {
        let mut has_changed = false;
        for event in updates {
            self.update(event);
            has_changed = true;
        }
        if !has_changed || (self.messages.is_empty() && self.sequence == 0) {
            return Ok(());
        }
        let subject = bus.subject("queue", session);
        let publication = Publication::new(subject, self.payload(), Some(self.sequence));
        self.sequence = bus.queues.publish(publication, until).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, StoredQueue};
    use serde_json::{Value, json};

    fn line(value: Value) -> Line {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn queued_message_keeps_images_of_its_command() {
        let mut queue = StoredQueue::default();
        queue.sent(&line(
            json!({"type": "steer", "message": "See", "images": [{"data": "x"}]}),
        ));
        queue.sent(&line(json!({"type": "follow_up", "message": "Later"})));
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["See"], "followUp": ["Later"]}),
        ));
        let expected = json!([
            {"type": "steer", "message": "See", "images": [{"data": "x"}]},
            {"type": "follow_up", "message": "Later"},
        ]);
        assert_eq!(json!(queue.messages()), expected);
        queue.settled();
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["See"], "followUp": []}),
        ));
        assert_eq!(json!(queue.messages()), json!([expected[0]]));
        queue.update(&line(
            json!({"type": "queue_update", "steering": [], "followUp": []}),
        ));
        assert_eq!(queue.payload(), "[]");
    }

    #[test]
    fn restored_messages_stay_until_agent_names_them() {
        let stored = [
            line(json!({"type": "steer", "message": "a"})),
            line(json!({"type": "steer", "message": "b", "images": [{"data": "x"}]})),
        ];
        let mut queue = StoredQueue {
            messages: stored.to_vec(),
            restored: stored.to_vec(),
            ..StoredQueue::default()
        };
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["a"], "followUp": []}),
        ));
        assert_eq!(queue.messages(), stored);
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["a", "b"], "followUp": []}),
        ));
        assert_eq!(queue.messages(), stored);
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["b"], "followUp": []}),
        ));
        assert_eq!(queue.messages(), stored.get(1..).unwrap());
    }

    #[test]
    fn images_above_message_limit_are_left_out() {
        let mut queue = StoredQueue::default();
        for text in ["a", "b"] {
            let images = json!([{"data": "x".repeat(600 << 10)}]);
            queue.sent(&line(json!({"type": "steer", "message": text, "images": images})));
        }
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["a", "b"], "followUp": []}),
        ));
        let stored: Vec<Line> = serde_json::from_str(&queue.payload()).unwrap();
        assert!(stored[0].contains_key("images") && !stored[1].contains_key("images"));
        assert_eq!(stored[1]["message"], "b");
    }
}
