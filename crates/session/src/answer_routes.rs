//! Which session of a connection waits for an answer of the client. The ids of questions are unique among all sessions, so an
//! answer needs no other address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session by its handle; `None` is the first session.
type Handle = Option<Arc<str>>;

/// The open questions of the sessions of a connection, seen from one of them. Clones share the questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerRoutes {
    session: Handle,
    open: Arc<Mutex<HashMap<String, Handle>>>,
}

/// An open question. Dropping it closes the question.
#[derive(Debug)]
pub(crate) struct AnswerRoute {
    id: String,
    routes: AnswerRoutes,
}

impl AnswerRoutes {
    /// The same questions, seen from another session.
    pub(crate) fn of_session(&self, handle: &Arc<str>) -> Self {
        Self {
            session: Some(Arc::clone(handle)),
            open: Arc::clone(&self.open),
        }
    }

    /// Returns true if the session is not the first one of its connection.
    pub(crate) fn is_of_another(&self) -> bool {
        self.session.is_some()
    }

    /// This session asks a question.
    pub(crate) fn open(&self, id: &str) -> AnswerRoute {
        self.lock().insert(id.to_owned(), self.session.clone());
        AnswerRoute {
            id: id.to_owned(),
            routes: self.clone(),
        }
    }

    /// The session that waits for an answer; `None` if no question of this id is open.
    pub(crate) fn find(&self, id: &str) -> Option<Handle> {
        self.lock().get(id).cloned()
    }

    /// The map stays valid if a holder of the lock panics: every change is one call.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Handle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnswerRoute {
    fn drop(&mut self) {
        // Ids are never used twice, so this cannot close the question of another session.
        self.routes.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_finds_session_until_question_closes() {
        let first = AnswerRoutes::default();
        let handle: Arc<str> = "s1".into();
        let other = first.of_session(&handle);
        let (a, b) = (first.open("a"), other.open("b"));
        assert_eq!(first.find("a"), Some(None));
        assert_eq!(first.find("b"), Some(Some(handle)));
        assert_eq!(other.find("c"), None);
        drop(b);
        assert_eq!(first.find("b"), None);
        drop(a);
        assert!(first.lock().is_empty());
    }
}
