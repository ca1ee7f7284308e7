//! How often the model gets a rule.

use pinion_agent::ttsr::{Repeat, TtsrSettings};
use wire::StopReason;

use crate::{World, rule};

/// Says "bad" in so many turns; which of them are stopped?
fn stopped_turns(repeat: Repeat, told: &[&str], turns: usize) -> Vec<usize> {
    let settings = TtsrSettings {
        repeat,
        ..TtsrSettings::default()
    };
    let mut world = World::with(vec![rule("r", "bad")], settings, told);
    let mut stopped = Vec::new();
    for turn in 1..=turns {
        world.text("bad");
        if world.stopped().is_empty() {
            world.finish(StopReason::Stop);
            world.prompt();
        } else {
            stopped.push(turn);
            world.finish(StopReason::Aborted);
            world.begin();
        }
    }
    stopped
}

#[test]
fn rule_with_repeat_once_stops_once() {
    assert_eq!(stopped_turns(Repeat::Once, &[], 9), [1]);
    assert_eq!(stopped_turns(Repeat::Once, &["other"], 9), [1]);
    assert!(
        stopped_turns(Repeat::Once, &["r"], 9).is_empty(),
        "an earlier process has told it"
    );
}

#[test]
fn rule_with_gap_stops_again_after_gap() {
    assert_eq!(stopped_turns(Repeat::AfterGap(4), &[], 10), [1, 5, 9]);
    assert_eq!(stopped_turns(Repeat::AfterGap(4), &["r"], 10), [4, 8]);
    for gap in [0, 1, 2] {
        let stopped = stopped_turns(Repeat::AfterGap(gap), &[], 6);
        assert_eq!(stopped, [1, 3, 5], "an answer always gets through, gap {gap}");
    }
}
