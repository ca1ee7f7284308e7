//! Where a stream ends: reset and closed at every byte, silent after every frame, in pieces of every kind.

use bytes::Bytes;

use super::voices::Voice;
use super::{End, everything, hear, judge, voices};

/// The whole answer, its text so far padded to about 3 kB.
fn body(voice: &Voice) -> Vec<u8> {
    let mut blocks = everything();
    let plain = (voice.say)(&blocks).concat().len();
    if plain < 3_000 {
        let filler = "lorem ipsum ".repeat((3_000 - plain) / 12);
        blocks.insert(2, super::Block::Text(vec![filler]));
    }
    (voice.say)(&blocks).concat()
}

/// Cuts a body at every byte.
async fn cut_everywhere(api: &str) {
    let voice = voices().find(|voice| voice.api == api).unwrap();
    let bytes = Bytes::from(body(voice));
    assert!(bytes.len() >= 2_800, "{api}: {}", bytes.len());
    let whole = judge(&hear(voice, vec![bytes.clone()], End::Close).await, api);
    for end in [End::Close, End::Reset] {
        let mut most = 0;
        for at in 0..bytes.len() {
            let what = format!("{api}, {end:?} at {at}");
            let heard = judge(&hear(voice, vec![bytes.slice(..at)], end).await, &what);
            if heard.failed {
                assert!(crate::is_retryable(heard.error()), "{what}: {}", heard.error());
                assert!(whole.text().starts_with(&heard.text()), "{what}");
                assert!(heard.message.content.len() >= most, "{what}: content is lost");
                most = heard.message.content.len();
            } else {
                // Only what says nothing any more may be missing.
                assert_eq!(heard.message.content, whole.message.content, "{what}");
                assert_eq!(heard.message.stop_reason, whole.message.stop_reason, "{what}");
            }
        }
        // The last event of Google brings an empty text with the end.
        assert!(most + 1 >= whole.message.content.len(), "{api}, {end:?}");
    }
}

macro_rules! cut_everywhere {
    ($($name:ident $api:literal)*) => {$(
        #[tokio::test]
        async fn $name() {
            cut_everywhere($api).await;
        }
    )*};
}

cut_everywhere! {
    anthropic_cut_anywhere_fails_or_completes "anthropic-messages"
    completions_cut_anywhere_fails_or_completes "openai-completions"
    responses_cut_anywhere_fails_or_completes "openai-responses"
    azure_cut_anywhere_fails_or_completes "azure-openai-responses"
    codex_cut_anywhere_fails_or_completes "openai-codex-responses"
    google_cut_anywhere_fails_or_completes "google-generative-ai"
    vertex_cut_anywhere_fails_or_completes "google-vertex"
    mistral_cut_anywhere_fails_or_completes "mistral-conversations"
    bedrock_cut_anywhere_fails_or_completes "bedrock-converse-stream"
}

#[tokio::test]
async fn stream_chunk_size_does_not_change_events() {
    for voice in voices() {
        let bytes = Bytes::from((voice.say)(&everything()).concat());
        let whole = hear(voice, vec![bytes.clone()], End::Close).await;
        for size in [1, 2, 7, 64, 1000] {
            let pieces = (0..bytes.len())
                .step_by(size)
                .map(|at| bytes.slice(at..(at + size).min(bytes.len())));
            assert_eq!(
                hear(voice, pieces.collect(), End::Close).await,
                whole,
                "{} by {size}",
                voice.api
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silence_after_any_frame_hits_idle_timeout() {
    for voice in voices() {
        let frames = (voice.say)(&everything());
        for count in 0..frames.len() {
            let what = format!("{}, silent after {count} frames", voice.api);
            let pieces = frames[..count].iter().cloned().map(Bytes::from).collect();
            let heard = judge(&hear(voice, pieces, End::Stall).await, &what);
            if heard.failed {
                assert!(
                    heard.error().starts_with("Stream timed out"),
                    "{what}: {}",
                    heard.error()
                );
                assert!(crate::is_retryable(heard.error()));
            } else {
                assert_eq!(heard.text(), "Héllo \u{1f600} \"World\"\nand so on", "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn single_bytes_do_not_reset_idle_timeout() {
    use futures_util::StreamExt;
    for voice in voices() {
        let mut request = super::request(super::model(voice.api));
        request.timeouts = std::time::Duration::from_millis(500).into();
        let drip = futures_util::stream::iter(0..10_000).then(|_| async {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        let stream = super::respond_with(&request, reqwest::Body::wrap_stream(drip));
        let begun = tokio::time::Instant::now();
        let heard = judge(&super::drain(stream).await, voice.api);
        assert!(
            heard.failed && begun.elapsed().as_millis() < 2_000,
            "{}: {}",
            voice.api,
            heard.error()
        );
    }
}
