//! Requests to the client that have no answer yet: permissions, dialogs, files and terminals.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use session::SessionRequest;
use tools::client::{Caller, ClientError};
use wire::hosted::Frame;
use wire::ui::{UiMethod, UiRequest};

use crate::accounts::{self, Accounts};
use crate::client::{Capability, Client};
use crate::elicitation::{self, Scope};
use crate::host::Host;
use crate::limits::MAX_OPEN_REQUESTS;
use crate::output::Output;
use crate::permission;
use crate::port::{Answer, ClientPort, Posted, TERMINAL_CREATE};
use crate::purpose::Command;
use crate::rpc::{self, AUTH_REQUIRED, Failure, INTERNAL};
use crate::state::SessionState;

/// What the answer to a request is for.
pub(crate) enum Question {
    /// A permission dialog, by its id.
    Permission(String),
    /// Another dialog.
    Form(Box<UiRequest>),
    /// A page of a login or of an extension. Neither needs the answer.
    Page,
    /// A request of a tool.
    Tool(ToolQuestion),
}

/// A request of a tool that the client got.
pub(crate) struct ToolQuestion {
    /// The number at the port.
    number: u64,
    caller: Caller,
    /// True if the client makes a terminal, which has to be released.
    makes_terminal: bool,
    answer: Answer,
}

impl Question {
    fn dialog(&self) -> Option<&str> {
        match self {
            Self::Permission(dialog) => Some(dialog),
            Self::Form(dialog) => Some(&dialog.id),
            Self::Page | Self::Tool(_) => None,
        }
    }

    fn frame(&self, result: Option<&Value>) -> Option<Frame> {
        match self {
            Self::Permission(dialog) => permission::answer(dialog, result),
            Self::Form(dialog) => elicitation::answer(dialog, result),
            Self::Page | Self::Tool(_) => None,
        }
    }
}

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
    port: ClientPort,
    /// Sessions have other clients, which may answer dialogs that this one cannot show.
    is_gateway: bool,
    open: HashMap<u64, Open>,
    last: u64,
}

