//! An answer that is awaited: of one process, or of several that are asked one after the other.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::DoorError;
use crate::line::ToChild;

use super::{Answer, Door};

type Outcome = Result<Answer, DoorError>;

/// A pending answer. Dropping it cancels the request in the process.
#[derive(Debug)]
pub struct Asking(Kind);

enum Kind {
    One(One),
    Several(Several),
}

struct One {
    id: u64,
    answer: oneshot::Receiver<Outcome>,
    /// Taken when there is nothing to withdraw any more.
    door: Option<Door>,
}

struct Several {
    answer: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    cancel: CancellationToken,
}

impl Asking {
    pub(super) fn one(id: u64, answer: oneshot::Receiver<Outcome>, door: Door) -> Self {
        let door = Some(door);
        Self(Kind::One(One { id, answer, door }))
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
            id, door: Some(door), ..
        }) = &self.0
        {
            door.inner.pending.blame(*id, whose);
        }
        self
    }

    /// Tells that the answer will not be used; it still comes.
    pub fn cancel(&self) {
        match &self.0 {
            Kind::One(one) => one.cancel(),
            Kind::Several(several) => several.cancel.cancel(),
        }
    }
}

impl Future for Asking {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.0 {
            Kind::One(one) => {
                let answer = std::task::ready!(Pin::new(&mut one.answer).poll(context));
                one.door = None;
                Poll::Ready(answer.unwrap_or_else(|_| Err(DoorError::Gone("it was ended".to_owned()))))
            }
            Kind::Several(several) => several.answer.as_mut().poll(context),
        }
    }
}

impl One {
    fn cancel(&self) {
        if let Some(door) = &self.door {
            door.send(&ToChild::Cancel { id: self.id });
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if let Some(door) = &self.door
            && door.inner.pending.forget(self.id)
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
