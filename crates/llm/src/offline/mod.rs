//! The built-in provider without network: `echo` says that it is no AI and exercises the whole path, `script` plays replies
//! from a file. Here: choosing and playing. `echo` and `script` make the replies.

mod echo;
mod play;
mod script;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(crate) use play::Playing;

use crate::error::LlmError;
use crate::request::ModelRequest;
use script::Script;

/// Checks the text of a file with replies.
///
/// # Errors
/// The first error in the text.
pub fn check_script(text: &str) -> Result<(), String> {
    Script::parse(text).map(|_| ())
}

/// The API name of the offline models.
pub(crate) const API: &str = "offline";

/// The model id that plays a script.
const SCRIPT: &str = "script";

/// The offline provider. The script is read when it is first asked, and its replies are used up in order.
#[derive(Debug)]
pub(crate) struct Offline {
    path: Option<PathBuf>,
    word_delay: Duration,
    script: Mutex<Option<Script>>,
}

impl Offline {
    pub(crate) fn new(path: Option<PathBuf>, word_delay: Duration) -> Self {
        Self {
            path,
            word_delay,
            script: Mutex::new(None),
        }
    }

    /// The answer to a request, ready to be played.
    pub(crate) fn play(&self, request: &ModelRequest) -> Result<Playing, LlmError> {
        if request.model.id != SCRIPT {
            return Ok(Playing::new(request, echo::answer(request, self.word_delay)));
        }
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let script = match script.as_mut() {
            Some(script) => script,
            None => script.insert(Script::load(self.path.as_deref())?),
        };
        Ok(Playing::new(request, script.next(request)))
    }
}
