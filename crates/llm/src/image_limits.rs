//! Keeps a conversation within the number of images that a provider accepts (`inputLimits.images` of a model). A request with
//! too many images is refused, and so would be every later request of the session: the oldest images give way to a remark.

use std::sync::Arc;

use wire::model::ImageLimits;
use wire::{Message, Model, UserBlock, UserContent};

/// Replaces the oldest images that are too many.
pub(crate) fn apply(messages: &mut [Arc<Message>], model: &Model) {
    let Some(limits) = model
        .input_limits
        .as_ref()
        .and_then(|limits| limits.images.as_ref())
    else {
        return;
    };
    let counts: Vec<usize> = messages.iter().map(|message| images(message)).collect();
    let total: usize = counts.iter().sum();
    let drops = surplus(messages, &counts, total, limits);
    for (message, (drop, limit)) in messages.iter_mut().zip(drops) {
        if drop > 0 {
            *message = Arc::new(without(message, drop, limit));
        }
    }
}

/// How many images each message must lose, oldest first, and which limit asks for it.
fn surplus(
    messages: &[Arc<Message>],
    counts: &[usize],
    total: usize,
    limits: &ImageLimits,
) -> Vec<(usize, usize)> {
    let mut drops = vec![(0, 0); counts.len()];
    let mut left = total;
    if let Some(most) = limits.max_per_message {
        // Results of one answer go out together, as one message.
        let is_result = |index: usize| {
            messages
                .get(index)
                .is_some_and(|message| matches!(&**message, Message::ToolResult(_)))
        };
        let mut from = 0;
        while from < counts.len() {
            let mut end = from + 1;
            while is_result(from) && is_result(end) {
                end += 1;
            }
            let count: usize = counts.iter().take(end).skip(from).sum();
            let surplus = count.saturating_sub(most);
            left -= drop_oldest(counts, &mut drops, from..end, surplus, most);
            from = end;
        }
    }
    if let Some(most) = limits.max_per_request {
        let surplus = left.saturating_sub(most);
        drop_oldest(counts, &mut drops, 0..counts.len(), surplus, most);
    }
    drops
}

/// Spreads a surplus over the oldest messages of a range that still have images. Returns how many were dropped.
fn drop_oldest(
    counts: &[usize],
    drops: &mut [(usize, usize)],
    range: std::ops::Range<usize>,
    mut surplus: usize,
    limit: usize,
) -> usize {
    let wanted = surplus;
    let pairs = drops.iter_mut().zip(counts);
    for (drop, count) in pairs.take(range.end).skip(range.start) {
        let take = (count - drop.0).min(surplus);
        if take > 0 {
            *drop = (drop.0 + take, limit);
            surplus -= take;
        }
    }
    wanted - surplus
}

fn blocks(message: &Message) -> &[UserBlock] {
    match message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks,
            UserContent::Text(_) => &[],
        },
        Message::ToolResult(result) => &result.content,
        _ => &[],
    }
}

fn images(message: &Message) -> usize {
    let is_image = |block: &&UserBlock| matches!(block, UserBlock::Image(_));
    blocks(message).iter().filter(is_image).count()
}

/// The message without its first `drop` images; a run of them becomes one remark.
fn without(message: &Message, mut drop: usize, limit: usize) -> Message {
    let remark = format!("(image omitted: the provider accepts at most {limit} images)");
    let mut kept: Vec<UserBlock> = Vec::new();
    for block in blocks(message) {
        match block {
            UserBlock::Image(_) if drop > 0 => {
                drop -= 1;
                if kept.last().and_then(UserBlock::as_text) != Some(&remark) {
                    kept.push(UserBlock::text(remark.clone()));
                }
            }
            block => kept.push(block.clone()),
        }
    }
    let mut message = message.clone();
    match &mut message {
        Message::User(user) => user.content = UserContent::Blocks(kept),
        Message::ToolResult(result) => result.content = kept,
        _ => {}
    }
    message
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn model(images: Value) -> Model {
        let limits = json!({"images": images});
        let model = json!({"id": "m", "name": "M", "api": "a", "provider": "p", "inputLimits": limits});
        serde_json::from_value(model).unwrap()
    }

    fn picture(data: &str) -> Value {
        json!({"type": "image", "data": data, "mimeType": "image/png"})
    }

    fn messages(list: &[Value]) -> Vec<Arc<Message>> {
        list.iter()
            .map(|message| Arc::new(serde_json::from_value(message.clone()).unwrap()))
            .collect()
    }

    /// The data of the images that are left in each message, and the texts in between.
    fn left(messages: &[Arc<Message>]) -> Vec<Vec<String>> {
        let show = |block: &UserBlock| match block {
            UserBlock::Image(image) => image.data.clone(),
            UserBlock::Text(text) => text.text.clone(),
        };
        messages
            .iter()
            .map(|message| blocks(message).iter().map(show).collect())
            .collect()
    }

    fn user(data: &[&str]) -> Value {
        let content: Vec<Value> = data.iter().map(|data| picture(data)).collect();
        json!({"role": "user", "content": content, "timestamp": 1})
    }

    fn result(data: &[&str]) -> Value {
        let content: Vec<Value> = data.iter().map(|data| picture(data)).collect();
        json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": content, "isError": false, "timestamp": 1})
    }

    #[test]
    fn oldest_images_beyond_request_limit_are_replaced() {
        let mut list = messages(&[user(&["a", "b", "c"]), result(&["d"]), user(&["e"])]);
        apply(&mut list, &model(json!({"maxPerRequest": 3})));
        let remark = "(image omitted: the provider accepts at most 3 images)".to_owned();
        assert_eq!(
            left(&list),
            [vec![remark, "c".into()], vec!["d".into()], vec!["e".into()]]
        );
    }

    #[test]
    fn tool_results_of_one_answer_share_image_limit() {
        let mut list = messages(&[
            user(&["a", "b"]),
            result(&["c", "d"]),
            result(&["e"]),
            user(&["f"]),
        ]);
        apply(&mut list, &model(json!({"maxPerMessage": 2})));
        let remark = "(image omitted: the provider accepts at most 2 images)".to_owned();
        let expected = [
            vec!["a".to_owned(), "b".into()],
            vec![remark, "d".into()],
            vec!["e".into()],
            vec!["f".into()],
        ];
        assert_eq!(left(&list), expected);
    }

    #[test]
    fn messages_within_image_limits_are_shared() {
        let mut list = messages(&[user(&["a"]), result(&["b"])]);
        let before: Vec<_> = list.iter().map(Arc::as_ptr).collect();
        apply(&mut list, &model(json!({"maxPerRequest": 2, "maxPerMessage": 1})));
        apply(&mut list, &model(json!({})));
        assert_eq!(list.iter().map(Arc::as_ptr).collect::<Vec<_>>(), before);
    }
}
