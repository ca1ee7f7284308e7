//! Settings that change while a session is open.

use agent::LoopSettings;
use wire::state::{InterruptMode, QueueMode};

use super::super::trust::follow;

#[test]
fn settings_follow_unless_a_client_switched_them() {
    let before = LoopSettings {
        steering_mode: QueueMode::All,
        interrupt_mode: InterruptMode::Wait,
        ..LoopSettings::default()
    };
    let after = LoopSettings {
        steering_mode: QueueMode::OneAtATime,
        interrupt_mode: InterruptMode::Immediate,
        ..before
    };
    let switched = LoopSettings {
        interrupt_mode: InterruptMode::Immediate,
        ..before
    };
    assert_eq!(follow(before, before, after), after, "nothing was switched");
    let back = follow(switched, after, before);
    assert_eq!(
        back.interrupt_mode,
        InterruptMode::Wait,
        "it is as the settings had it"
    );
    let kept = follow(switched, before, before);
    assert_eq!(
        kept.interrupt_mode,
        InterruptMode::Immediate,
        "the client switched it"
    );
}
