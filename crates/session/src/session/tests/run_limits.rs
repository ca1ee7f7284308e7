//! Limits of runs, without a run.

use agent::{Change, Input, LoopSettings, Machine, RunBudget, SharedAccount, Spent};
use serde_json::json;
use wire::run_limits::LimitKind;
use wire::{Model, RunLimits, Usage};

use super::super::machine::RecordedMachine;
use super::super::run_limits::{
    SharedSpending, TaskBudget, check_limits, check_new, check_price, limits_reply,
};
use super::model;

fn priced(id: &str) -> Model {
    let mut model = serde_json::to_value(model(id, false)).unwrap();
    model["cost"] = json!({"input": 1.0, "output": 2.0, "cacheRead": 0.0, "cacheWrite": 0.0});
    serde_json::from_value(model).unwrap()
}

fn budget(limits: RunLimits) -> RunBudget {
    let settings = LoopSettings {
        limits,
        ..LoopSettings::default()
    };
    Machine::new(settings, Vec::new()).budget().clone()
}

fn turns(max_turns: u64) -> RunLimits {
    RunLimits {
        max_turns: Some(max_turns),
        ..RunLimits::default()
    }
}

fn cost(max_cost: f64) -> RunLimits {
    RunLimits {
        max_cost: Some(max_cost),
        ..RunLimits::default()
    }
}

#[test]
fn used_up_budget_refuses_the_model() {
    let mut budget = budget(turns(1));
    assert_eq!(check_limits(&budget, &model("a", false)), Ok(()));
    budget.asked();
    assert!(check_limits(&budget, &model("a", false)).is_err());
    assert_eq!(check_price(&budget, &model("a", false)), Ok(()));
}

#[test]
fn limited_cost_needs_a_known_price() {
    let budget = budget(cost(1.0));
    let refusal = check_limits(&budget, &model("free", false)).unwrap_err();
    assert!(refusal.contains("test/free"), "{refusal}");
    assert_eq!(check_limits(&budget, &priced("paid")), Ok(()));
}

#[test]
fn new_cost_limit_checks_every_model() {
    let (paid, free) = (priced("paid"), model("free", false));
    assert_eq!(check_new(cost(1.0), [&paid]), Ok(()));
    let refusal = check_new(cost(1.0), [&paid, &free]).unwrap_err();
    assert!(refusal.contains("test/free"), "{refusal}");
    assert_eq!(check_new(turns(3), [&free]), Ok(()), "no cost is counted");
}

#[test]
fn new_limit_of_zero_is_refused() {
    let refusal = check_new(turns(0), [&model("a", false)]).unwrap_err();
    assert!(refusal.contains("maxTurns"), "{refusal}");
    assert!(check_new(cost(0.0), [&priced("a")]).is_err());
}

#[test]
fn limits_reply_names_the_reached_limit() {
    let mut budget = budget(turns(2));
    budget.asked();
    assert_eq!(limits_reply(&budget).reached, None);
    budget.asked();
    let reply = limits_reply(&budget);
    assert_eq!(reply.reached.map(|limit| limit.kind), Some(LimitKind::Turns));
    assert_eq!(reply.used.turns, 2);
    assert_eq!(reply.limits.limits.max_turns, Some(2));
}

#[test]
fn shared_spending_is_taken_once() {
    let spending = SharedSpending::default();
    assert_eq!(spending.take(), None, "nothing was spent");
    let clone = spending.clone();
    for _ in 0..2 {
        clone.add(Spent {
            requests: 1,
            ..Spent::default()
        });
    }
    assert_eq!(spending.take().map(|spent| spent.requests), Some(2));
    assert_eq!(spending.take(), None);
}

#[test]
fn task_without_account_counts_for_its_session() {
    let spending = SharedSpending::default();
    let mut task = TaskBudget::new(budget(turns(2)), spending.clone(), None);
    task.asked();
    task.answered(&Usage {
        input: 5,
        ..Usage::default()
    });
    assert_eq!(task.reached(), None);
    task.asked();
    assert_eq!(task.reached().map(|limit| limit.kind), Some(LimitKind::Turns));
    let spent = spending.take().unwrap();
    assert_eq!((spent.requests, spent.tokens), (2, 5));
}

#[test]
fn task_counts_what_others_use_meanwhile() {
    let account = SharedAccount::default();
    let mut other = account.join();
    let spending = SharedSpending::default();
    let mut task = TaskBudget::new(budget(turns(3)), spending.clone(), Some(&account));
    task.asked();
    assert_eq!(task.reached(), None);
    other.note(Spent {
        requests: 2,
        ..Spent::default()
    });
    assert_eq!(task.reached().map(|limit| limit.kind), Some(LimitKind::Turns));
    assert_eq!(spending.take(), None, "the account counts instead");
}

#[test]
fn task_with_cost_limit_checks_its_model() {
    let task = TaskBudget::new(budget(cost(1.0)), SharedSpending::default(), None);
    assert!(task.check_price(&model("free", false)).is_err());
    assert_eq!(task.check_price(&priced("paid")), Ok(()));
}

fn machine(limits: RunLimits) -> RecordedMachine {
    let settings = LoopSettings {
        limits,
        ..LoopSettings::default()
    };
    RecordedMachine::open(None, settings, Vec::new())
}

fn requests(requests: u64) -> Input {
    Input::Spent(Spent {
        requests,
        ..Spent::default()
    })
}

#[test]
fn ended_task_counts_for_the_next() {
    let mut machine = machine(turns(2));
    let spending = SharedSpending::default();
    for _ in 0..2 {
        let mut task = machine.task_budget(spending.clone());
        assert_eq!(task.reached(), None);
        task.asked();
    }
    // No input came in between: an extension and a cache refresh also ask while no run is active.
    let mut late = machine.task_budget(spending);
    assert_eq!(late.reached().map(|limit| limit.kind), Some(LimitKind::Turns));
    assert_eq!(machine.budget().spent().requests, 2, "each counts once");
}

#[test]
fn new_limits_reach_working_subagent() {
    let mut owner = machine(RunLimits::default());
    let mut worker = machine(RunLimits::default());
    worker.join(owner.new_member());
    worker.step(requests(3), &mut Vec::new());
    let (limits, reset) = (turns(5), false);
    owner.step(Change::Limits { limits, reset }.into(), &mut Vec::new());
    owner.share_limits();
    worker.step(requests(1), &mut Vec::new());
    assert_eq!(worker.budget().reached(), None);
    worker.step(requests(1), &mut Vec::new());
    let reached = worker.budget().reached();
    assert_eq!(reached.map(|limit| limit.kind), Some(LimitKind::Turns));
    owner.count_others();
    assert_eq!(owner.budget().spent().requests, 5);
}
