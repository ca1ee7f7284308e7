//! An answer that is awaited: of one process, or of several that are asked one after the other.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::ProcessError;
use crate::line::ToChild;

use super::ExtensionProcess;
use super::message::Answer;

type Outcome = Result<Answer, ProcessError>;

/// A pending answer. Dropping it cancels the request in the process.
#[derive(Debug)]
pub struct PendingAnswer(Kind);

enum Kind {
    One(One),
    Several(Several),
}

struct One {
    id: u64,
    answer: oneshot::Receiver<Outcome>,
    /// Taken when there is nothing to withdraw any more.
    process: Option<ExtensionProcess>,
}

struct Several {
    answer: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    cancel: CancellationToken,
}

impl PendingAnswer {
    pub(super) fn one(id: u64, answer: oneshot::Receiver<Outcome>, process: ExtensionProcess) -> Self {
        let process = Some(process);
        Self(Kind::One(One { id, answer, process }))
    }

    /// An answer made of several. `cancel` is cancelled when it will not be used.
    pub(crate) fn several(
        answer: impl Future<Output = Outcome> + Send + 'static,
        cancel: CancellationToken,
    ) -> Self {
        let answer = Box::pin(answer);
        Self(Kind::Several(Several { answer, cancel }))
    }

    /// The extensions that are at fault when the process ends over this.
    #[must_use]
    pub(crate) fn blaming(self, whose: &Arc<[String]>) -> Self {
        if let Kind::One(One {
            id,
            process: Some(process),
            ..
        }) = &self.0
        {
            process.inner.pending.blame(*id, whose);
        }
        self
    }

    /// Waits for the answer. When `cancel` is cancelled first, tells the process and goes on waiting.
    ///
    /// # Errors
    /// Those of the answer.
    pub async fn cancelled_by(mut self, cancel: &CancellationToken) -> Result<Answer, ProcessError> {
        tokio::select! {
            biased;
            answer = &mut self => return answer,
            () = cancel.cancelled() => self.cancel(),
        }
        self.await
    }

    /// Tells that the answer will not be used; it still comes.
    pub fn cancel(&self) {
        match &self.0 {
            Kind::One(one) => one.cancel(),
            Kind::Several(several) => several.cancel.cancel(),
        }
    }
}

impl Future for PendingAnswer {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.0 {
            Kind::One(one) => {
                let answer = std::task::ready!(Pin::new(&mut one.answer).poll(context));
                one.process = None;
                Poll::Ready(answer.unwrap_or_else(|_| Err(ProcessError::Gone("it was ended".to_owned()))))
            }
            Kind::Several(several) => several.answer.as_mut().poll(context),
        }
    }
}

impl One {
    fn cancel(&self) {
        if let Some(process) = &self.process {
            process.send(&ToChild::Cancel { id: self.id });
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if let Some(process) = &self.process
            && process.inner.pending.forget(self.id)
        {
            self.cancel();
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(one) => write!(out, "One({})", one.id),
            Self::Several(_) => out.write_str("Several"),
        }
    }
}
