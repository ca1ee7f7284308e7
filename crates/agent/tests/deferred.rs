//! When deferred items run.

use pinion_agent::{Condition, Deferred, Order, Readiness};

const IDLE: Readiness = Readiness {
    is_idle: true,
    is_loading: false,
    runs_shells: false,
    is_answering: false,
};

#[test]
fn busy_session_runs_nothing() {
    let mut deferred = Deferred::default();
    deferred.push(Condition::Idle, Order::Passes, 1);
    let is_idle = false;
    assert_eq!(deferred.next(Readiness { is_idle, ..IDLE }), None);
    assert_eq!(deferred.next(IDLE), Some(1));
    assert!(deferred.is_empty() && deferred.next(IDLE).is_none());
}

#[test]
fn each_condition_waits_for_its_own_fact() {
    let facts = [
        (
            Condition::Loaded,
            Readiness {
                is_loading: true,
                ..IDLE
            },
        ),
        (
            Condition::ShellsEnded,
            Readiness {
                runs_shells: true,
                ..IDLE
            },
        ),
        (
            Condition::CommandAnswered,
            Readiness {
                is_answering: true,
                ..IDLE
            },
        ),
    ];
    for (at, (condition, _)) in facts.iter().enumerate() {
        for (other, (_, readiness)) in facts.iter().enumerate() {
            assert_eq!(
                readiness.meets(*condition),
                at != other,
                "{condition:?} {readiness:?}"
            );
        }
        assert!(IDLE.meets(*condition) && !Readiness::default().meets(*condition));
    }
}

#[test]
fn item_without_need_of_idle_session_runs_in_run() {
    let run = Readiness {
        is_idle: false,
        ..IDLE
    };
    let loading = Readiness {
        is_loading: true,
        ..run
    };
    let mut deferred = Deferred::default();
    deferred.push(Condition::Idle, Order::Passes, 1);
    deferred.push(Condition::LoadedInRun, Order::Holds, 2);
    deferred.push(Condition::Loaded, Order::Holds, 3);
    deferred.push(Condition::LoadedInRun, Order::Holds, 4);
    assert_eq!(deferred.next(loading), None);
    assert_eq!((deferred.next(run), deferred.next(run)), (Some(2), None));
    // In an idle session all keep their order.
    let rest = [deferred.next(IDLE), deferred.next(IDLE), deferred.next(IDLE)];
    assert_eq!(rest, [Some(1), Some(3), Some(4)]);
}

#[test]
fn waiting_item_keeps_later_items_waiting() {
    let mut deferred = Deferred::default();
    deferred.push(Condition::ShellsEnded, Order::Holds, 1);
    deferred.push(Condition::Idle, Order::Passes, 2);
    let busy = Readiness {
        runs_shells: true,
        ..IDLE
    };
    assert_eq!(deferred.next(busy), None);
    deferred.push_first(Condition::Idle, Order::Passes, 0);
    assert_eq!(deferred.next(busy), Some(0));
    assert_eq!((deferred.next(IDLE), deferred.next(IDLE)), (Some(1), Some(2)));
}

#[test]
fn taken_items_do_not_wait_any_longer() {
    let mut deferred = Deferred::default();
    for (order, item) in [
        (Order::Passes, 1),
        (Order::Holds, 2),
        (Order::Passes, 3),
        (Order::Holds, 4),
    ] {
        deferred.push(Condition::Loaded, order, item);
    }
    assert_eq!(deferred.take(|item| [2, 4].contains(item)), [2, 4]);
    assert!(!deferred.holds());
    assert_eq!((deferred.next(IDLE), deferred.next(IDLE)), (Some(1), Some(3)));
    assert!(deferred.is_empty());
}

#[test]
fn commands_wait_behind_holding_items_only() {
    let mut deferred = Deferred::default();
    deferred.push(Condition::Idle, Order::Passes, 1);
    assert!(!deferred.holds());
    deferred.push(Condition::Idle, Order::Holds, 2);
    assert!(deferred.holds() && deferred.len() == 2);
    assert_eq!(deferred.items().copied().collect::<Vec<_>>(), [1, 2]);
    deferred.next(IDLE);
    deferred.next(IDLE);
    assert!(!deferred.holds());
}
