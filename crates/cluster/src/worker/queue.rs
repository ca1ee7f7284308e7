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
    /// Commands without a response whose message may become queued, with their keys.
    arriving: Vec<(String, Line)>,
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

    /// Why the agent must not get a command: with its text, the queue would not fit in a message of the stream. Commands without a
    /// response count as queued.
    pub(crate) fn refusal(&self, command: &Line) -> Option<String> {
        let text = queueable(command)?;
        let queued = self.messages.iter().filter_map(|line| line.get("message"));
        let arriving = self.arriving.iter().filter_map(|(_, line)| queueable(line));
        let size = |text: &Value| json!({"type": "follow_up", "message": text}).to_string().len() + 1;
        let bytes = 1 + queued.chain(arriving).chain([text]).map(size).sum::<usize>();
        (bytes > COMMAND_BYTES).then(|| {
            format!(
                "The queued messages of the session would have {bytes} bytes; a worker keeps at most {COMMAND_BYTES}. Send the \
                 message again when others are no longer queued"
            )
        })
    }

    /// Notes a command that the agent gets.
    pub(crate) fn sent(&mut self, key: &str, command: &Line) {
        let has_images = command
            .get("images")
            .and_then(Value::as_array)
            .is_some_and(|images| !images.is_empty());
        if queueable(command).is_some() || (has_images && command.contains_key("message")) {
            self.arriving.push((key.to_owned(), command.clone()));
        }
    }

    /// Forgets a command that had its response. If its message is queued, the agent has named it before.
    pub(crate) fn answered(&mut self, key: &str) {
        self.arriving.retain(|(arriving, _)| arriving != key);
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
                        let at = self.arriving.iter().position(|(_, line)| same(line));
                        at.and_then(|at| self.arriving.remove(at).1.shift_remove("images"))
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

    /// The state as a message of the stream. Images that do not fit are left out: a text without them is better than none. Then the last
    /// messages are, whose texts a template or an extension has made longer: without them, the others are still kept.
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
                None => drop(messages.pop()),
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

/// The text of a command that may become queued.
fn queueable(command: &Line) -> Option<&Value> {
    let is_queueable = match command.get("type").and_then(Value::as_str)? {
        "steer" | "follow_up" | "queue_message" | "edit_queued" => true,
        // Without the member, a prompt begins a run or fails.
        "prompt" => command.contains_key("streamingBehavior") || command.contains_key("streaming_behavior"),
        _ => false,
    };
    command.get("message").filter(|_| is_queueable)
}

#[cfg(test)]
mod tests {
    use super::{COMMAND_BYTES, Line, StoredQueue};
    use serde_json::{Value, json};

    fn line(value: Value) -> Line {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn queued_message_keeps_images_of_its_command() {
        let mut queue = StoredQueue::default();
        let see = json!({"type": "steer", "message": "See", "images": [{"data": "x"}]});
        queue.sent("1", &line(see));
        queue.sent("2", &line(json!({"type": "follow_up", "message": "Later"})));
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["See"], "followUp": ["Later"]}),
        ));
        let expected = json!([
            {"type": "steer", "message": "See", "images": [{"data": "x"}]},
            {"type": "follow_up", "message": "Later"},
        ]);
        assert_eq!(json!(queue.messages()), expected);
        queue.answered("1");
        queue.answered("2");
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
            let steer = json!({"type": "steer", "message": text, "images": images});
            queue.sent(text, &line(steer));
        }
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["a", "b"], "followUp": []}),
        ));
        let stored: Vec<Line> = serde_json::from_str(&queue.payload()).unwrap();
        assert!(stored[0].contains_key("images") && !stored[1].contains_key("images"));
        assert_eq!(stored[1]["message"], "b");
    }

    #[test]
    fn texts_above_message_limit_are_refused() {
        let mut queue = StoredQueue::default();
        let text = "x".repeat(600 << 10);
        let large = |kind: &str| line(json!({"type": kind, "message": text}));
        assert_eq!(queue.refusal(&large("follow_up")), None);
        queue.sent("1", &large("follow_up"));
        // Not queued yet.
        assert!(queue.refusal(&large("steer")).is_some());
        queue.update(&line(
            json!({"type": "queue_update", "steering": [], "followUp": [text]}),
        ));
        queue.answered("1");
        let refusal = queue.refusal(&large("follow_up")).unwrap();
        assert!(refusal.contains(&COMMAND_BYTES.to_string()), "{refusal}");
        let mut prompt = large("prompt");
        assert_eq!(queue.refusal(&prompt), None);
        prompt.insert("streamingBehavior".to_owned(), json!("steer"));
        assert!(queue.refusal(&prompt).is_some());
        let short = line(json!({"type": "steer", "message": "Soon"}));
        assert_eq!(queue.refusal(&short), None);
        queue.update(&line(
            json!({"type": "queue_update", "steering": [], "followUp": []}),
        ));
        assert_eq!(queue.refusal(&large("follow_up")), None);
    }

    #[test]
    fn accepted_texts_fit_in_message() {
        let mut queue = StoredQueue::default();
        let update =
            |texts: &[String]| line(json!({"type": "queue_update", "steering": [], "followUp": texts}));
        // Line feeds have two bytes in JSON.
        let mut texts = vec!["\n".repeat(200 << 10), "x".repeat(400 << 10)];
        queue.update(&update(&texts));
        let follow_up = |length: usize| json!({"type": "follow_up", "message": "x".repeat(length)});
        let rest = COMMAND_BYTES - queue.payload().len() - ",".len() - follow_up(0).to_string().len();
        assert!(queue.refusal(&line(follow_up(rest + 1))).is_some());
        assert_eq!(queue.refusal(&line(follow_up(rest))), None);
        texts.push("x".repeat(rest));
        queue.update(&update(&texts));
        assert_eq!(queue.payload().len(), COMMAND_BYTES);
        assert_eq!(json!(queue.messages()).to_string().len(), COMMAND_BYTES);
        // As if a template had made it longer.
        texts.push("x".to_owned());
        queue.update(&update(&texts));
        let stored: Vec<Line> = serde_json::from_str(&queue.payload()).unwrap();
        assert_eq!((queue.messages().len(), stored.len()), (4, 3));
    }
}
