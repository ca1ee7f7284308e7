//! Models, levels and failed requests of a process that works as oh-my-pi (dialects.md 14.1).

use serde_json::json;
use testkit::llm::{ErrorKind, Reply};

use crate::dialect_outputs::{end, speaking};
use crate::kit::{World, of_type};

#[test]
fn unnamed_levels_reach_xhigh_with_own_budget() {
    let world = World::new([Reply::text(["Yes."]), Reply::text(["Yes."])]);
    let pi = speaking(&world, "omp-now");
    let levels = pi.get("get_available_thinking_levels");
    assert_eq!(
        levels["levels"],
        json!(["off", "minimal", "low", "medium", "high", "xhigh"])
    );
    for level in ["high", "xhigh"] {
        pi.data(json!({"type": "set_thinking_level", "level": level}));
        pi.data(json!({"type": "prompt", "message": "Hi"}));
        pi.wait("session_settled");
    }
    end(&pi);
    let requests = world.server.requests();
    let budget = |at: usize| requests[at].body["thinking"]["budget_tokens"].as_u64();
    assert_eq!(budget(0), Some(16_384));
    assert!(budget(1) > budget(0), "{:?}", budget(1));
}

#[test]
fn reasoning_stays_off_after_plain_model() {
    let world = World::new([]);
    let pi = speaking(&world, "omp-now");
    let first = pi.get("cycle_model");
    assert_eq!(first["model"]["reasoning"], false);
    let second = pi.get("cycle_model");
    assert_eq!(
        (&second["model"]["reasoning"], &second["thinkingLevel"]),
        (&json!(true), &json!("off"))
    );
    let lines = end(&pi);
    assert_eq!(of_type(&lines, "thinking_level_changed").len(), 1, "{lines:?}");
}

#[test]
fn used_up_quota_ends_run_with_reason() {
    let world = World::new([Reply::error(ErrorKind::RateLimit)]);
    let google = ["--provider", "mock-google", "--model", "gemini-mock"];
    let pi = world.start_with(&[&["--rpc-dialect", "omp-now"][..], &google].concat());
    pi.data(json!({"type": "prompt", "message": "Hi"}));
    pi.wait("session_settled");
    assert_eq!(pi.messages().len(), 2);
    let lines = end(&pi);
    assert!(of_type(&lines, "auto_retry_start").is_empty(), "{lines:?}");
    let ended = of_type(&lines, "auto_retry_end")[0];
    assert_eq!((&ended["success"], &ended["attempt"]), (&json!(false), &json!(1)));
    let error = ended["finalError"].as_str().unwrap();
    assert!(
        error.starts_with("Provider requested 1800000ms wait, "),
        "{error}"
    );
    assert_eq!(of_type(&lines, "prompt_result")[0]["error"]["retryable"], true);
}

#[test]
fn overflow_without_compaction_leaves_conversation() {
    let world = World::new([Reply::error(ErrorKind::ContextOverflow)]);
    let pi = speaking(&world, "omp-now");
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    pi.data(json!({"type": "prompt", "message": "Hi"}));
    pi.wait("session_settled");
    assert_eq!(pi.roles(), ["user"]);
    let lines = end(&pi);
    assert_eq!(
        of_type(&lines, "agent_end")[0]["messages"][1]["stopReason"],
        "error",
        "the run has it"
    );
}
