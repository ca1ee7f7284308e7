//! A simulated extension process, connected by pipes in memory.

use std::time::Duration;

use extensions::{ExtensionProcess, Greeting};
use process::{Boxed, ChildProcess, Pipes};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// The side of the process.
pub(super) struct Simulated {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    _errors: DuplexStream,
}

struct Running;

impl ChildProcess for Running {
    fn ended(&mut self) -> Boxed<'_, String> {
        Box::pin(std::future::pending())
    }

    fn kill(&mut self) -> Boxed<'_, ()> {
        Box::pin(async {})
    }
}

impl Simulated {
    /// A process that is ready.
    pub(super) async fn start() -> (ExtensionProcess, Self) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (errors, their_errors) = tokio::io::duplex(64);
        let (output, input) = tokio::io::split(ours);
        let (read, write) = tokio::io::split(theirs);
        let mut simulated = Self {
            lines: BufReader::new(read).lines(),
            output: write,
            _errors: their_errors,
        };
        let pipes = Pipes {
            input: Box::new(input),
            output: Box::new(output),
            errors: Box::new(errors),
        };
        let greeting = Greeting {
            version: "1.2.3",
            agent_dir: "/agent",
            program: None,
            memory: extensions::limits::MEMORY,
            silence: extensions::limits::PONG_WAIT,
        };
        let ready = async {
            simulated.next_line().await;
            simulated.send(&json!({"type": "ready", "protocol": 1})).await;
        };
        let (opened, ()) = tokio::join!(ExtensionProcess::open(Running, pipes, greeting), ready);
        let (process, _log) = opened.unwrap();
        (process, simulated)
    }

    async fn next_line(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(30), self.lines.next_line());
        let line = line.await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The next line of this type.
    pub(super) async fn expect(&mut self, kind: &str) -> Value {
        loop {
            let line = self.next_line().await;
            if line["type"] == kind {
                break line;
            }
        }
    }

    /// Waits for a request of this type and answers it.
    pub(super) async fn answer(&mut self, kind: &str, value: Value) -> Value {
        let line = self.expect(kind).await;
        self.send(&json!({"type": "result", "id": line["id"], "value": value}))
            .await;
        line
    }

    pub(super) async fn send(&mut self, line: &Value) {
        let line = format!("{line}\n");
        self.output.write_all(line.as_bytes()).await.unwrap();
    }
}
