//! A stand-in for the agent in the reaper's tests: with `__guardian` it is a guardian, with `run COMMAND...` it starts the
//! commands through the toolbox and waits until it is killed or its standard input ends, with `cost N COMMAND` and
//! `user COMMAND` it runs commands for measurements.

use std::io::Read as _;
use std::process::ExitCode;

use pinion_tools::{Reaper, ToolContext, ToolRequest, Toolbox, ToolsConfig, UserBash};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("__guardian") => {
            pinion_tools::guardian::main(std::env::args().nth(2).and_then(|level| level.parse().ok()))
        }
        Some("run") => block_on(run(args.collect())),
        Some("user") => block_on(user(args.collect())),
        Some("cost") => block_on(cost(args.collect())),
        _ => ExitCode::FAILURE,
    }
}

fn block_on(work: impl Future<Output = ()>) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            runtime.block_on(work);
            // Dropping the runtime would wait for the thread that reads standard input.
            runtime.shutdown_background();
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn toolbox() -> Toolbox {
    let env = std::env::vars_os().collect();
    let config = ToolsConfig {
        tmp_dir: std::env::temp_dir(),
        env,
        ..ToolsConfig::default()
    };
    Toolbox::new(config, Reaper::new(pinion_tools::GuardianLaunch::default()))
}

fn call(command: &str) -> (ToolRequest, ToolContext) {
    let mut args = serde_json::Map::new();
    args.insert("command".to_owned(), command.into());
    let cwd = std::env::current_dir().unwrap_or_default();
    (
        ToolRequest {
            name: "bash".to_owned(),
            args,
        },
        ToolContext {
            cwd,
            ..ToolContext::default()
        },
    )
}

async fn run(commands: Vec<String>) {
    let toolbox = toolbox();
    for command in commands {
        let toolbox = toolbox.clone();
        tokio::spawn(async move {
            let (request, ctx) = call(&command);
            toolbox.run(request, ctx).await
        });
    }
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = end.await;
}

/// `cost N COMMAND`: runs the command N times, one after the other.
async fn cost(args: Vec<String>) {
    let toolbox = toolbox();
    let [count, command] = args.as_slice() else { return };
    for _ in 0..count.parse().unwrap_or(1) {
        let (request, ctx) = call(command);
        let outcome = toolbox.run(request, ctx).await;
        assert!(!outcome.is_error, "{}", outcome.result.joined_text());
    }
}

/// `user COMMAND`: runs it as the user's, cleaned.
async fn user(args: Vec<String>) {
    let cwd = std::env::current_dir().unwrap_or_default();
    let request = UserBash {
        command: args.join(" "),
        cwd,
        cancel: Default::default(),
        deltas: None,
        env: Vec::new(),
    };
    assert!(toolbox().user_bash(request).await.is_ok());
}
