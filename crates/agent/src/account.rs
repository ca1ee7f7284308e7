//! What a session and the sub-agents that work for it use together (docs/guides/sub-agents.md). Each of them has a machine and
//! counts what it uses itself. Before a machine decides, it gets the use of the others as an input. All of
//! them run on one thread, so between a decision and the note of it no other decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::RunLimits;

use crate::budget::Spent;

/// The name of the tool that gives tasks to sub-agents.
pub const TASK_TOOL: &str = "task";

/// The account of a session and its sub-agents. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SharedAccount(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    /// The use of all members.
    spent: Spent,
    /// The limits of that use, as they were set last.
    limits: RunLimits,
    /// How often limits were set.
    set: u64,
}

/// One session that uses an account.
#[derive(Debug)]
pub struct AccountMember {
    account: SharedAccount,
    /// What this member used since it joined.
    own: Spent,
    /// What the member knows of the use of the others.
    known: Spent,
    /// What all had used when it joined. Its own budget counts from there.
    before: Spent,
    /// How often limits had been set when it looked last.
    set: u64,
}

impl SharedAccount {
    /// A member that has used nothing; what others used before does not count for it.
    #[must_use]
    pub fn join(&self) -> AccountMember {
        let shared = self.lock();
        AccountMember {
            account: self.clone(),
            own: Spent::default(),
            known: shared.spent,
            before: shared.spent,
            set: shared.set,
        }
    }

    /// The content stays valid if a holder of the lock panics: no change calls foreign code.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccountMember {
    /// The account, for another member.
    #[must_use]
    pub fn account(&self) -> &SharedAccount {
        &self.account
    }

    /// What the other members used since the last time, if they did.
    pub fn take(&mut self) -> Option<Spent> {
        // The account has the sum of all members, so that its own part must come off.
        let others = self.account.lock().spent.since(self.own);
        let news = others.since(self.known);
        self.known = others;
        // Sums of prices have rounding errors, which are no news.
        let is_news = news.requests > 0 || news.tokens > 0 || news.tool_calls > 0 || news.cost > 1e-12;
        is_news.then_some(news)
    }

    /// This member used something.
    pub fn note(&mut self, spent: Spent) {
        // Both sums grow by the same amount: `take` subtracts the own part, so own use never comes back as the use of others.
        self.own.add(spent);
        self.account.lock().spent.add(spent);
    }

    /// All members together may use `left` from now on. The others learn of it with [`Self::take_limits`].
    pub fn set_limits(&mut self, left: RunLimits) {
        let mut shared = self.account.lock();
        let spent = shared.spent;
        // As limits of the whole use: what others use until they learn of the limits counts, too.
        shared.limits = RunLimits {
            max_turns: left.max_turns.map(|most| most.saturating_add(spent.requests)),
            max_tool_calls: left
                .max_tool_calls
                .map(|most| most.saturating_add(spent.tool_calls)),
            max_tokens: left.max_tokens.map(|most| most.saturating_add(spent.tokens)),
            max_cost: left.max_cost.map(|most| most + spent.cost),
            ..left
        };
        shared.set += 1;
        self.set = shared.set;
    }

    /// The limits of this member's budget, if another one has set limits since the last time.
    pub fn take_limits(&mut self) -> Option<RunLimits> {
        let shared = self.account.lock();
        if shared.set == self.set {
            return None;
        }
        self.set = shared.set;
        // The limits are about the use of all since the account exists, and the budget of a member counts from when it joined.
        let (limits, before) = (shared.limits, self.before);
        Some(RunLimits {
            max_turns: limits.max_turns.map(|most| most.saturating_sub(before.requests)),
            max_tool_calls: limits
                .max_tool_calls
                .map(|most| most.saturating_sub(before.tool_calls)),
            max_tokens: limits.max_tokens.map(|most| most.saturating_sub(before.tokens)),
            max_cost: limits.max_cost.map(|most| (most - before.cost).max(0.0)),
            ..limits
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{RunLimits, SharedAccount, Spent};

    fn requests(requests: u64) -> Spent {
        Spent {
            requests,
            ..Spent::default()
        }
    }

    #[test]
    fn members_learn_what_others_used_once() {
        let account = SharedAccount::default();
        let mut owner = account.join();
        owner.note(requests(2));
        let mut first = account.join();
        let mut second = account.join();
        assert_eq!(
            first.take(),
            None,
            "what came before is in the limits of the member"
        );
        first.note(requests(3));
        second.note(requests(4));
        assert_eq!(owner.take(), Some(requests(7)));
        assert_eq!(owner.take(), None);
        assert_eq!(first.take(), Some(requests(4)));
        assert_eq!(second.take(), Some(requests(3)));
        owner.note(requests(1));
        assert_eq!(
            (first.take(), second.take()),
            (Some(requests(1)), Some(requests(1)))
        );
        assert_eq!((first.take(), owner.take()), (None, None));
    }

    #[test]
    fn members_learn_new_limits_once() {
        let account = SharedAccount::default();
        let mut owner = account.join();
        owner.note(requests(2));
        let mut worker = account.join();
        assert_eq!(worker.take_limits(), None);
        worker.note(requests(3));
        let turns = |turns| RunLimits {
            max_turns: Some(turns),
            max_repeats: Some(4),
            ..RunLimits::default()
        };
        owner.set_limits(turns(7));
        let mut late = account.join();
        // Three of its own, and the seven that are left.
        assert_eq!(worker.take_limits(), Some(turns(10)));
        assert_eq!(worker.take_limits(), None, "once");
        assert_eq!(owner.take_limits(), None, "it has set them itself");
        assert_eq!(late.take_limits(), None, "it has begun with them");
        owner.set_limits(RunLimits::default());
        assert_eq!(worker.take_limits(), Some(RunLimits::default()));
    }

    #[test]
    fn rounding_errors_are_no_news() {
        let account = SharedAccount::default();
        let (mut owner, mut worker) = (account.join(), account.join());
        let cents = |cost| Spent {
            cost,
            ..Spent::default()
        };
        let mut sum = 0.0;
        for _ in 0..1000 {
            worker.note(cents(0.1));
            owner.note(cents(0.07));
            sum += owner.take().map_or(0.0, |spent| spent.cost);
            assert_eq!(owner.take(), None);
        }
        assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    }
}
