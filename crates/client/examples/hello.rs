//! The example of the README.
#![expect(clippy::print_stdout, reason = "an example prints")]

use pinion_client::{Client, Options, Script};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::var_os("PINION_PROGRAM").unwrap_or("pinion".into());
    // Without a script, name a model: Options::new(program).model("anthropic/claude-sonnet-4-5").
    let script = Script::new()
        .tool_call("bash", &serde_json::json!({"command": "ls"}))
        .reply("No files here.");
    let client = Client::start(Options::new(program).script(script)).await?;
    let mut run = client.run("Which files are here?").await?;
    while let Some(text) = run.next_text().await? {
        print!("{text}");
    }
    println!("\n{:?}", run.finish().await?.stop_reason);
    client.close().await;
    Ok(())
}
