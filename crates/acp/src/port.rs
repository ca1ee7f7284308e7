//! Requests of tools to the client: files and terminals. A tool posts a request and waits for its answer; the loop in `server`
//! sends it. Requests do not pass through the sessions, so a session that waits for its output to be taken does not block them.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tools::client::{
    Asked, Caller, Client, ClientCommand, ClientError, ClientExit, ClientOutput, ClientProcess, Service,
};

use crate::client::{self, Capability};
use crate::limits::MAX_OPEN_REQUESTS;

/// The request that makes a terminal.
pub(crate) const TERMINAL_CREATE: &str = "terminal/create";

/// The answer to a request of a tool.
pub(crate) type Answer = oneshot::Sender<Result<Value, ClientError>>;

/// A request of a tool.
pub(crate) struct Ask {
    /// Unique in the process.
    pub(crate) number: u64,
    pub(crate) caller: Caller,
    pub(crate) method: &'static str,
    /// The parameters without the session.
    pub(crate) params: Value,
    pub(crate) answer: Answer,
}

/// Something that a tool has posted.
pub(crate) enum Posted {
    Ask(Ask),
    /// The terminal with this id is not needed any more; the session that made it may have been closed.
    Release {
        session: String,
        terminal: String,
    },
    /// Nothing waits for the answer to the request with this number any more.
    Withdraw(u64),
}

/// Leads requests of tools to the client. Clones share it.
#[derive(Clone, Default)]
pub struct ClientPort {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    posted: Notify,
}

#[derive(Default)]
struct State {
    services: Vec<Service>,
    /// A call has at most one open request and a release of its terminal, so the running calls bound the queue.
    queue: VecDeque<Posted>,
    last: u64,
    is_closed: bool,
}

impl fmt::Debug for ClientPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientPort").finish_non_exhaustive()
    }
}

impl ClientPort {
    /// Takes the services that the client announces.
    pub(crate) fn announce(&self, client: &client::Client) {
        let known = [
            (Capability::ReadFiles, Service::Read),
            (Capability::WriteFiles, Service::Write),
            (Capability::Terminals, Service::Run),
        ];
        let has = known
            .into_iter()
            .filter(|(capability, _)| client.has(*capability));
        self.lock().services = has.map(|(_, service)| service).collect();
    }

    /// Waits until something was posted. Cancel-safe.
    pub(crate) async fn posted(&self) {
        self.shared.posted.notified().await;
    }

    /// Takes the posted requests, in order.
    pub(crate) fn take(&self) -> VecDeque<Posted> {
        std::mem::take(&mut self.lock().queue)
    }

    /// The client is gone: open and later requests fail.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.queue.clear();
    }

    /// The state stays valid if a holder of the lock panics: every change is one assignment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues what needs no answer.
    fn push(&self, posted: Posted) {
        let mut state = self.lock();
        if !state.is_closed {
            state.queue.push_back(posted);
        }
        drop(state);
        self.shared.posted.notify_one();
    }

    fn post(
        &self,
        caller: &Caller,
        method: &'static str,
        params: Value,
    ) -> (u64, oneshot::Receiver<Result<Value, ClientError>>) {
        let (answer, answered) = oneshot::channel();
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        // Without a place the answer is dropped, which the caller sees as a client that is gone.
        if !state.is_closed && state.queue.len() < MAX_OPEN_REQUESTS {
            state.queue.push_back(Posted::Ask(Ask {
                number,
                caller: caller.clone(),
                method,
                params,
                answer,
            }));
        }
        drop(state);
        self.shared.posted.notify_one();
        (number, answered)
    }

    /// Posts a request and converts its result. Dropping the future withdraws the request.
    fn ask<T: Send + 'static>(
        &self,
        caller: &Caller,
        method: &'static str,
        params: Value,
        read: impl FnOnce(Value) -> Option<T> + Send + 'static,
    ) -> Asked<T> {
        let (number, answered) = self.post(caller, method, params);
        let open = OpenAsk {
            port: self.clone(),
            number: Some(number),
        };
        Box::pin(async move {
            let answer = answered.await;
            open.close();
            let result = answer.unwrap_or(Err(ClientError::Gone))?;
            read(result).ok_or_else(|| ClientError::Refused(format!("The result of {method} is not valid")))
        })
    }
}

/// A request whose answer is awaited.
struct OpenAsk {
    port: ClientPort,
    /// None once the answer is there.
    number: Option<u64>,
}

impl OpenAsk {
    /// The answer is there: nothing has to be withdrawn. Takes `self`, so that the future owns it until then.
    fn close(mut self) {
        self.number = None;
    }
}

impl Drop for OpenAsk {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.port.push(Posted::Withdraw(number));
        }
    }
}

impl Client for ClientPort {
    fn serves(&self, service: Service) -> bool {
        let state = self.lock();
        !state.is_closed && state.services.contains(&service)
    }

    fn read(&self, caller: &Caller, path: &Path) -> Asked<String> {
        self.ask(
            caller,
            "fs/read_text_file",
            json!({"path": path}),
            |mut result| match result.get_mut("content")?.take() {
                Value::String(text) => Some(text),
                _ => None,
            },
        )
    }

    fn write(&self, caller: &Caller, path: &Path, text: &str) -> Asked<()> {
        let params = json!({"path": path, "content": text});
        self.ask(caller, "fs/write_text_file", params, |_| Some(()))
    }

    fn run(&self, caller: &Caller, command: ClientCommand) -> Asked<Box<dyn ClientProcess>> {
        let env = command.env.iter();
        let env: Vec<Value> = env
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let params = json!({
            "command": command.program,
            "args": command.args,
            "env": env,
            "cwd": command.cwd,
            "outputByteLimit": command.output_limit,
        });
        let (port, caller_of) = (self.clone(), caller.clone());
        self.ask(caller, TERMINAL_CREATE, params, move |result| {
            let terminal = Terminal {
                port,
                caller: caller_of,
                id: result.get("terminalId")?.as_str()?.to_owned(),
            };
            Some(Box::new(terminal) as Box<dyn ClientProcess>)
        })
    }
}

/// A terminal of the client.
struct Terminal {
    port: ClientPort,
    caller: Caller,
    id: String,
}

impl Terminal {
    fn params(&self) -> Value {
        json!({"terminalId": self.id})
    }
}

impl ClientProcess for Terminal {
    fn ended(&self) -> Asked<ClientExit> {
        let method = "terminal/wait_for_exit";
        self.port.ask(&self.caller, method, self.params(), |result| {
            let code = result.get("exitCode").and_then(Value::as_i64);
            let signal = result.get("signal").and_then(Value::as_str);
            Some(ClientExit {
                code: code.and_then(|code| i32::try_from(code).ok()),
                signal: signal.map(str::to_owned),
            })
        })
    }

    fn output(&self) -> Asked<ClientOutput> {
        let method = "terminal/output";
        self.port.ask(&self.caller, method, self.params(), |result| {
            Some(ClientOutput {
                text: result.get("output")?.as_str()?.to_owned(),
                truncated: result.get("truncated").and_then(Value::as_bool) == Some(true),
            })
        })
    }

    fn kill(&self) -> Asked<()> {
        self.port
            .ask(&self.caller, "terminal/kill", self.params(), |_| Some(()))
    }
}

impl Drop for Terminal {
    /// A release is never refused for lack of room: there is one for each terminal, and running calls bound their number.
    fn drop(&mut self) {
        self.port.push(Posted::Release {
            session: self.caller.session.clone(),
            terminal: std::mem::take(&mut self.id),
        });
    }
}
