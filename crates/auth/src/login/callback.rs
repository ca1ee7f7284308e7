//! The local page that a browser is sent to after a login. It takes one thing, the code of the login that waits, and shows
//! the same few words to everybody else.

use std::io;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::LoginError;
use super::limits::{CALLBACK_CONNECTIONS, CALLBACK_READ, MAX_CALLBACK, MAX_REASON};
use crate::text::cut;

/// What came of a login.
type Outcome = Result<String, LoginError>;

/// A bound port.
#[derive(Debug)]
pub struct Callback(TcpListener);

impl Callback {
    /// Binds a port; 0 takes a free one.
    ///
    /// # Errors
    /// When it is taken.
    pub async fn bind(host: &str, port: u16) -> io::Result<Self> {
        TcpListener::bind((host, port)).await.map(Self)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.local_addr().map_or(0, |address| address.port())
    }

    /// Waits for the code of the login with this state, and returns path and query of the browser's request. Browsers open
    /// connections they do not use and ask for icons, and other pages may call us: none of that ends the wait.
    ///
    /// # Errors
    /// When the provider sends an error in place of a code.
    pub async fn wait_target(&self, path: &str, state: &str) -> Result<String, LoginError> {
        self.wait(path, Some(state)).await
    }

    /// Waits for the code of a login, and returns path and query of the browser's request. Without a state, the path must be a
    /// secret.
    pub(super) async fn wait(&self, path: &str, state: Option<&str>) -> Outcome {
        let (target, outcome) = self.visited(path, state).await;
        outcome.map(|_| target)
    }