impl ClientRequests {
    pub(crate) fn new(host: &Host) -> Self {
        Self {
            client: Client::default(),
            accounts: Arc::clone(&host.accounts),
            port: host.port.clone(),
            is_gateway: host.is_gateway,
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

    /// The failure of a prompt. With the code for missing credentials, clients offer the login.
    pub(crate) fn prompt_failure(&self, error: &str) -> Failure {
        let code = if self.accounts.needs_login(error) {
            AUTH_REQUIRED
        } else {
            INTERNAL
        };
        Failure::new(code, error)
    }

    /// Ends the requests about pages of a login that has ended. Logins ask through the first session. Extensions of the other sessions
    /// also show pages.
    pub(crate) fn withdraw_pages(&mut self) -> Vec<Value> {
        let is_page =
            |_: &u64, open: &mut Open| open.handle.is_none() && matches!(open.question, Question::Page);
        let pages = self.open.extract_if(is_page);
        pages.map(|(number, _)| rpc::cancel(number)).collect()
    }

    /// Acts on a dialog. `permission` has the parameters of the request if it is about a tool call.
    pub(crate) fn dialog(
        &mut self,
        handle: Option<&Arc<str>>,
        dialog: &UiRequest,
        scope: Scope<'_>,
        permission: Option<Value>,
        out: &mut Output,
    ) -> Option<Command> {
        if let Some(params) = permission {
            let question = Question::Permission(dialog.id.clone());
            out.push(self.ask(handle, question, "session/request_permission", &params));
            return None;
        }
        let (question, params) = match dialog.method {
            UiMethod::Cancel => {
                out.extend(self.withdraw(dialog.target_id.as_deref()?));
                return None;
            }
            UiMethod::OpenUrl if self.is_gateway => return None,
            UiMethod::OpenUrl if !self.client.has(Capability::Pages) => {
                // Without a browser the login ends when its time is up.
                let _opened = self.accounts.open_page(dialog.url.as_deref()?);
                return None;
            }
            UiMethod::OpenUrl => (Question::Page, elicitation::page(dialog, scope)?),
            _ if !self.client.has(Capability::Forms) && self.is_gateway => return None,
            _ if !self.client.has(Capability::Forms) => return cancelled(handle, dialog),
            _ => {
                let params = elicitation::form(dialog, scope)?;
                (Question::Form(Box::new(dialog.clone())), params)
            }
        };
        out.push(self.ask(handle, question, "elicitation/create", &params));
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
    pub(crate) fn withdraw(&mut self, dialog: &str) -> Option<Value> {
        let mut open = self.open.iter();
        let (&number, _) = open.find(|(_, open)| open.question.dialog() == Some(dialog))?;
        self.open.remove(&number);
        Some(rpc::cancel(number))
    }

    /// Takes what the client can do from the parameters of `initialize`.
    pub(crate) fn read_client(&mut self, params: &Map<String, Value>) {
        self.client = Client::read(params);
        self.port.announce(&self.client);
    }

    /// Sends what a tool has posted. Without a session of the client the answer is dropped, which the tool sees as a client that
    /// is gone.
    pub(crate) fn post(
        &mut self,
        posted: Posted,
        sessions: &HashMap<String, SessionState>,
        out: &mut Output,
    ) {
        match posted {
            Posted::Ask(ask) => {
                let state = sessions.get(&ask.caller.session);
                let Some(state) = state.filter(|_| self.open.len() < MAX_OPEN_REQUESTS) else {
                    return;
                };
                let mut params = ask.params;
                if let Some(params) = params.as_object_mut() {
                    params.insert("sessionId".to_owned(), ask.caller.session.as_str().into());
                }
                let question = Question::Tool(ToolQuestion {
                    number: ask.number,
                    caller: ask.caller,
                    makes_terminal: ask.method == TERMINAL_CREATE,
                    answer: ask.answer,
                });
                out.push(self.ask(Some(&state.handle), question, ask.method, &params));
            }
            Posted::Release { session, terminal } => out.push(self.release(&session, &terminal)),
            Posted::Withdraw(withdrawn) => {
                let mut open = self.open.iter();
                let found = open.find_map(|(number, open)| match &open.question {
                    Question::Tool(tool) if tool.number == withdrawn => Some((*number, tool.makes_terminal)),
                    _ => None,
                });
                if let Some((number, makes_terminal)) = found {
                    // The client may have made the terminal already. It is released when its id is known.
                    if !makes_terminal {
                        self.open.remove(&number);
                    }
                    out.push(rpc::cancel(number));
                }
            }
        }
    }

    /// Takes the client's answer. Returns the answer to a dialog.
    pub(crate) fn answer(
        &mut self,
        id: &Value,
        result: Result<Value, String>,
        sessions: &mut HashMap<String, SessionState>,
        out: &mut Output,
    ) -> Option<Command> {
        let Open { handle, question } = self.open.remove(&id.as_u64()?)?;
        let question = match question {
            Question::Tool(tool) => {
                let terminal = result.as_ref().ok().filter(|_| tool.makes_terminal);
                let terminal = terminal.and_then(|result| result.get("terminalId")?.as_str());
                let terminal = terminal.map(str::to_owned);
                let is_taken = tool.answer.send(result.map_err(ClientError::Refused)).is_ok();
                if let Some(terminal) = terminal.as_deref().filter(|_| is_taken) {
                    let state = sessions.get_mut(&tool.caller.session);
                    let update = state.and_then(|state| state.embed(&tool.caller.call, terminal));
                    out.extend(update.map(|update| rpc::update(&tool.caller.session, &update)));
                } else if let Some(terminal) = terminal {
                    // The tool has given up.
                    out.push(self.release(&tool.caller.session, &terminal));
                }
                return None;
            }
            question => question,
        };
        let frame = question.frame(result.ok().as_ref())?;
        Some((
            SessionRequest::Frame(frame),
            handle.map(|handle| (*handle).into()),
        ))
    }

    /// The request that releases a terminal. Nothing waits for its answer.
    fn release(&mut self, session: &str, terminal: &str) -> Value {
        self.last += 1;
        let params = json!({"sessionId": session, "terminalId": terminal});
        rpc::request(self.last, "terminal/release", &params)
    }

    /// A session has ended: nothing waits for its dialogs. A terminal that the client still makes is released when its id is known.
    pub(crate) fn forget(&mut self, handle: &Arc<str>) {
        self.open.retain(|_, open| match &open.question {
            Question::Tool(tool) if tool.makes_terminal => true,
            _ => open.handle.as_ref() != Some(handle),
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::connection;

    #[test]
    fn withdrawn_pages_are_those_of_logins() {
        let mut connection = connection();
        let requests = &mut connection.requests;
        let params = json!({"clientCapabilities": {"elicitation": {"url": {}}}});
        requests.read_client(params.as_object().unwrap());
        let mut page = UiRequest::new("d1".to_owned(), UiMethod::OpenUrl);
        page.url = Some("https://x.test/".to_owned());
        let (session, login) = (Arc::<str>::from("s1"), json!("a1"));
        for (handle, scope) in [
            (Some(&session), Scope::Session("a")),
            (None, Scope::Request(&login)),
        ] {
            let answer = requests.dialog(handle, &page, scope, None, &mut connection.out);
            assert!(answer.is_none());
        }
        // The page of the extension was the first request.
        assert_eq!(requests.withdraw_pages(), [rpc::cancel(2)]);
    }
}
