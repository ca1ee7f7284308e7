//! The queued messages of a session, and the settings that protect its user. The agent has both in memory only, so the worker stores them
//! with each change, before clients see the change. The agent names texts; their images come from the commands that brought them.

use serde_json::{Value, json};
use store::{SessionId, StoreError};

use super::child::Line;
use crate::bus::{Bus, Fault, Publication, Until};
use crate::limits::COMMAND_BYTES;

/// Commands that limit what a session may do. Without them, a session whose worker changes would lose its protection.
const SETTINGS: [&str; 2] = ["set_permission_mode", "set_limits"];

/// The queued messages and the settings of one session.
#[derive(Default)]
pub(crate) struct StoredQueue {
    /// Commands that queue each message again, in order.
    messages: Vec<Line>,
    /// The last successful command of each of [`SETTINGS`].
    settings: Vec<Line>,
    /// Commands without a response that may change one of the two, with their keys.
    arriving: Vec<(String, Line)>,
    /// Stored messages that this worker has given to its agent, which has not named them yet. They count as queued.
    restored: Vec<Line>,
    /// True if the state differs from the stored one.
    has_changed: bool,
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
        let stored: Vec<Line> =
            serde_json::from_slice(&last.payload).map_err(|error| StoreError::Engine {
                action: "read the queued messages",
                reason: error.to_string(),
            })?;
        Ok(Self::stored(stored, last.sequence))
    }

    /// The state that a message of the stream has.
    fn stored(lines: Vec<Line>, sequence: u64) -> Self {
        let (settings, messages): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(is_setting);
        Self {
            restored: messages.clone(),
            messages,
            settings,
            sequence,
            ..Self::default()
        }
    }

    /// Commands that queue the messages again.
    pub(crate) fn messages(&self) -> &[Line] {
        &self.messages
    }

    /// Commands that a new owner gives to its agent before all others.
    pub(crate) fn settings(&self) -> &[Line] {
        &self.settings
    }

    /// Why the agent must not get a command: with it, the state would not fit in a message of the stream. Commands without a response count
    /// as queued.
    pub(crate) fn refusal(&self, command: &Line) -> Option<String> {
        let own = stored_bytes(command)?;
        let queued = self
            .messages
            .iter()
            .filter_map(|line| line.get("message"))
            .map(text_bytes);
        let settings = self.settings.iter().filter_map(stored_bytes);
        let arriving = self.arriving.iter().filter_map(|(_, line)| stored_bytes(line));
        let bytes = 1 + own + queued.chain(settings).chain(arriving).sum::<usize>();
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
        if stored_bytes(command).is_some() || (has_images && command.contains_key("message")) {
            self.arriving.push((key.to_owned(), command.clone()));
        }
    }

    /// Takes the response to a command. If its message is queued, the agent has named it before.
    pub(crate) fn answered(&mut self, key: &str, is_success: bool) {
        let Some(at) = self.arriving.iter().position(|(arriving, _)| arriving == key) else {
            return;
        };
        let (_, mut command) = self.arriving.remove(at);
        if is_success && is_setting(&command) {
            // The id is that of a client, and means nothing to another worker.
            command.shift_remove("id");
            self.settings
                .retain(|known| known.get("type") != command.get("type"));
            self.settings.push(command);
            self.has_changed = true;
        }
    }

    /// Takes a `queue_update` of the agent.
    pub(crate) fn update(&mut self, event: &Line) {
        self.has_changed = true;
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
            let lines: Vec<&Line> = self.settings.iter().chain(&messages).collect();
            let payload = json!(lines).to_string();
            if payload.len() <= COMMAND_BYTES || messages.is_empty() {
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

    /// Stores the state if it has changed.
    pub(crate) async fn store(&mut self, bus: &Bus, session: &SessionId, until: &Until) -> Result<(), Fault> {
        let is_empty = self.messages.is_empty() && self.settings.is_empty();
        if !self.has_changed || (is_empty && self.sequence == 0) {
            return Ok(());
        }
        let subject = bus.subject("queue", session);
        let publication = Publication::new(subject, self.payload(), Some(self.sequence));
        self.sequence = bus.queues.publish(publication, until).await?;
        self.has_changed = false;
        Ok(())
    }
}

/// Returns true for a command whose effect a new owner restores before all others.
fn is_setting(command: &Line) -> bool {
    let kind = command.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| SETTINGS.contains(&kind))
}

/// Bytes that a command adds to the state at most, without its images. None for a command that leaves the state as it is.
fn stored_bytes(command: &Line) -> Option<usize> {
    if is_setting(command) {
        return Some(json!(command).to_string().len() + 1);
    }
    queueable(command).map(text_bytes)
}

/// Bytes of a queued text in the state.
fn text_bytes(text: &Value) -> usize {
    json!({"type": "follow_up", "message": text}).to_string().len() + 1
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
        queue.answered("1", true);
        queue.answered("2", true);
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
    fn new_owner_gets_settings_before_messages() {
        let mut queue = StoredQueue::default();
        let mode = |mode: &str| json!({"type": "set_permission_mode", "mode": mode});
        let mut own = line(mode("off"));
        own.insert("id".to_owned(), json!(7));
        queue.sent("1", &own);
        queue.answered("1", true);
        assert_eq!(json!(queue.settings()), json!([mode("off")]));
        queue.update(&line(
            json!({"type": "queue_update", "steering": ["a"], "followUp": []}),
        ));
        queue.sent("2", &line(mode("read-only")));
        // The agent has not carried it out.
        assert_eq!(json!(queue.settings()), json!([mode("off")]));
        queue.answered("2", true);
        queue.sent(
            "3",
            &line(json!({"type": "set_limits", "limits": {"maxCost": "much"}})),
        );
        queue.answered("3", false);
        let steer = json!({"type": "steer", "message": "a"});
        let stored: Vec<Line> = serde_json::from_str(&queue.payload()).unwrap();
        assert_eq!(json!(stored), json!([mode("read-only"), steer]));
        let next = StoredQueue::stored(stored, 1);
        assert_eq!(json!(next.settings()), json!([mode("read-only")]));
        assert_eq!(json!(next.messages()), json!([steer]));
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
        queue.answered("1", true);
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
