//! The event stream of a session: what one message has, and the writer that numbers events and is fenced by the server.

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;
use store::{SessionId, StoreError};

use super::{Bus, Fault, Publication, Until};
use crate::limits::EVENT_BYTES;

/// Number of the last event of the message, or before it if it has none.
const SEQ: &str = "Pinion-Seq";
/// Where the events of an open run begin, as an [`Origin`].
const RUN: &str = "Pinion-Run";
/// Parts that follow this one; only in messages with a part of one frame.
const MORE: &str = "Pinion-More";
/// Where the first part is, as an [`Origin`]; only in messages with a part of one frame.
const FIRST: &str = "Pinion-First";
/// Number of the last event before the frame; only in parts that others follow.
const BEFORE: &str = "Pinion-Before";

/// Whether an event begins or ends the time in which a run is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEdge {
    /// `agent_start`.
    Begins,
    /// `agent_settled`.
    Ends,
}

/// One line for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// For all clients. Its number is part of the line.
    Event {
        seq: u64,
        edge: Option<RunEdge>,
        line: String,
    },
    /// For one gateway.
    Response {
        gateway: String,
        key: String,
        line: String,
    },
}

impl Frame {
    fn encode(&self, text: &mut String) {
        match self {
            Self::Event { seq, line, .. } => text.push_str(&format!("E {seq} {line}\n")),
            Self::Response { gateway, key, line } => text.push_str(&format!("R {gateway} {key} {line}\n")),
        }
    }
}

/// Reads the frames of a whole body. Lines that are no frames are left out: a newer version may have written them.
pub(crate) fn decode(body: &str) -> Vec<Frame> {
    body.lines()
        .filter_map(|line| {
            let (kind, rest) = line.split_once(' ')?;
            let (first, rest) = rest.split_once(' ')?;
            match kind {
                "E" => Some(Frame::Event {
                    seq: first.parse().ok()?,
                    edge: None,
                    line: rest.to_owned(),
                }),
                "R" => {
                    let (key, line) = rest.split_once(' ')?;
                    Some(Frame::Response {
                        gateway: first.to_owned(),
                        key: key.to_owned(),
                        line: line.to_owned(),
                    })
                }
                _ => None,
            }
        })
        .collect()
}

/// Puts the messages of a stream together to frames.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    parts: String,
    /// What the message that continues `parts` says: the number of parts that follow it, and the sequence of the first part.
    next: Option<(u64, Option<u64>)>,
}

impl Frames {
    /// Takes the next message; returns the frames that it completes.
    pub(crate) fn take(&mut self, message: &StreamMessage) -> Vec<Frame> {
        let part = header(message, MORE).map(|more| (more, Origin::read(message, FIRST)));
        if part != self.next {
            // A worker that is lost between two parts leaves a beginning without an end, which the next owner gives its number again.
            self.parts.clear();
            if let Some((_, Some(first))) = part
                && first != message.sequence
            {
                // The beginning is not known.
                self.next = None;
                return Vec::new();
            }
        }
        self.parts.push_str(&String::from_utf8_lossy(&message.payload));
        self.next = part.and_then(|(more, first)| Some((more.checked_sub(1)?, first)));
        if self.next.is_some() {
            return Vec::new();
        }
        let frames = decode(&self.parts);
        self.parts.clear();
        frames
    }
}

/// The number of the last event up to a message. All parts of an event have its number.
pub(crate) fn seq_of(message: &StreamMessage) -> u64 {
    header(message, SEQ).unwrap_or(0)
}

/// The number of the last event that is complete with a message.
pub(crate) fn complete_seq_of(message: &StreamMessage) -> u64 {
    header(message, BEFORE).unwrap_or_else(|| seq_of(message))
}

/// Where to read on after a message: at the first part of its frame while further parts are missing.
pub(crate) fn next_after(message: &StreamMessage) -> u64 {
    match header(message, MORE) {
        Some(more) if more > 0 => Origin::read(message, FIRST).unwrap_or(message.sequence),
        _ => message.sequence + 1,
    }
}

/// Where the events of the run begin that is open after a message.
pub(crate) fn run_of(message: &StreamMessage) -> Option<u64> {
    Origin::read(message, RUN)
}

fn header(message: &StreamMessage, name: &str) -> Option<u64> {
    message.headers.get(name)?.as_str().parse().ok()
}

/// Where in the stream something can be read that is true after a message.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// It is not true.
    Nowhere,
    /// In this message, from its first part on.
    Here,
    /// From the message with this sequence on.
    At(u64),
}

impl Origin {
    fn known(sequence: Option<u64>) -> Self {
        sequence.map_or(Self::Nowhere, Self::At)
    }

