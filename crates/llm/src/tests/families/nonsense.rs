//! What a stream says: garbage, unknown events, cut arguments, too much of everything. Always one last event, the parts that
//! made sense kept, and the buffers within their limits.

use serde_json::{Value, json};

use super::voices::{Block, Voice};
use super::{everything, hear_whole, judge, voices};
use crate::limits::{MAX_ANSWER_BYTES, MAX_BLOCKS, MAX_EVENT_BYTES};

/// What must come of a body.
enum Must {
    /// An error; the text that came before it is kept.
    Fail,
    /// The whole answer.
    Answer,
    /// Either; which one is the family's business.
    End,
}
use Must::{Answer, End, Fail};

/// Noise that is the same every time.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..bytes).map(|_| next()).collect()
}

/// The frames of a text answer with something between its two deltas.
fn between(voice: &Voice, middle: &[u8]) -> Vec<u8> {
    let frames = (voice.say)(&[Block::text(["before ", "after"])]);
    let contains = |frame: &Vec<u8>, word: &[u8]| frame.windows(word.len()).any(|part| part == word);
    let at = frames
        .iter()
        .position(|frame| contains(frame, b"before "))
        .unwrap()
        + 1;
    [&frames[..at].concat(), middle, &frames[at..].concat()].concat()
}

