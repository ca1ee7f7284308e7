//! The browser flow: a page to agree on, and a code that comes back to a local port or is pasted. What the pages and the
//! token endpoints of a provider want is in the provider's module.

use tokio::sync::mpsc::Receiver;

use super::LoginError;
use super::callback::{Callback, code_in, parameter};
use super::endpoints::Endpoints;
use super::pkce::{Proof, random};
use super::step::{Step, Tell};

/// The local address to which a provider sends the browser.
pub(super) struct Redirect {
    /// The name of this machine that the provider accepts.
    pub(super) host: String,
    /// The port that the provider accepts; 0 takes any.
    pub(super) port: u16,
    /// The path. If the provider returns no state, the path must be a secret.
    pub(super) path: String,
    /// The provider returns the state of the login.
    pub(super) has_state: bool,
    /// The provider names the client that it has registered for this login.
    pub(super) names_client: bool,
}

/// A login that waits for the user's consent.
pub(super) struct Waiting {
    /// The proof key.
    pub(super) proof: Proof,
    /// What the provider returns with the code; `None` if it returns only the code.
    pub(super) state: Option<String>,
    /// The address to which the provider sends the browser.
    pub(super) redirect: String,
    callback: Option<Callback>,
    target: Redirect,
}

/// A login that the user agreed to.
pub(super) struct Consent {
    /// The proof key.
    pub(super) proof: Proof,
    /// The address to which the provider sent the browser.
    pub(super) redirect: String,
    /// The code that buys tokens.
    pub(super) code: String,
    /// The client that the provider has registered, if it names one.
    pub(super) client: Option<String>,
}

impl Waiting {
    /// Listens for the browser. If the port is taken, the address can only be pasted.
    pub(super) async fn begin(
        endpoints: &Endpoints,
        target: Redirect,
        tell: Tell<'_>,
        can_paste: bool,
    ) -> Result<Self, LoginError> {
        let proof = Proof::new()?;
        let state = target.has_state.then(random::<16>).transpose()?;
        let bound = Callback::bind(&endpoints.callback_host, target.port).await;
        let port = bound.as_ref().map_or(target.port, Callback::port);
        let redirect = format!("http://{}:{port}{}", target.host, target.path);
        let callback = match bound {
            Ok(callback) => Some(callback),
            Err(error) => {
                let address = format!("{}:{port}", endpoints.callback_host);
                let reason = error.to_string();
                if !can_paste {
                    return Err(LoginError::Callback { address, reason });
                }
                tell(Step::Note(&format!(
                    "Cannot listen on {address} ({reason}); paste the address the browser ends at."
                )));
                None
            }
        };
        Ok(Self {
            proof,
            state,
            redirect,
            callback,
            target,
        })
    }

    /// Waits for the user's consent on a page. `lines` brings pasted lines.
    pub(super) async fn consent(
        self,
        page: &str,
        tell: Tell<'_>,
        mut lines: Option<Receiver<String>>,
    ) -> Result<Consent, LoginError> {
        tell(Step::Visit(page));
        let (code, client) = self.code(tell, lines.as_mut()).await?;
        Ok(Consent {
            proof: self.proof,
            redirect: self.redirect,
            code,
            client,
        })
    }

    /// The code, from whichever side it comes, and the client that was registered for it.
    async fn code(
        &self,
        tell: Tell<'_>,
        mut lines: Option<&mut Receiver<String>>,
    ) -> Result<(String, Option<String>), LoginError> {
        let visited = async {
            match &self.callback {
                Some(callback) => callback.wait(&self.target.path, self.state.as_deref()).await,
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
                target = &mut visited => return self.read(&format!("http://localhost{}", target?)),
                line = line => line,
            };
            match line {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => match self.read(&line) {
                    Err(LoginError::Paste) => tell(Step::Note(&LoginError::Paste.to_string())),
                    outcome => return outcome,
                },
                None if self.callback.is_none() => return Err(LoginError::Cancelled),
                // Stdin is closed: only the callback can bring the code now.
                None => lines = None,
            }
        }
    }

    /// Code and client in an address or a pasted line.
    fn read(&self, text: &str) -> Result<(String, Option<String>), LoginError> {
        let code = code_in(text, self.state.as_deref())?;
        if !self.target.names_client {
            return Ok((code, None));
        }
        let client = parameter(text, "client_id").ok_or(LoginError::Paste)?;
        Ok((code, Some(client)))
    }
}