    /// The value of a header: a sequence, `self` or 0. `first` is the sequence of the first part; the first part does not know it.
    fn header(self, first: Option<u64>) -> String {
        match (self, first) {
            (Self::Nowhere, _) => "0".to_owned(),
            (Self::Here, None) => "self".to_owned(),
            (Self::Here, Some(sequence)) | (Self::At(sequence), _) => sequence.to_string(),
        }
    }

    fn sequence(self, first: Option<u64>) -> Option<u64> {
        match self {
            Self::Nowhere => None,
            Self::Here => first,
            Self::At(sequence) => Some(sequence),
        }
    }

    /// Reads a header of the last message.
    fn read(message: &StreamMessage, name: &str) -> Option<u64> {
        let value = message.headers.get(name)?.as_str();
        if value == "self" {
            return Some(message.sequence);
        }
        value.parse().ok().filter(|sequence| *sequence > 0)
    }
}

/// What the headers of a message say about its frames.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Number of the last event before them.
    before: u64,
    /// Number of the last event with them.
    seq: u64,
    /// Where the run begins that is open after them.
    run: Origin,
}

impl Span {
    /// The headers of a message that `more` parts follow. `first` is the sequence of the first part, in the parts behind it.
    fn headers(self, first: Option<u64>, more: usize) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(SEQ, self.seq.to_string());
        headers.insert(RUN, self.run.header(first));
        if more > 0 || first.is_some() {
            headers.insert(MORE, more.to_string());
            headers.insert(FIRST, Origin::Here.header(first));
        }
        if more > 0 {
            headers.insert(BEFORE, self.before.to_string());
        }
        headers
    }
}

/// Writes the events of one session.
pub(crate) struct EventWriter {
    subject: String,
    /// Sequence of the session's last message: the fence.
    last: u64,
    /// Number of the last event that was numbered.
    seq: u64,
    /// Number of the last event that was published.
    published: u64,
    /// Where the open run begins in the stream.
    pub(crate) run: Option<u64>,
}

impl EventWriter {
    /// Continues after the last message of the session.
    pub(crate) async fn open(bus: &Bus, session: &SessionId) -> Result<Self, StoreError> {
        let subject = bus.subject("event", session);
        let last = bus.events.last(&subject).await?;
        Ok(Self::after(subject, last.as_ref()))
    }

    /// Continues after a message. The number of an event whose last part is missing is given again, because nothing can read it.
    fn after(subject: String, last: Option<&StreamMessage>) -> Self {
        let seq = last.map_or(0, complete_seq_of);
        Self {
            subject,
            last: last.map_or(0, |message| message.sequence),
            seq,
            published: seq,
            run: last.and_then(|last| Origin::read(last, RUN)),
        }
    }

    /// The number of the last event.
    pub(crate) fn last_number(&self) -> u64 {
        self.seq
    }

