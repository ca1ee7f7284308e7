//! The two ways of a login that a client asks for: by the extension of the provider, or by the agent itself. Pages and questions
//! go to the client as extension UI; tokens never do.

use auth::login::{Login, Step, Way};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::extensions::ExtensionProvider;

use super::super::access::credentials;
use super::super::dialogs::{Dialog, Show, Ui};

/// Has an extension log in. Returns the credentials, which the agent stores.
pub(super) async fn log_in_by_extension(
    delegate: &ExtensionProvider,
    provider: &str,
) -> Result<auth::login::Credentials, String> {
    let params = json!({"provider": provider});
    let login = credentials(delegate, "provider.oauth.login", &params);
    let longest = auth::login::limits::LOGIN;
    let late = || format!("The login took longer than {} s", longest.as_secs());
    // Bounded as the logins of the agent are: the client waits for the response.
    tokio::time::timeout(longest, login)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// Logs in by the agent's own means. Pages and questions go to the client.
pub(super) async fn log_in_by_agent(
    login: &Login,
    way: Way,
    provider: &str,
    models: &[String],
    ui: &Ui,
) -> Result<(), String> {
    // A login has a few steps at most.
    let (sender, mut steps) = mpsc::unbounded_channel::<Show>();
    let (lines, pasted) = mpsc::channel(1);
    let tell = move |step: Step<'_>| {
        let _gone = sender.send(show(step));
    };
    let cancel = CancellationToken::new();
    let dialog = async {
        let mut has_page = false;
        while let Some(show) = steps.recv().await {
            has_page |= matches!(show, Show::OpenUrl { .. });
            ui.show(show).await;
            // A login with a device code has no address to paste (providers.md 9). A note after the page refuses the pasted address,
            // so the question comes again.
            if has_page && way == Way::Browser {
                let title = "Paste the address that the browser ended at, if it does not find its way back"
                    .to_owned();
                let question = Dialog::Input {
                    title,
                    // 0: without a timeout. The login has one of its own.
                    placeholder: None,
                    timeout: Some(0),
                };
                // No answer is no failure: the browser may find its way back by itself.
                if let Some(line) = ui.ask(question, &cancel).await.value() {
                    let _ended = lines.send(line).await;
                }
            }
        }
        // The steps have ended, the login has not: only `run` may end it.
        std::future::pending::<()>().await;
    };
    let run = login.run(provider, None, models, &tell, Some(pasted), &cancel);
    tokio::select! {
        done = run => done.map_err(|error| error.to_string()),
        () = dialog => Ok(()),
    }
}

fn show(step: Step<'_>) -> Show {
    match step {
        Step::Visit(url) => Show::OpenUrl {
            url: url.to_owned(),
            launch_url: None,
            instructions: None,
        },
        Step::Enter { address, code } => Show::OpenUrl {
            url: address.to_owned(),
            launch_url: None,
            instructions: Some(format!("Enter the code {code}")),
        },
        Step::Note(note) => Show::Notify {
            message: note.to_owned(),
            kind: None,
        },
    }
}
