//! Tenants with a NATS account each, separated by the server itself.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::helpers::{always, answer};

const ACCOUNTS: &str = "
accounts {
    A { jetstream: enabled, users: [{user: a, password: first}] }
    B { jetstream: enabled, users: [{user: b, password: second}] }
}
";

#[test]
fn tenant_reaches_nothing_of_another() -> Result<()> {
    let Some(mut place) = crate::place()? else {
        return Ok(());
    };
    place.configure(ACCOUNTS)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut overheard = runtime.block_on(async {
        let user = async_nats::ConnectOptions::with_user_and_password("b".into(), "second".into());
        let client = user
            .connect(format!("127.0.0.1:{}", place.servers[0].port))
            .await?;
        let everything = client.subscribe(">").await?;
        client.flush().await?;
        Ok::<_, anyhow::Error>(everything)
    })?;

    place.user = "a:first@";
    let _worker = place.worker("a", &always("secret"), &[])?;
    let mut client = place.attach("plan")?;
    client.ask(json!({"id": 1, "type": "prompt", "message": "Go"}))?;
    client.until("agent_settled")?;
    ensure!(place.log("plan")?.len() > 2);

    place.user = "b:second@";
    let heard =
        runtime.block_on(async { tokio::time::timeout(Duration::from_millis(500), overheard.next()).await });
    ensure!(heard.is_err(), "{heard:?}");
    ensure!(place.log("plan").is_err());
    // The same prefix and the same name are another session here.
    let _other = place.worker("b", &always("mine"), &[])?;
    let mut other = place.attach("plan")?;
    let messages = other.ask(json!({"id": 1, "type": "get_messages"}))?;
    ensure!(messages["data"]["messages"] == json!([]), "{messages}");
    other.ask(json!({"id": 2, "type": "prompt", "message": "Go"}))?;
    ensure!(answer(&mut other)?["message"]["content"][0]["text"] == "mine");

    place.user = "b:first@";
    ensure!(place.log("plan").is_err());
    Ok(())
}