    /// The number for the next event.
    pub(crate) fn number(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Publishes frames, in one message if they fit.
    pub(crate) async fn publish(&mut self, bus: &Bus, frames: &[Frame], until: &Until) -> Result<(), Fault> {
        let mut rest = frames;
        while !rest.is_empty() {
            let (mut body, mut taken) = (String::new(), 0);
            for frame in rest {
                let before = body.len();
                frame.encode(&mut body);
                if taken > 0 && body.len() > EVENT_BYTES {
                    body.truncate(before);
                    break;
                }
                taken += 1;
            }
            let (now, later) = rest.split_at(taken);
            self.publish_one(bus, now, body, until).await?;
            rest = later;
        }
        Ok(())
    }

    async fn publish_one(
        &mut self,
        bus: &Bus,
        frames: &[Frame],
        body: String,
        until: &Until,
    ) -> Result<(), Fault> {
        let edge = frames.iter().rev().find_map(|frame| match frame {
            Frame::Event { edge, .. } => *edge,
            Frame::Response { .. } => None,
        });
        let seq = frames.iter().rev().find_map(|frame| match frame {
            Frame::Event { seq, .. } => Some(*seq),
            Frame::Response { .. } => None,
        });
        let run = match (edge, self.run) {
            (Some(RunEdge::Ends), _) => Origin::Nowhere,
            (Some(RunEdge::Begins), None) => Origin::Here,
            (_, run) => Origin::known(run),
        };
        let span = Span {
            before: self.published,
            seq: seq.unwrap_or(self.published),
            run,
        };
        let pieces = pieces(body.into());
        let mut first = None;
        let count = pieces.len();
        for (index, piece) in pieces.into_iter().enumerate() {
            let mut publication = Publication::new(self.subject.clone(), piece, Some(self.last));
            publication.headers = span.headers(first, count - index - 1);
            self.last = bus.events.publish(publication, until).await?;
            first.get_or_insert(self.last);
        }
        self.published = span.seq;
        self.run = run.sequence(first);
        Ok(())
    }
}

/// Cuts a body that is too large for one message, between characters.
fn pieces(mut body: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    while body.len() > EVENT_BYTES * 2 {
        let mut end = EVENT_BYTES;
        while body.get(end).is_some_and(|byte| (byte & 0xC0) == 0x80) {
            end += 1;
        }
        pieces.push(body.split_to(end));
    }
    pieces.push(body);
    pieces
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;
    use async_nats::jetstream::message::StreamMessage;
    use bytes::Bytes;

    use super::{
        EVENT_BYTES, EventWriter, Frame, Frames, Origin, Span, complete_seq_of, decode, next_after, pieces,
        seq_of,
    };

    fn message(sequence: u64, payload: Bytes, headers: HeaderMap) -> StreamMessage {
        StreamMessage {
            subject: "s".into(),
            sequence,
            headers,
            payload,
            time: async_nats::datetime::now(),
        }
    }

    fn event(seq: u64, length: usize) -> Frame {
        Frame::Event {
            seq,
            edge: None,
            line: "x".repeat(length),
        }
    }

    /// The messages of one frame, from a sequence on.
    fn messages(sequence: u64, frame: &Frame, before: u64) -> Vec<StreamMessage> {
        let seq = match frame {
            Frame::Event { seq, .. } => *seq,
            Frame::Response { .. } => before,
        };
        let span = Span {
            before,
            seq,
            run: Origin::At(1),
        };
        let mut body = String::new();
        frame.encode(&mut body);
        let pieces = pieces(body.into());
        let mut more = pieces.len();
        let parts = (sequence..).zip(pieces).map(|(at, piece)| {
            more -= 1;
            message(at, piece, span.headers((at > sequence).then_some(sequence), more))
        });
        parts.collect()
    }

    #[test]
    fn event_after_unfinished_one_is_read() {
        let lost = messages(10, &event(3, EVENT_BYTES * 3), 2);
        assert_eq!(lost.len(), 3);
        // As many parts as the lost worker left out, and one message.
        for again in [event(3, EVENT_BYTES * 5 / 2), event(3, 5)] {
            let mut frames = Frames::default();
            assert!(frames.take(&lost[0]).is_empty());
            let read: Vec<Frame> = messages(20, &again, 2)
                .iter()
                .flat_map(|message| frames.take(message))
                .collect();
            assert_eq!(read, [again]);
        }
        let mut frames = Frames::default();
        assert!(lost[1..].iter().all(|part| frames.take(part).is_empty()));
    }

    #[test]
    fn number_of_unfinished_event_is_given_again() {
        let parts = messages(10, &event(3, EVENT_BYTES * 3), 2);
        let seen: Vec<(u64, u64, u64, u64)> = parts
            .iter()
            .map(|part| {
                let number = EventWriter::after("s".to_owned(), Some(part)).number();
                (seq_of(part), complete_seq_of(part), next_after(part), number)
            })
            .collect();
        assert_eq!(seen, [(3, 2, 10, 3), (3, 2, 10, 3), (3, 3, 13, 4)]);
        // A response has no number.
        let response = Frame::Response {
            gateway: "g1".to_owned(),
            key: "6162".to_owned(),
            line: "x".repeat(EVENT_BYTES * 3),
        };
        let part = &messages(20, &response, 3)[0];
        assert_eq!((complete_seq_of(part), next_after(part)), (3, 20));
    }

    #[test]
    fn encoded_frames_decode_to_the_same() {
        let frames = vec![
            Frame::Event {
                seq: 7,
                edge: None,
                line: r#"{"type":"x y","seq":7}"#.to_owned(),
            },
            Frame::Response {
                gateway: "g1".to_owned(),
                key: "6162".to_owned(),
                line: r#"{"id": "a b"}"#.to_owned(),
            },
        ];
        let mut body = String::new();
        for frame in &frames {
            frame.encode(&mut body);
        }
        assert_eq!(decode(&body), frames);
    }

    #[test]
    fn large_bodies_are_cut_between_characters() {
        let text = "ä€".repeat(400_000);
        let parts = pieces(text.clone().into());
        assert!(parts.len() > 2);
        let joined: String = parts
            .iter()
            .map(|part| std::str::from_utf8(part).unwrap())
            .collect();
        assert_eq!(joined, text);
    }
}
