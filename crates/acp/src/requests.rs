//! Requests to the client that have no answer yet: permissions and dialogs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use session::SessionRequest;
use wire::hosted::Frame;
use wire::ui::{UiMethod, UiRequest};

use crate::accounts::{self, Accounts};
use crate::client::{Capability, Client};
use crate::elicitation::{self, Scope};
use crate::permission;
use crate::purpose::Command;
use crate::rpc::{self, Failure};

/// What the answer to a request is for.
#[derive(Debug)]
pub(crate) enum Question {
    /// A permission dialog, by its id.
    Permission(String),
    /// Another dialog.
    Form(Box<UiRequest>),
    /// A page of a login. The login goes on when the user has visited it. It does not need the answer.
    Page,
}

impl Question {
    fn dialog(&self) -> Option<&str> {
        match self {
            Self::Permission(dialog) => Some(dialog),
            Self::Form(dialog) => Some(&dialog.id),
            Self::Page => None,
        }
    }

    fn frame(&self, result: Option<&Value>) -> Option<Frame> {
        match self {
            Self::Permission(dialog) => permission::answer(dialog, result),
            Self::Form(dialog) => elicitation::answer(dialog, result),
            Self::Page => None,
        }
    }
}

#[derive(Debug)]
struct Open {
    /// Handle of the session that asks. None for the first session of the process.
    handle: Option<Arc<str>>,
    question: Question,
}

/// The open requests to the client. A session bounds its dialogs, so their number is bounded.
pub(crate) struct ClientRequests {
    /// What the client can do.
    pub(crate) client: Client,
    accounts: Arc<dyn Accounts>,
    open: HashMap<u64, Open>,
    last: u64,
}

impl ClientRequests {
    pub(crate) fn new(accounts: Arc<dyn Accounts>) -> Self {
        Self {
            client: Client::default(),
            accounts,
            open: HashMap::new(),
            last: 0,
        }
    }

    /// The member `authMethods`.
    pub(crate) fn auth_methods(&self) -> Value {
        accounts::methods(&*self.accounts, &self.client)
    }

    /// The provider of an authentication method.
    ///
    /// # Errors
    /// When there is no such method, or the client has to run it itself.
    pub(crate) fn provider(&self, method: &str) -> Result<String, Failure> {
        accounts::provider(&*self.accounts, method)
    }

    /// Acts on a dialog. `permission` has the parameters of the request if it is about a tool call.
    pub(crate) fn dialog(
        &mut self,
        handle: Option<&Arc<str>>,
        dialog: &UiRequest,
        scope: Scope<'_>,
        permission: Option<Value>,
        out: &mut VecDeque<Value>,
    ) -> Option<Command> {
        if let Some(params) = permission {
            let question = Question::Permission(dialog.id.clone());
            out.push_back(self.ask(handle, question, "session/request_permission", &params));
            return None;
        }
        let (question, params) = match dialog.method {
            UiMethod::Cancel => {
                out.extend(self.withdraw(dialog.target_id.as_deref()?));
                return None;
            }
            UiMethod::OpenUrl if !self.client.has(Capability::Pages) => {
                // Without a browser the login ends when its time is up.
                let _opened = self.accounts.open_page(dialog.url.as_deref()?);
                return None;
            }
            UiMethod::OpenUrl => (Question::Page, elicitation::page(dialog, scope)?),
            _ if !self.client.has(Capability::Forms) => return cancelled(handle, dialog),
            _ => {
                let params = elicitation::form(dialog, scope)?;
                (Question::Form(Box::new(dialog.clone())), params)
            }
        };
        out.push_back(self.ask(handle, question, "elicitation/create", &params));
        None
    }

    /// Opens a request. Returns the message to send.
    fn ask(&mut self, handle: Option<&Arc<str>>, question: Question, method: &str, params: &Value) -> Value {
        self.last += 1;
        let handle = handle.cloned();
        self.open.insert(self.last, Open { handle, question });
        rpc::request(self.last, method, params)
    }

    /// Ends the request about a dialog that needs no answer any more. Returns the message to send.
    fn withdraw(&mut self, dialog: &str) -> Option<Value> {
        let mut open = self.open.iter();
        let (&number, _) = open.find(|(_, open)| open.question.dialog() == Some(dialog))?;
        self.open.remove(&number);
        Some(rpc::cancel(number))
    }

    /// Takes the client's answer. `result` is none if the client could not do it. Returns the answer to the dialog.
    pub(crate) fn answer(&mut self, id: &Value, result: Option<&Value>) -> Option<Command> {
        let Open { handle, question } = self.open.remove(&id.as_u64()?)?;
        let frame = question.frame(result)?;
        Some((
            SessionRequest::Frame(frame),
            handle.map(|handle| (*handle).into()),
        ))
    }

    /// A session has ended: nothing waits for its dialogs.
    pub(crate) fn forget(&mut self, handle: &Arc<str>) {
        self.open.retain(|_, open| open.handle.as_ref() != Some(handle));
    }
}

/// The client cannot show the dialog: it returns its default at once.
pub(crate) fn cancelled(handle: Option<&Arc<str>>, dialog: &UiRequest) -> Option<Command> {
    use UiMethod::{Confirm, Editor, Input, Select};
    if !matches!(dialog.method, Select | Confirm | Input | Editor) {
        return None;
    }
    let frame: Frame = permission::cancelled(&dialog.id)?;
    Some((
        SessionRequest::Frame(frame),
        handle.map(|handle| (**handle).into()),
    ))
}