/// The table: name, what comes between two deltas, what must come of it.
type Row = (&'static str, fn(&Voice) -> Vec<u8>, Must);

const BETWEEN: [Row; 13] = [
    (
        "unknown event",
        |v| (v.frame)(br#"{"type":"surprise","x":[1,{"y":null}]}"#),
        Answer,
    ),
    (
        "a thousand unknown events",
        |v| (v.frame)(br#"{"type":"surprise"}"#).repeat(1_000),
        Answer,
    ),
    ("comments", |_| b": still here\n\n".repeat(1_000), Answer),
    ("empty events", |_| b"\n\n\n\n\r\n\r\n".to_vec(), Answer),
    (
        "named and odd",
        |_| b"event: new.thing\nid: 7\nretry: 10\nfoo: bar\ndata: {\"type\":\"new.thing\"}\n\n".to_vec(),
        Answer,
    ),
    ("an array", |v| (v.frame)(b"[1,2,3]"), End),
    ("a number", |v| (v.frame)(b"7"), End),
    ("half an object", |v| (v.frame)(b"{\"type\":"), Fail),
    ("noise in a frame", |v| (v.frame)(&noise(5_000)), Fail),
    (
        "noise without frames",
        |_| [&b"\n"[..], &noise(100_000), b"\n\n"].concat(),
        End,
    ),
    (
        "deep nesting",
        |v| (v.frame)(&[b"[".repeat(200_000), b"]".repeat(200_000)].concat()),
        End,
    ),
    (
        "NUL bytes in a frame",
        |v| (v.frame)(b"\0\0{\"type\":\"x\"}\0"),
        Fail,
    ),
    (
        "the family's error",
        |v| (v.trouble)("out of order: try again later"),
        Fail,
    ),
];

/// The table, tried with a family.
pub(super) async fn between_two_deltas(voice: &Voice) {
    // Text between frames matters only in formats of lines; inside a frame it is an unknown event.
    let lines = voice.content_type == "text/event-stream";
    for (name, middle, must) in BETWEEN {
        let must = if lines { must } else { End };
        let what = format!("{}: {name}", voice.api);
        let heard = judge(&hear_whole(voice, between(voice, &middle(voice))).await, &what);
        match must {
            Answer => assert!(
                !heard.failed && heard.text() == "before after",
                "{what}: {}",
                heard.error()
            ),
            Fail => {
                assert!(heard.failed && !heard.error().is_empty(), "{what}");
                assert_eq!(heard.text(), "before ", "{what}");
            }
            End if heard.failed => assert_eq!(heard.text(), "before ", "{what}"),
            End => assert_eq!(heard.text(), "before after", "{what}"),
        }
    }
}

#[tokio::test]
async fn nonsense_between_deltas_is_survived() {
    for voice in voices() {
        between_two_deltas(voice).await;
    }
}

#[tokio::test]
async fn stream_error_events_keep_provider_text() {
    for voice in voices() {
        let heard = judge(
            &hear_whole(voice, between(voice, &(voice.trouble)("all boats are out"))).await,
            voice.api,
        );
        assert!(
            heard.error().contains("all boats are out"),
            "{}: {}",
            voice.api,
            heard.error()
        );
    }
}

#[tokio::test]
async fn bodies_without_stream_are_errors() {
    for voice in voices() {
        for body in [
            Vec::new(),
            b"<html><body>Welcome to the hotel</body></html>".to_vec(),
            b"{\"ok\":true}".to_vec(),
            noise(200_000),
            b"\0".repeat(100_000),
            b"\n".repeat(100_000),
            b"data:".repeat(1_000),
        ] {
            let what = format!("{}: {} bytes", voice.api, body.len());
            let heard = judge(&hear_whole(voice, body).await, &what);
            assert!(heard.failed && heard.message.content.is_empty(), "{what}");
        }
    }
}

/// Replaces one text by bytes in the raw stream.
fn replaced(body: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = body.windows(old.len()).position(|part| part == old).unwrap();
    [&body[..at], new, &body[at + old.len()..]].concat()
}

#[tokio::test]
async fn invalid_utf8_and_control_characters_are_replaced() {
    for voice in voices().filter(|voice| voice.content_type == "text/event-stream") {
        let body = (voice.say)(&[Block::text(["MARK", " ok"])]).concat();
        for (bytes, text) in [
            (&b"\xff\xfe"[..], "\u{fffd}\u{fffd}"),
            (b"\xc3", "\u{fffd}"),
            (b"a\0b", "a\0b"),
            (b"a\tb", "a\tb"),
            (b"\xe2\x80\xa8", "\u{2028}"),
            (b"\\ud83d", "\u{fffd}"),
            (b"\\ude00x\\ud83d\\ude00", "\u{fffd}x\u{1f600}"),
        ] {
            let what = format!("{}: {bytes:?}", voice.api);
            let mut body = replaced(&body, b"MARK", bytes);
            // The Responses API says everything twice; once more is enough for the test.
            if body.windows(4).any(|part| part == b"MARK") {
                body = replaced(&body, b"MARK", bytes);
            }
            let heard = judge(&hear_whole(voice, body).await, &what);
            assert!(!heard.failed, "{what}: {}", heard.error());
            assert_eq!(heard.text(), format!("{text} ok"), "{what}");
        }
    }
}

#[tokio::test]
async fn truncated_tool_json_has_no_arguments() {
    for voice in voices() {
        for (raw, expected) in [
            ("{\"path\": \"a.txt\", \"text\": \"hal", json!({})),
            ("{\"path\": [1, 2", json!({})),
            ("}{", json!({})),
            ("", json!({})),
            ("null", json!({})),
            ("[1]", json!({})),
        ] {
            let what = format!("{}: {raw}", voice.api);
            let body = (voice.say)(&[Block::call("abcdefgh1", "read", [raw])]).concat();
            let heard = judge(&hear_whole(voice, body).await, &what);
            assert!(!heard.failed, "{what}: {}", heard.error());
            // Whole arguments that are no object are none.
            let expected = if voice.argument_deltas {
                expected
            } else {
                json!({})
            };
            assert_eq!(heard.arguments(), [expected], "{what}");
        }
    }
}

/// So many calls in one answer.
fn many(count: usize) -> Vec<Block> {
    (0..count)
        .map(|number| Block::call(&format!("call{number:05}"), "read", ["{\"n\":", " 1}"]))
        .collect()
}

#[tokio::test]
async fn twenty_thousand_calls_are_accepted_more_refused() {
    for voice in voices() {
        let heard = judge(
            &hear_whole(voice, (voice.say)(&many(MAX_BLOCKS + 1)).concat()).await,
            voice.api,
        );
        assert!(
            heard.failed && heard.error().contains("more than"),
            "{}: {}",
            voice.api,
            heard.error()
        );
        let arguments = heard.arguments();
        assert!(arguments.len() == MAX_BLOCKS && arguments.iter().all(|one| *one == json!({"n": 1})));
    }
}

#[tokio::test]
async fn huge_event_is_accepted_and_larger_one_refused() {
    for voice in voices() {
        let text = "x".repeat(8 << 20);
        let body = (voice.say)(&[Block::Text(vec![text.clone()])]).concat();
        let heard = judge(&hear_whole(voice, body).await, voice.api);
        assert!(
            !heard.failed && heard.text() == text,
            "{}: {}",
            voice.api,
            heard.error()
        );
        let huge = (voice.frame)(&vec![b' '; MAX_EVENT_BYTES + 1]);
        let heard = judge(&hear_whole(voice, between(voice, &huge)).await, voice.api);
        assert!(
            heard.failed && heard.error().contains("larger than"),
            "{}: {}",
            voice.api,
            heard.error()
        );
        assert_eq!(heard.text(), "before ");
    }
}

#[tokio::test]
async fn endless_answer_is_cut_at_size_limit() {
    for voice in voices() {
        let blocks: [fn(Vec<String>) -> Block; 2] = [Block::Text, Block::Think];
        for block in blocks {
            let deltas = vec!["y".repeat(1 << 20); (MAX_ANSWER_BYTES >> 20) + 1];
            let heard = judge(
                &hear_whole(voice, (voice.say)(&[block(deltas)]).concat()).await,
                voice.api,
            );
            assert!(
                heard.failed && heard.error().contains("larger than"),
                "{}: {}",
                voice.api,
                heard.error()
            );
            assert!(heard.text().len() <= MAX_ANSWER_BYTES);
        }
    }
}

#[tokio::test]
async fn long_tool_names_count_towards_size_limit() {
    let name = "n".repeat(1 << 20);
    let calls: Vec<Block> = (0..=MAX_ANSWER_BYTES >> 20)
        .map(|number| Block::call(&format!("call{number:05}"), &name, ["{}"]))
        .collect();
    for voice in voices() {
        let heard = judge(&hear_whole(voice, (voice.say)(&calls).concat()).await, voice.api);
        assert!(
            heard.failed && heard.error().contains("larger than"),
            "{}: {}",
            voice.api,
            heard.error()
        );
        assert!(heard.message.content.len() <= MAX_ANSWER_BYTES >> 20);
    }
}

#[tokio::test]
async fn missing_duplicate_or_reordered_frames_end_normally() {
    for voice in voices() {
        let frames = (voice.say)(&everything());
        for left_out in 0..frames.len() {
            let mut some = frames.clone();
            some.remove(left_out);
            judge(
                &hear_whole(voice, some.concat()).await,
                &format!("{} without {left_out}", voice.api),
            );
            let mut twice = frames.clone();
            twice.insert(left_out, frames[left_out].clone());
            judge(
                &hear_whole(voice, twice.concat()).await,
                &format!("{} twice {left_out}", voice.api),
            );
        }
        let mut backwards = frames.clone();
        backwards.reverse();
        judge(&hear_whole(voice, backwards.concat()).await, voice.api);
    }
}

/// Every scalar of a frame replaced by something of another type, one at a time.
fn twisted(value: &Value, with: &Value, out: &mut Vec<Value>) {
    let mut put = |key: &dyn Fn(&mut Value) -> Option<&mut Value>, inner: &Value| {
        let mut inners = vec![with.clone()];
        twisted(inner, with, &mut inners);
        for inner in inners {
            let mut copy = value.clone();
            if let Some(place) = key(&mut copy) {
                *place = inner;
                out.push(copy);
            }
        }
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, inner)| put(&|copy| copy.get_mut(name.as_str()), inner)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, inner)| put(&|copy| copy.get_mut(at), inner)),
        _ => {}
    }
}

#[tokio::test]
async fn fields_of_the_wrong_type_never_panic() {
    for voice in voices().filter(|voice| voice.content_type == "text/event-stream") {
        let frames = (voice.say)(&everything());
        for (at, frame) in frames.iter().enumerate() {
            let text = String::from_utf8_lossy(frame);
            let Some((head, json)) = text.split_once("data: ") else {
                continue;
            };
            let Ok(json) = serde_json::from_str::<Value>(json.trim()) else {
                continue;
            };
            for with in [
                json!(null),
                json!(-1.5),
                json!("odd"),
                json!([[]]),
                json!({"a": {}}),
                json!(true),
            ] {
                let mut odd = Vec::new();
                twisted(&json, &with, &mut odd);
                for value in odd {
                    let frame = format!("{head}data: {value}\n\n").into_bytes();
                    let body = [frames[..at].concat(), frame, frames[at + 1..].concat()].concat();
                    judge(&hear_whole(voice, body).await, &format!("{}: {value}", voice.api));
                }
            }
        }
    }
}
