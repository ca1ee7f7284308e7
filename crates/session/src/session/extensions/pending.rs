//! Questions that are under way. Each is answered by a future that runs in a task of its own, and the question itself, with all
//! that is needed to go on, waits here for the answer. What a question means is its owner's business.

use std::collections::HashMap;

use extensions::ProcessError;
use tokio::task::{AbortHandle, JoinSet};

use crate::strings;

/// Questions of one kind, with answers of one kind. Dropping it ends the tasks.
#[derive(Debug)]
pub(crate) struct Pending<Q, A> {
    /// By the number of the question.
    open: HashMap<u64, Open<Q>>,
    /// Number of the newest question.
    newest: u64,
    answers: JoinSet<Answered<A>>,
}

#[derive(Debug)]
struct Open<Q> {
    question: Q,
    task: AbortHandle,
}

/// An answer that can say that its task panicked: a question without an answer would keep its asker waiting, and all commands that
/// wait for it.
pub(crate) trait FromPanic {
    /// The answer to a question whose task panicked.
    fn from_panic() -> Self;
}

impl<T> FromPanic for Result<T, String> {
    fn from_panic() -> Self {
        Err(strings::TASK_PANICKED.to_owned())
    }
}

impl<T> FromPanic for Result<T, ProcessError> {
    fn from_panic() -> Self {
        Err(ProcessError::Failed(strings::TASK_PANICKED.to_owned()))
    }
}

/// An answer, with the number of its question.
#[derive(Debug)]
pub(crate) struct Answered<A> {
    pub(crate) number: u64,
    pub(crate) answer: A,
}

impl<Q, A: 'static> Default for Pending<Q, A> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            newest: 0,
            answers: JoinSet::new(),
        }
    }
}

impl<Q, A: FromPanic + Send + 'static> Pending<Q, A> {
    /// Waits for the answer to a question in a task. Returns the number of the question.
    pub(crate) fn ask(&mut self, question: Q, answer: impl Future<Output = A> + Send + 'static) -> u64 {
        // Never used twice: an answer whose question was given up must not find another one.
        self.newest += 1;
        let number = self.newest;
        // In a task, so that the request goes on while the session does other work.
        let task = self.answers.spawn(async move {
            let answer = answer.await;
            Answered { number, answer }
        });
        self.open.insert(number, Open { question, task });
        number
    }

    /// Waits for the next answer; never resolves while there is no question. Cancel-safe. The question stays open until it is
    /// [taken](Self::take), since it may still be given up by an event that comes before the answer.
    pub(crate) async fn next(&mut self) -> Answered<A> {
        loop {
            match self.answers.join_next().await {
                Some(Ok(answered)) => return answered,
                Some(Err(error)) => {
                    let mut open = self.open.iter();
                    let panicked = open.find(|(_, open)| open.task.id() == error.id());
                    if let Some((&number, _)) = panicked {
                        let answer = A::from_panic();
                        return Answered { number, answer };
                    }
                    // The question was given up, which aborts its task.
                }
                None => std::future::pending().await,
            }
        }
    }

    /// Number of the newest question.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// An open question.
    pub(crate) fn get(&self, number: u64) -> Option<&Q> {
        self.open.get(&number).map(|open| &open.question)
    }

    /// Removes a question. `None` if it was given up.
    pub(crate) fn take(&mut self, number: u64) -> Option<Q> {
        self.open.remove(&number).map(|open| open.question)
    }

    /// Returns true while a question of this kind is open.
    pub(crate) fn any(&self, which: impl Fn(&Q) -> bool) -> bool {
        self.open.values().any(|open| which(&open.question))
    }

    /// Number of open questions of this kind.
    pub(crate) fn count(&self, which: impl Fn(&Q) -> bool) -> usize {
        self.open.values().filter(|open| which(&open.question)).count()
    }

    /// Returns true if no question is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Stops waiting for the answers to some questions. Returns these questions in the order in which they were asked.
    pub(crate) fn give_up(&mut self, which: impl Fn(&Q) -> bool) -> Vec<Q> {
        let mut given_up: Vec<(u64, Open<Q>)> =
            self.open.extract_if(|_, open| which(&open.question)).collect();
        // A map has no order.
        given_up.sort_unstable_by_key(|(number, _)| *number);
        let given_up = given_up.into_iter().map(|(_, open)| {
            // Dropping its future cancels the request in the process, and kills a hook executable.
            open.task.abort();
            open.question
        });
        given_up.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Answered, FromPanic, Pending};

    type Words = Pending<&'static str, u32>;

    impl FromPanic for u32 {
        fn from_panic() -> Self {
            Self::MAX
        }
    }

    async fn panicking() -> u32 {
        panic!("the defect that this test is about")
    }

    #[tokio::test]
    async fn answer_carries_number_of_its_question() {
        let mut pending = Words::default();
        pending.ask("never", std::future::pending());
        let second = pending.ask("second", async { 2 });
        let Answered { number, answer } = pending.next().await;
        assert_eq!((number, answer), (second, 2));
        // Taken once only.
        assert_eq!(pending.take(number), Some("second"));
        assert_eq!(pending.take(number), None);
        assert!(pending.any(|question| *question == "never") && !pending.is_empty());
        assert_eq!(pending.count(|question| *question == "never"), 1);
    }

    #[tokio::test]
    async fn given_up_questions_return_in_order_without_answer() {
        let mut pending = Words::default();
        for word in ["a", "b", "keep", "c", "d"] {
            pending.ask(word, async move { u32::from(word == "keep") });
        }
        assert_eq!(pending.give_up(|word| *word != "keep"), ["a", "b", "c", "d"]);
        loop {
            // A task that had ended before it was aborted has an answer that nothing waits for.
            let Answered { number, answer } = pending.next().await;
            if let Some(word) = pending.take(number) {
                assert_eq!((word, answer), ("keep", 1));
                break;
            }
        }
        assert!(pending.is_empty());
    }

    #[tokio::test]
    async fn question_with_panicked_task_is_answered() {
        let mut pending = Words::default();
        pending.ask("never", std::future::pending());
        let second = pending.ask("second", panicking());
        let Answered { number, answer } = pending.next().await;
        assert_eq!((number, answer), (second, u32::MAX));
        assert_eq!(pending.take(number), Some("second"));
        assert!(pending.any(|question| *question == "never"));
    }

    #[tokio::test]
    async fn pending_without_questions_never_resolves() {
        let mut pending = Words::default();
        let waited = tokio::time::timeout(Duration::from_millis(5), pending.next()).await;
        assert!(waited.is_err());
    }
}
