//! The browser flow: a page to agree on, a code that comes back to a local port or is pasted, and tokens for it.

use tokio::sync::mpsc::Receiver;

use super::LoginError;
use super::callback::{Callback, Outcome, pasted};
use super::codex;
use super::endpoints::Endpoints;
use super::pkce::{Proof, random};
use super::step::{Step, Tell};
use super::token_server::Http;
use super::tokens::Tokens;

/// Waits for the user's consent in a browser, and returns tokens. `lines` brings pasted lines.
pub(super) async fn run(
    http: &Http,
    endpoints: &Endpoints,
    tell: Tell<'_>,
    mut lines: Option<Receiver<String>>,
) -> Result<Tokens, LoginError> {
    let (proof, state) = (Proof::new()?, random::<16>()?);
    let bound = Callback::bind(&endpoints.callback_host, endpoints.callback_port).await;
    let port = bound.as_ref().map_or(endpoints.callback_port, Callback::port);
    let redirect = format!("http://localhost:{port}{}", codex::CALLBACK_PATH);
    let callback = match bound {
        Ok(callback) => Some(callback),
        Err(error) => {
            let address = format!("{}:{port}", endpoints.callback_host);
            let reason = error.to_string();
            if lines.is_none() {
                return Err(LoginError::Callback { address, reason });
            }
            tell(Step::Note(&format!(
                "Cannot listen on {address} ({reason}); paste the address the browser ends at."
            )));
            None
        }
    };
    tell(Step::Visit(&codex::page(endpoints, &redirect, &proof, &state)));
    let code = code(callback.as_ref(), lines.as_mut(), &state, tell).await?;
    codex::exchange(http, endpoints, &redirect, &proof, &code).await
}

/// The code, from whichever side it comes.
async fn code(
    callback: Option<&Callback>,
    mut lines: Option<&mut Receiver<String>>,
    state: &str,
    tell: Tell<'_>,
) -> Outcome {
    let visited = async {
        match callback {
            Some(callback) => callback.wait(codex::CALLBACK_PATH, state).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(visited);
    loop {
        let line = async {
            match lines.as_deref_mut() {
                Some(lines) => lines.recv().await,
                None => std::future::pending().await,
            }
        };
        let line = tokio::select! {
            outcome = &mut visited => return outcome,
            line = line => line,
        };
        match line {
            Some(line) if line.trim().is_empty() => {}
            Some(line) => match pasted(&line, state) {
                Err(LoginError::Paste) => tell(Step::Note(&LoginError::Paste.to_string())),
                outcome => return outcome,
            },
            None if callback.is_none() => return Err(LoginError::Cancelled),
            // Stdin is closed: only the callback can bring the code now.
            None => lines = None,
        }
    }
}
