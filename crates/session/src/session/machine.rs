//! The machine of a session together with the record of its inputs. Reading is the machine's own; `step` is the only way to
//! change it, so no input can miss the record, and no use of a model the account that the session shares with its sub-agents.

use std::ops::Deref;
use std::sync::Arc;

use agent::{AccountMember, Change, Effect, Input, LoopSettings, Machine, SharedAccount};
use wire::Message;

use crate::input_record::{InputRecord, SessionRecord};

use super::clock::now_ms;
use super::run_limits::{SharedSpending, TaskBudget};

/// A machine whose inputs may be recorded.
#[derive(Debug)]
pub(super) struct RecordedMachine {
    machine: Machine,
    record: Option<SessionRecord>,
    /// The account that it shares with others; none while it works alone.
    account: Option<AccountMember>,
}

impl RecordedMachine {
    /// A machine for a session with these settings and this conversation.
    pub(super) fn open(
        record: Option<&InputRecord>,
        settings: LoopSettings,
        messages: Vec<Arc<Message>>,
    ) -> Self {
        let mut machine = Self {
            machine: Machine::default(),
            record: record.map(InputRecord::session),
            account: None,
        };
        // As an input, so that the record of inputs contains all that the machine begins with.
        machine.step(Change::Open { settings, messages }.into(), &mut Vec::new());
        machine
    }

    /// A place in the account for a sub-agent. What others used until now is counted in the budget.
    pub(super) fn new_member(&mut self) -> AccountMember {
        self.count_others();
        let own = self
            .account
            .get_or_insert_with(|| SharedAccount::default().join());
        own.account().join()
    }

    /// What a task outside of a run may use; what it uses is counted here, or in `spending` until the session takes it.
    pub(super) fn task_budget(&mut self, spending: SharedSpending) -> TaskBudget {
        // The budget is a copy: what other tasks used before must be in it, and a new member counts only what comes after it joined.
        self.count_tasks(&spending);
        let account = self.account.as_ref().map(AccountMember::account);
        TaskBudget::new(self.machine.budget().clone(), spending, account)
    }

    /// The session works for the one whose account this is.
    pub(super) fn join(&mut self, account: AccountMember) {
        self.account = Some(account);
    }

    /// Gives the machine an input, now, and appends its effects. What others used of the account comes first.
    pub(super) fn step(&mut self, input: Input, out: &mut Vec<Effect>) {
        self.count_others();
        // After the use of the others, which must not be noted in the account a second time.
        let before = self.machine.budget().spent();
        self.feed(input, out);
        if let Some(account) = &mut self.account {
            account.note(self.machine.budget().spent().since(before));
        }
    }

    /// Counts what others used of the account, and takes over the limits that its owner has set.
    pub(super) fn count_others(&mut self) {
        let Some(account) = &mut self.account else { return };
        let (others, limits) = (account.take(), account.take_limits());
        // Not through `step`, which would note it as this session's own use. Such inputs have no effects.
        if let Some(spent) = others {
            self.feed(Input::Spent(spent), &mut Vec::new());
        }
        if let Some(limits) = limits {
            let reset = false;
            self.feed(Change::Limits { limits, reset }.into(), &mut Vec::new());
        }
    }

    /// Counts what tasks outside of runs used since the last time, and what others used of the account.
    pub(super) fn count_tasks(&mut self, spending: &SharedSpending) {
        match spending.take() {
            // Such an input has no effects.
            Some(spent) => self.step(Input::Spent(spent), &mut Vec::new()),
            None => self.count_others(),
        }
    }

    /// The limits have changed: sub-agents that work already have the rest of them.
    pub(super) fn share_limits(&mut self) {
        if let Some(account) = &mut self.account {
            account.set_limits(self.machine.budget().left());
        }
    }

    fn feed(&mut self, input: Input, out: &mut Vec<Effect>) {
        let now = now_ms();
        match &mut self.record {
            None => self.machine.step(input, now, out),
            Some(record) => record.step(&mut self.machine, input, now, out),
        }
    }
}

impl Deref for RecordedMachine {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}
