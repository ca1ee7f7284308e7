//! Images and documents that come with a prompt.

use serde_json::{Value, json};
use wire::message::UserContent;
use wire::{ImageContent, Message, UserBlock};

use super::super::attachments::Attachments;

fn image(data: &str) -> ImageContent {
    ImageContent {
        data: data.to_owned(),
        mime_type: "image/png".to_owned(),
        extra: wire::Extra::default(),
    }
}

fn refused(attachment: Value) -> String {
    Attachments::new(vec![attachment], Vec::new()).unwrap_err()
}

/// The blocks of a message with this attachment, without its text.
fn blocks(attachment: Value) -> Vec<UserBlock> {
    let attachments = Attachments::new(vec![attachment], Vec::new()).unwrap();
    let Message::User(message) = attachments.message("look".to_owned()) else {
        panic!("no message of the user");
    };
    message.content.to_blocks().split_off(1)
}

fn document(attachment: Value) -> String {
    match blocks(attachment).remove(0) {
        UserBlock::Text(text) => text.text,
        UserBlock::Image(image) => panic!("{image:?}"),
    }
}

#[test]
fn text_precedes_attachments_and_images() {
    let given = json!({"type": "image", "content": "QUJD", "mimeType": "image/gif"});
    let attachments = Attachments::new(vec![given.clone()], vec![image("REVG")]).unwrap();
    let Message::User(message) = attachments.message("look".to_owned()) else {
        panic!("no message of the user");
    };
    let UserContent::Blocks(blocks) = &message.content else {
        panic!("no blocks");
    };
    let shown: Vec<&str> = blocks
        .iter()
        .map(|block| match block {
            UserBlock::Text(text) => text.text.as_str(),
            UserBlock::Image(image) => image.data.as_str(),
        })
        .collect();
    assert_eq!(shown, ["look", "QUJD", "REVG"]);
    let message = serde_json::to_value(Message::User(message)).unwrap();
    assert_eq!(
        message["attachments"],
        json!([given]),
        "they are kept as they came"
    );
}

#[test]
fn message_without_attachments_has_no_such_member() {
    let message = Attachments::from(vec![image("QUJD")]).message("look".to_owned());
    let message = serde_json::to_value(message).unwrap();
    assert!(message.get("attachments").is_none());
}

#[test]
fn unreadable_images_become_notes() {
    // One black pixel.
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    let odd = |data| ImageContent {
        mime_type: "image/x-odd".to_owned(),
        ..image(data)
    };
    let images = vec![image("AAAA"), image(pixel), odd("AAAA"), image("no base64")];
    let mut attachments = Attachments::from(images);
    let resize = "[Image omitted: could not be resized below the inline image size limit.]";
    let convert = "[Image omitted: could not be converted to a supported inline image format.]";
    assert_eq!(attachments.fit_images(), [resize, convert, resize]);
    let images = attachments.images();
    assert_eq!((images.len(), &images[0]["data"]), (1, &json!(pixel)));
    // What can be read is sent as a type that providers take.
    let mut attachments = Attachments::from(vec![odd(pixel)]);
    let converted = "[Image converted from image/x-odd to image/png.]";
    assert_eq!(attachments.fit_images(), [converted]);
    assert_eq!(attachments.images()[0]["mimeType"], "image/png");
}

#[test]
fn image_types_are_named_as_providers_do() {
    // One transparent pixel.
    let gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
    for (given, sent) in [("image/jpg", "image/jpeg"), ("IMAGE/GIF; q=1", "image/gif")] {
        let mut attachments = Attachments::from(vec![ImageContent {
            mime_type: given.to_owned(),
            ..image(gif)
        }]);
        assert!(attachments.fit_images().is_empty());
        assert_eq!(attachments.images()[0]["mimeType"], sent);
    }
}

#[test]
fn attachment_that_is_not_base64_is_refused() {
    let refusal =
        refused(json!({"type": "image", "fileName": "a.png", "content": "???", "mimeType": "image/png"}));
    assert!(
        refusal.contains("a.png") && refusal.contains("base64"),
        "{refusal}"
    );
    let refusal = refused(json!({"type": "document", "content": "???"}));
    assert!(refusal.contains("unnamed"), "{refusal}");
}

#[test]
fn empty_image_is_refused() {
    let refusal = refused(json!({"type": "image", "mimeType": "image/png"}));
    assert!(refusal.contains("no content"), "{refusal}");
}

#[test]
fn image_without_type_is_refused() {
    let refusal = refused(json!({"type": "image", "content": "QUJD"}));
    assert!(refusal.contains("mimeType"), "{refusal}");
}

#[test]
fn attachment_of_unknown_type_is_refused() {
    let refusal = refused(json!({"type": "video", "content": "QUJD"}));
    assert!(refusal.contains("video"), "{refusal}");
    assert!(refused(json!({"content": "QUJD"})).starts_with("Invalid attachment"));
}

#[test]
fn one_bad_attachment_refuses_all() {
    let fine = json!({"type": "document", "extractedText": "x"});
    let all = Attachments::new(vec![fine, json!({"type": "video"})], Vec::new());
    assert!(all.is_err());
}

#[test]
fn type_of_data_url_wins_over_mime_type() {
    let image = json!({"type": "image", "content": "data:image/webp;base64,QUJD", "mimeType": "image/png"});
    match blocks(image).remove(0) {
        UserBlock::Image(image) => {
            assert_eq!(
                (image.mime_type.as_str(), image.data.as_str()),
                ("image/webp", "QUJD")
            );
        }
        UserBlock::Text(text) => panic!("{text:?}"),
    }
}

#[test]
fn document_shows_text_of_client_first() {
    let text = document(json!({
        "type": "document", "fileName": "a.txt", "content": "QUJD", "mimeType": "text/plain", "extractedText": "given"
    }));
    assert_eq!(text, "\n\n[Document: a.txt]\ngiven");
}

#[test]
fn text_document_without_text_is_decoded() {
    for mime in [
        "text/plain; charset=utf-8",
        "application/json",
        "application/ld+json",
        "image/svg+xml",
    ] {
        let text =
            document(json!({"type": "document", "content": "QUJD", "mimeType": mime, "extractedText": ""}));
        assert_eq!(text, "\n\n[Document: unnamed]\nABC", "{mime}");
    }
}

#[test]
fn binary_document_says_that_text_is_missing() {
    let text = document(json!({"type": "document", "content": "QUJD", "mimeType": "application/pdf"}));
    assert!(text.contains("not available: application/pdf"), "{text}");
    let broken = document(json!({"type": "document", "content": "/w==", "mimeType": "text/plain"}));
    assert!(broken.contains("not available"), "{broken}");
}

#[test]
fn changed_images_keep_documents() {
    let document = json!({"type": "document", "extractedText": "x"});
    let mut attachments = Attachments::new(vec![document], vec![image("QUJD")]).unwrap();
    assert_eq!(attachments.images().len(), 1);
    attachments.set_images(vec![UserBlock::text("no image"), UserBlock::Image(image("REVG"))]);
    let images = attachments.images();
    assert_eq!(images.len(), 1);
    assert_eq!(images[0]["data"], "REVG");
    let Message::User(message) = attachments.message("look".to_owned()) else {
        panic!("no message of the user");
    };
    assert_eq!(message.content.to_blocks().len(), 3, "text, document and image");
}
