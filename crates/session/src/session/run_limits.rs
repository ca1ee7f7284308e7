//! Limits of runs, as far as a session has to do with them: checks before a run, replies. What counts is in `agent::RunBudget`.

use agent::{AccountMember, RunBudget, SharedAccount, Spent};
use wire::run_limits::{CurrentLimits, ReachedLimit, SessionLimits};
use wire::{Model, RunLimits, Usage};

use crate::strings;

/// Checks that a model may be asked.
///
/// # Errors
/// A sentence for the client: a limit is reached, or a cost is limited and the price of the model is unknown.
pub(super) fn check_limits(budget: &RunBudget, model: &Model) -> Result<(), String> {
    if let Some(limit) = budget.reached() {
        return Err(strings::limit_reached(limit));
    }
    check_price(budget, model)
}

/// Checks limits that a client sets while these models are asked.
///
/// # Errors
/// A sentence for the client: a limit cannot be meant, or the price of a model is unknown.
pub(super) fn check_new<'a>(
    limits: RunLimits,
    models: impl IntoIterator<Item = &'a Model>,
) -> Result<(), String> {
    limits.check()?;
    // Only a limit of the cost needs the prices of models.
    if limits.max_cost.is_none() {
        return Ok(());
    }
    match models.into_iter().find(|model| !model.cost.are_known()) {
        Some(model) => Err(strings::unknown_price(&model.provider, &model.id)),
        None => Ok(()),
    }
}

/// Checks that a limited cost can be counted.
///
/// # Errors
/// A sentence for the client: a cost is limited, and the price of the model is unknown.
pub(super) fn check_price(budget: &RunBudget, model: &Model) -> Result<(), String> {
    match budget.allows_prices(&model.cost) {
        true => Ok(()),
        false => Err(strings::unknown_price(&model.provider, &model.id)),
    }
}

/// The reply to `get_limits`.
pub(super) fn limits_reply(budget: &RunBudget) -> SessionLimits {
    SessionLimits {
        limits: CurrentLimits {
            limits: budget.limits(),
        },
        used: budget.used(),
        reached: budget.reached(),
    }
}

/// The use of requests outside of runs, which are tasks of their own, until the session takes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedSpending(std::sync::Arc<std::sync::Mutex<Spent>>);

impl SharedSpending {
    /// Counts a request.
    pub(super) fn add(&self, spent: Spent) {
        if let Ok(mut sum) = self.0.lock() {
            sum.add(spent);
        }
    }

    /// The sum since the last time, if there is one.
    pub(super) fn take(&self) -> Option<Spent> {
        let mut sum = self.0.lock().ok()?;
        let spent = std::mem::take(&mut *sum);
        (spent != Spent::default()).then_some(spent)
    }
}

/// What a task outside of a run may use: as much as the run that it was begun in had left.
#[derive(Debug)]
pub(super) struct TaskBudget {
    budget: RunBudget,
    spending: SharedSpending,
    /// The account, if the session shares one with sub-agents. The session counts notes there without `spending`.
    account: Option<AccountMember>,
}

impl TaskBudget {
    /// A budget as of now.
    pub(super) fn new(budget: RunBudget, spending: SharedSpending, account: Option<&SharedAccount>) -> Self {
        Self {
            budget,
            spending,
            account: account.map(SharedAccount::join),
        }
    }

    /// The limit that prevents another request.
    pub(super) fn reached(&mut self) -> Option<ReachedLimit> {
        if let Some(spent) = self.account.as_mut().and_then(AccountMember::take) {
            self.budget.spend(spent);
        }
        self.budget.reached()
    }

    /// Checks that the model of the task may be asked.
    ///
    /// # Errors
    /// A sentence for the client: a cost is limited, and the price of the model is unknown.
    pub(super) fn check_price(&self, model: &Model) -> Result<(), String> {
        check_price(&self.budget, model)
    }

    /// A request is made.
    pub(super) fn asked(&mut self) {
        self.spend(Spent {
            requests: 1,
            ..Spent::default()
        });
    }

    /// It was answered, or failed.
    pub(super) fn answered(&mut self, usage: &Usage) {
        self.spend(Spent {
            // `asked` has counted the request.
            requests: 0,
            ..Spent::of(usage)
        });
    }

    fn spend(&mut self, spent: Spent) {
        self.budget.spend(spent);
        // Not both: the session gets the notes of the account as use of the others.
        match &mut self.account {
            Some(account) => account.note(spent),
            None => self.spending.add(spent),
        }
    }
}
