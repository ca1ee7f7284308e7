//! The reading thread: the order, the end of the input, and how much may wait.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::budget::{Budget, Held};
use crate::parse::Inbound;
use crate::stdin::{StdinOptions, spawn_with};
use crate::tests::block_on;

/// What the reading thread hands on.
struct Lines(mpsc::Receiver<(Inbound, Held)>);

impl Lines {
    async fn recv(&mut self) -> Option<Inbound> {
        self.0.recv().await.map(|(inbound, _held)| inbound)
    }
}

fn lines(input: impl Read + Send + 'static, options: StdinOptions) -> Lines {
    let (sender, receiver) = mpsc::channel(1024);
    spawn_with(input, options, move |inbound, held| {
        sender.blocking_send((inbound, held)).is_ok()
    })
    .unwrap();
    Lines(receiver)
}

fn names(inbound: Option<Inbound>) -> Option<String> {
    inbound.map(|inbound| match inbound {
        Inbound::Request(request) => request.name,
        Inbound::Frame(name, _) => name.to_owned(),
        Inbound::Rejected(response) => response.outcome.unwrap_err(),
        Inbound::Eof => "EOF".to_owned(),
    })
}

#[test]
fn lines_keep_their_order_until_the_end() {
    let input = "{\"type\":\"get_state\"}\r\nnonsense that is long\n{\"type\":\"abort\"}\n{\"type\":\"host_tool_result\"}\n\
                 {\"type\":\"prompt\",\"message\":\"\"}\n{\"type\":\"get_messages\"}";
    block_on(async {
        let options = StdinOptions {
            max_line: 34,
            ..StdinOptions::default()
        };
        let mut lines = lines(Cursor::new(input), options);
        let mut found = Vec::new();
        while let Some(name) = names(lines.recv().await) {
            found.push(name);
        }
        assert!(found[1].starts_with("Failed to parse command: "));
        found.remove(1);
        assert_eq!(
            found,
            [
                "get_state",
                "abort",
                "host_tool_result",
                "prompt",
                "get_messages",
                "EOF"
            ]
        );
    });
}

/// Counts the bytes read from an endless flood of commands.
struct Flood {
    line: Vec<u8>,
    taken: Arc<AtomicUsize>,
}

impl Read for Flood {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let done = self.taken.load(Ordering::SeqCst);
        let rest = &self.line[done % self.line.len()..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.taken.fetch_add(count, Ordering::SeqCst);
        Ok(count)
    }
}

#[test]
fn full_command_queue_stops_reading() {
    let taken = Arc::new(AtomicUsize::new(0));
    let line = format!(
        "{{\"type\":\"prompt\",\"message\":\"{}\"}}\n",
        "x".repeat(100_000)
    );
    let flood = Flood {
        line: line.into_bytes(),
        taken: Arc::clone(&taken),
    };
    let options = StdinOptions {
        queue_bytes: 1_000_000,
        ..StdinOptions::default()
    };
    let mut lines = lines(flood, options);
    while taken.load(Ordering::SeqCst) < 900_000 {
        thread::sleep(Duration::from_millis(1));
    }
    // Time to go on, if nothing stopped it.
    thread::sleep(Duration::from_millis(200));
    let before = taken.load(Ordering::SeqCst);
    assert!(before < 1_500_000, "{before}");
    // Taking lets it go on.
    for _ in 0..50 {
        assert_eq!(names(block_on(lines.recv())).as_deref(), Some("prompt"));
    }
    assert!(taken.load(Ordering::SeqCst) > before);
}

#[test]
fn line_larger_than_queue_waits_alone() {
    let budget = Budget::new(10);
    let large = budget.hold(100);
    let other = Arc::clone(&budget);
    let waiting = thread::spawn(move || other.hold(1));
    thread::sleep(Duration::from_millis(20));
    assert_eq!(budget.held(), 100);
    drop(large);
    let held = waiting.join().unwrap();
    assert_eq!(budget.held(), 1);
    drop(held);
    assert_eq!(budget.held(), 0);
}
