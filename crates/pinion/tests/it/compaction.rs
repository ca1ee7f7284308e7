//! Compacting on request, as a client sees it.

use serde_json::json;
use testkit::llm::Reply;

use crate::kit::{LONG, World, kinds, text};

/// A session of two exchanges in its file, of which a compaction keeps the last.
fn two_exchanges(replies: impl IntoIterator<Item = Reply>) -> (World, String) {
    let world = World::new(
        [Reply::text(["One."]), Reply::text(["Two."])]
            .into_iter()
            .chain(replies),
    );
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start();
    pi.say(&"Remember the word elephant. ".repeat(40));
    pi.say("And this one, too.");
    let file = pi.file().to_str().unwrap().to_owned();
    pi.finish();
    (world, file)
}

#[test]
fn a_summary_takes_the_place_of_the_older_part() {
    let (world, file) = two_exchanges([Reply::text(["All about elephants."])]);
    let pi = world.start_with(&["--session", &file]);
    let result = pi.data(json!({"type": "compact", "customInstructions": "Mind the animals."}));
    assert_eq!(result["summary"], "All about elephants.");
    let messages = pi.messages();
    assert_eq!(messages[0]["role"], "compactionSummary");
    assert_eq!(messages[0]["summary"], "All about elephants.");
    assert!(
        !messages
            .iter()
            .any(|message| message.to_string().contains("Remember the word")),
        "{messages:?}"
    );
    assert!(
        world.server.requests()[2]
            .body
            .to_string()
            .contains("Mind the animals.")
    );
    assert_eq!(
        pi.state()["contextUsage"]["tokens"],
        json!(null),
        "nothing is known until the next answer"
    );
    pi.finish();
}

#[test]
fn what_is_said_meanwhile_is_heard_afterwards_even_in_a_session_without_a_prompt() {
    let summary = Reply::text(["All about elephants."]).gate("summary");
    let (world, file) = two_exchanges([summary, Reply::text(["Heard."])]);
    let pi = world.start_with(&["--session", &file]);
    let asked = pi.send(json!({"type": "compact"}));
    pi.wait("compaction_start");
    pi.data(json!({"type": "steer", "message": "Do not forget me."}));
    world.server.release("summary");
    assert_eq!(pi.response(&asked)["success"], true);
    pi.agent
        .wait(|line| line["type"] == "agent_settled", LONG)
        .unwrap();
    let lines = pi.lines();
    assert!(kinds(&lines).contains(&"agent_end"), "{:?}", kinds(&lines));
    assert_eq!(text(pi.messages().last().unwrap()), "Heard.");
    pi.finish();
}
