//! The open questions of a server to the user. While one is open, the server cannot go on, so the time limits of its requests stand
//! still.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::limits;

/// How many questions of a connection are open. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct OpenQuestions(Arc<watch::Sender<usize>>);

/// Counts as an open question until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenQuestion(OpenQuestions);

impl OpenQuestions {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Opens a question. None if too many are open.
    pub(crate) fn open(&self) -> Option<OpenQuestion> {
        let is_counted = self.0.send_if_modified(|open| {
            let has_room = *open < limits::QUESTIONS;
            *open += usize::from(has_room);
            has_room
        });
        is_counted.then(|| OpenQuestion(self.clone()))
    }

    /// Waits until this time has passed without an open question.
    pub(crate) async fn pass(&self, time: Duration) {
        let (mut open, mut left) = (self.0.subscribe(), time);
        loop {
            until(&mut open, |open| open == 0).await;
            let began = Instant::now();
            tokio::select! {
                () = sleep(left) => return,
                () = until(&mut open, |open| open > 0) => left = left.saturating_sub(began.elapsed()),
            }
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// Waits for a number of open questions. `pass` borrows the sender, so the channel stays open.
async fn until(open: &mut watch::Receiver<usize>, fits: impl Fn(usize) -> bool) {
    drop(open.wait_for(|open| fits(*open)).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_while_question_is_open() {
        let questions = OpenQuestions::new();
        let seconds = Duration::from_secs;
        let began = Instant::now();
        let asked = async {
            sleep(seconds(3)).await;
            let (first, second) = (questions.open(), questions.open());
            sleep(seconds(100)).await;
            drop(first);
            sleep(seconds(100)).await;
            drop(second);
        };
        tokio::join!(questions.pass(seconds(5)), asked);
        assert_eq!(began.elapsed().as_secs(), 205);
        questions.pass(seconds(5)).await;
        assert_eq!(began.elapsed().as_secs(), 210);
    }

    #[test]
    fn questions_beyond_limit_are_not_opened() {
        let questions = OpenQuestions::new();
        let mut open: Vec<_> = (0..limits::QUESTIONS)
            .map(|_| questions.open().unwrap())
            .collect();
        assert!(questions.open().is_none());
        open.pop();
        assert!(questions.open().is_some());
    }
}