    async fn visited(&self, path: &str, state: Option<&str>) -> (String, Outcome) {
        let mut visits: JoinSet<Option<(String, Outcome)>> = JoinSet::new();
        loop {
            let may_accept = visits.len() < CALLBACK_CONNECTIONS;
            tokio::select! {
                Ok((stream, _)) = self.0.accept(), if may_accept => {
                    let (path, state) = (path.to_owned(), state.map(str::to_owned));
                    visits.spawn(async move {
                        timeout(CALLBACK_READ, visit(stream, &path, state.as_deref())).await.ok()?
                    });
                }
                Some(done) = visits.join_next() => {
                    if let Ok(Some(outcome)) = done {
                        return outcome;
                    }
                }
                // Accepting failed, for example because there are no descriptors left.
                else => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    }
}

/// Serves one connection.
async fn visit(mut stream: TcpStream, path: &str, state: Option<&str>) -> Option<(String, Outcome)> {
    let target = read_target(&mut stream).await?;
    let outcome = judge(&target, path, state);
    let (status, words) = match &outcome {
        Some(Ok(_)) => ("200 OK", "You are logged in. This page can be closed."),
        Some(Err(_)) => ("200 OK", "The login failed. This page can be closed."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let body = format!("<!doctype html><meta charset=utf-8><title>Pinion</title><p>{words}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _gone = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _gone = stream.shutdown().await;
    outcome.map(|outcome| (target, outcome))
}

/// Path and query of a GET.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        head.extend(piece.iter().take(count));
        if head.len() > MAX_CALLBACK {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&head);
    let mut words = text.lines().next()?.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

/// What a visit says about the login with this state, or with none; nothing for everything else.
fn judge(target: &str, path: &str, state: Option<&str>) -> Option<Outcome> {
    let url = Url::parse(&format!("http://localhost{target}")).ok()?;
    let found = |name: &str| {
        let pair = url.query_pairs().find(|(known, _)| known == name);
        pair.map(|(_, value)| value.into_owned())
            .filter(|value| !value.is_empty())
    };
    let is_ours = state.is_none() || found("state").as_deref() == state;
    if url.path() != path || !is_ours {
        return None;
    }
    match found("code") {
        Some(code) => Some(Ok(code)),
        None => found("error").map(|error| Err(refusal(&error, found("error_description").as_deref()))),
    }
}

/// Why the provider sent an error in place of a code. Only "no" of the user is a denial.
fn refusal(error: &str, description: Option<&str>) -> LoginError {
    if error == "access_denied" {
        return LoginError::Denied;
    }
    let words = description.unwrap_or(error);
    let words: String = words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    LoginError::System(format!(
        "The provider ended the login: {}",
        cut(words.trim(), MAX_REASON)
    ))
}

/// The code in what a person pasted: the address the browser ended at, `code#state`, a query, or the code alone. A state
/// that is named must be this login's.
///
/// # Errors
/// When there is no code in it, or an error in place of one.
pub fn pasted(text: &str, state: &str) -> Result<String, LoginError> {
    code_in(text, Some(state))
}

/// The code in what a person pasted for a login with this state, or with none.
pub(super) fn code_in(text: &str, state: Option<&str>) -> Outcome {
    let text = text.trim();
    let pairs = match Url::parse(text) {
        Ok(url) if url.has_host() => url.query().unwrap_or_default().to_owned(),
        _ if text.contains("code=") => text.trim_start_matches('?').to_owned(),
        _ => {
            let (code, named) = text
                .split_once('#')
                .map_or((text, state), |(code, named)| (code, Some(named)));
            let is_code = !code.is_empty() && code.chars().all(|c| c.is_ascii_graphic());
            return if is_code && named == state {
                Ok(code.to_owned())
            } else {
                Err(LoginError::Paste)
            };
        }
    };
    let target = format!("/?{pairs}");
    // What names no state counts as this login's: PKCE makes a code of another login useless.
    let target = match state {
        Some(state) if !pairs.contains("state=") => format!("{target}&state={state}"),
        _ => target,
    };
    judge(&target, "/", state).unwrap_or(Err(LoginError::Paste))
}

/// A parameter in the query of an address.
pub(super) fn parameter(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.trim().split_once('?')?;
    let url = Url::parse(&format!("http://localhost/?{query}")).ok()?;
    let (_, value) = url.query_pairs().find(|(known, _)| known == name)?;
    let value = value.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_login_code_is_read_in_every_form() {
        let ok = Ok("c0de".to_owned());
        for text in [
            "http://localhost:1455/auth/callback?code=c0de&state=st",
            " http://localhost:1455/auth/callback?state=st&code=c0de&scope=a ",
            "c0de#st",
            "c0de",
            "code=c0de&state=st",
            "?code=c0de",
        ] {
            assert_eq!(pasted(text, "st"), ok, "{text}");
        }
        for text in [
            "",
            "c0de#other",
            "code=c0de&state=other",
            "http://localhost/x?code=c0de&state=",
            "two words",
        ] {
            assert_eq!(pasted(text, "st"), Err(LoginError::Paste), "{text}");
        }
        let denied = "http://localhost:1455/auth/callback?error=access_denied&state=st";
        assert_eq!(pasted(denied, "st"), Err(LoginError::Denied));
        for (query, words) in [
            ("error=invalid_scope", "invalid_scope"),
            ("error=server_error&error_description=try%0Alater", "try later"),
        ] {
            let address = format!("http://localhost:1455/auth/callback?{query}&state=st");
            let error = LoginError::System(format!("The provider ended the login: {words}"));
            assert_eq!(pasted(&address, "st"), Err(error));
        }
    }

    /// OpenRouter returns no state.
    #[test]
    fn pasted_address_needs_no_state_without_one() {
        for text in [
            "http://127.0.0.1:4000/oauth/callback/x?code=c0de",
            "code=c0de",
            "c0de",
        ] {
            assert_eq!(code_in(text, None), Ok("c0de".to_owned()), "{text}");
        }
        // An empty state is a state that nothing has.
        assert_eq!(pasted("http://x/?code=c0de", ""), Err(LoginError::Paste));
    }

    #[test]
    fn parameter_of_address_is_decoded() {
        let address = " http://127.0.0.1:1455/auth/callback?code=c&client_id=app%5F1&state=s#end ";
        assert_eq!(parameter(address, "client_id").as_deref(), Some("app_1"));
        assert_eq!(parameter(address, "other"), None);
        assert_eq!(parameter("code", "client_id"), None);
    }
}
