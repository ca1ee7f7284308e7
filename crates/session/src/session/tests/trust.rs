//! Settings that change while a session is open.

use agent::LoopSettings;
use wire::state::{InterruptMode, QueueMode};

use super::super::trust::{follow, follow_one};

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

#[test]
fn switched_value_stays_even_if_settings_agree_later() {
    let mut value = 2;
    follow_one(&mut value, &1, 3);
    assert_eq!(value, 2, "a client switched it");
    follow_one(&mut value, &2, 3);
    assert_eq!(value, 3, "it was as the settings had it");
}
