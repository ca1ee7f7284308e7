//! Several messages of a subject with one request, from whichever replica answers. No consumer is made: each one is a decision of all servers,
//! and a worker that takes over 250 sessions would need 250 of them at once.

use async_nats::client::Request;
use async_nats::jetstream::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::{Client, StatusCode};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::limits::{BATCH_BYTES, BATCH_MESSAGES, BATCH_WAIT};

/// Messages that follow in the batch; in each message of a batch.
const PENDING: &str = "Nats-Num-Pending";

/// Messages of a subject from a sequence on, in their order. Empty if there are none, if the replica that answers does not have them yet, or if
/// the stream does not allow direct reads: only the leader of the stream knows.
pub(crate) async fn read(
    client: &Client,
    context: &Context,
    stream: &str,
    subject: &str,
    from: u64,
) -> Vec<StreamMessage> {
    let mut found = Vec::new();
    let inbox = client.new_inbox();
    let Ok(mut answers) = client.subscribe(inbox.clone()).await else {
        return found;
    };
    let question = json!({"seq": from.max(1), "next_by_subj": subject, "batch": BATCH_MESSAGES, "max_bytes": BATCH_BYTES});
    let request = Request::new().inbox(inbox).payload(question.to_string().into());
    let asked = context.send_request(format!("DIRECT.GET.{stream}"), request);
    if asked.await.is_err() {
        return found;
    }
    let mut following = None;
    while let Ok(Some(answer)) = tokio::time::timeout(BATCH_WAIT, answers.next()).await {
        // The end of the batch, or an error.
        if answer.status.is_some_and(|status| status != StatusCode::OK) {
            break;
        }
        let headers = answer.headers.as_ref();
        let pending: Option<u64> = headers
            .and_then(|headers| headers.get(PENDING))
            .and_then(|pending| pending.as_str().parse().ok());
        // A client that connects again during the batch misses messages in its middle.
        if following.is_some_and(|following| pending != Some(following)) {
            break;
        }
        let Ok(message) = StreamMessage::try_from(answer) else {
            break;
        };
        found.push(message);
        // Servers without batches answer with one message.
        let Some(pending) = pending else {
            break;
        };
        following = Some(pending.saturating_sub(1));
    }
    found
}
