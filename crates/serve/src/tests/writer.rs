//! The writer: order, batches, a reader that does not read, a reader that goes away, and fd 1.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use session::{ClientId, Outbox, Outgoing, outbox};
use tokio::sync::mpsc;
use wire::{Dialect, Event, Reply, Response, StreamEvent, Usage};

use crate::encode::{Encoder, Form};
use crate::error::Error;
use crate::limits::{BATCH_BYTES, BATCHES, PIPE_BYTES};
use crate::manner::Spoken;
use crate::sink::Sink;
use crate::tests::block_on;
use crate::writer::StdoutWriter;

fn numbered(id: usize) -> Response {
    Response {
        id: Some(serde_json::value::to_raw_value(&id).unwrap()),
        command: Some(Value::from("get_state")),
        outcome: Ok(Reply::Nothing),
    }
}

fn delta(text: String) -> Arc<Event> {
    Arc::new(Event::MessageUpdate {
        usage: Usage::default(),
        assistant_message_event: StreamEvent::TextDelta {
            content_index: 0,
            delta: text,
        },
    })
}

/// A pipe with a running writer on one end.
fn start(capacity: usize, form: Form) -> (io::PipeReader, Outbox, StdoutWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let (out, queue) = outbox(capacity);
    let sink = Sink::open(File::from(OwnedFd::from(writer))).unwrap();
    (reader, out, StdoutWriter::spawn(queue, Encoder::new(form), sink))
}

#[test]
fn all_lines_arrive_in_order_before_close() {
    block_on(async {
        let (reader, out, writer) = start(64, Form::Delta);
        let reading = thread::spawn(move || {
            BufReader::new(reader)
                .lines()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        });
        for id in 0..20_000 {
            out.response(ClientId::default(), numbered(id)).await.unwrap();
        }
        drop(out);
        writer.close(Duration::from_secs(60)).await.unwrap();
        let lines = reading.join().unwrap();
        assert_eq!(lines.len(), 20_000);
        for (id, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("{{\"id\":{id},")), "{id}: {line}");
        }
    });
}

#[test]
fn flush_waits_for_last_byte_while_senders_live() {
    block_on(async {
        let (mut reader, out, writer) = start(8, Form::Cumulative);
        out.event(delta("held back?".to_owned())).await.unwrap();
        out.response(ClientId::default(), numbered(1)).await.unwrap();
        out.event(delta("last".to_owned())).await.unwrap();
        out.flush().await.unwrap();
        let mut bytes = vec![0; 65_536];
        let count = reader.read(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("\"delta\":\"last\""));
        drop(out);
        writer.close(Duration::from_secs(60)).await.unwrap();
    });
}

#[test]
fn kept_end_of_run_is_written_at_last() {
    block_on(async {
        let (mut reader, writer) = io::pipe().unwrap();
        let (out, queue) = outbox(8);
        let sink = Sink::open(File::from(OwnedFd::from(writer))).unwrap();
        let encoder = Encoder::speaking(Spoken::new(Dialect::OmpNow));
        let writer = StdoutWriter::spawn(queue, encoder, sink);
        // A compaction follows, during which the input ends: `agent_settled` never comes.
        let end = Event::AgentEnd {
            messages: Vec::new(),
            will_retry: false,
            limit: None,
            result: None,
            result_error: None,
        };
        out.event(Arc::new(end)).await.unwrap();
        drop(out);
        writer.close(Duration::from_secs(60)).await.unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.contains("\"agent_end\""), "{text}");
    });
}

#[test]
fn dropped_flush_can_be_called_again() {
    block_on(async {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sink = Sink::open(File::from(OwnedFd::from(writer))).unwrap();
        let mut buffer = sink.buffer().await.unwrap();
        buffer.resize(2 * PIPE_BYTES, b'x');
        sink.write(buffer).await.unwrap();
        let stuck = tokio::time::timeout(Duration::from_millis(1), sink.flush()).await;
        assert!(stuck.is_err(), "nothing reads yet");
        let reading = thread::spawn(move || io::copy(&mut reader, &mut io::sink()).unwrap());
        tokio::time::timeout(Duration::from_secs(60), sink.flush())
            .await
            .unwrap()
            .unwrap();
        drop(sink);
        assert_eq!(usize::try_from(reading.join().unwrap()), Ok(2 * PIPE_BYTES));
    });
}

#[test]
fn stalled_reader_blocks_sender_and_loses_nothing() {
    block_on(async {
        let capacity = 16;
        let (reader, out, writer) = start(capacity, Form::Delta);
        let piece = "z".repeat(10_000);
        let accepted = Arc::new(AtomicUsize::new(0));
        let (count, text) = (Arc::clone(&accepted), piece.clone());
        let total = 2_000;
        let sending = tokio::spawn(async move {
            for id in 0..total {
                // Alternating, so that nothing can be merged.
                out.event(delta(text.clone())).await.unwrap();
                out.response(ClientId::default(), numbered(id)).await.unwrap();
                count.store(id + 1, Ordering::SeqCst);
            }
        });
        let mut before = usize::MAX;
        while before != accepted.load(Ordering::SeqCst) {
            before = accepted.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // The batches, the queue, and what the pipe itself holds; 20 MB were offered.
        let most = BATCHES * (BATCH_BYTES + piece.len()) + capacity * piece.len() + PIPE_BYTES;
        assert!(
            before * piece.len() <= most,
            "{} accepted, {most} allowed",
            before * piece.len()
        );
        let reading = thread::spawn(move || {
            BufReader::new(reader)
                .lines()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        });
        sending.await.unwrap();
        writer.close(Duration::from_secs(60)).await.unwrap();
        let lines = reading.join().unwrap();
        assert_eq!(lines.len(), 2 * total);
        for (id, pair) in lines.chunks(2).enumerate() {
            assert!(pair[0].len() > piece.len() && pair[1].starts_with(&format!("{{\"id\":{id},")));
        }
    });
}

#[test]
fn deltas_merge_while_reader_is_busy() {
    block_on(async {
        let (reader, out, writer) = start(4_096, Form::Delta);
        // Fills the pipe and both batches.
        for _ in 0..3 {
            out.event(delta("a".repeat(BATCH_BYTES))).await.unwrap();
            out.response(ClientId::default(), numbered(0)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        for _ in 0..1_000 {
            out.event(delta("b".to_owned())).await.unwrap();
        }
        let reading = thread::spawn(move || {
            BufReader::new(reader)
                .lines()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        });
        drop(out);
        writer.close(Duration::from_secs(60)).await.unwrap();
        let lines = reading.join().unwrap();
        let deltas: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let text: String = deltas
            .iter()
            .filter_map(|line| line["assistantMessageEvent"]["delta"].as_str())
            .filter(|text| text.starts_with('b'))
            .collect();
        assert_eq!(text, "b".repeat(1_000));
        assert!(lines.len() < 20, "{}", lines.len());
    });
}

#[test]
fn delayed_deltas_are_flushed_by_deadline() {
    block_on(async {
        let (reader, out, writer) = start(16, Form::Cumulative);
        let mut reader = BufReader::new(reader);
        let (sent, mut read) = mpsc::channel(4);
        let reading = thread::spawn(move || {
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 0 {
                sent.blocking_send(std::mem::take(&mut line)).unwrap();
            }
        });
        out.event(delta("x".repeat(400_000))).await.unwrap();
        read.recv().await.unwrap();
        out.event(delta("y".to_owned())).await.unwrap();
        assert!(read.recv().await.unwrap().contains("\"delta\":\"y\""));
        drop(out);
        writer.close(Duration::from_secs(60)).await.unwrap();
        reading.join().unwrap();
    });
}

#[test]
fn closed_stdout_ends_writer_without_write() {
    block_on(async {
        let (reader, out, mut writer) = start(16, Form::Delta);
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(reader);
        let ended = tokio::time::timeout(Duration::from_secs(20), writer.ended())
            .await
            .unwrap();
        assert!(matches!(ended, Err(Error::OutputClosed(_))), "{ended:?}");
        out.closed().await;
        assert_eq!(out.flush().await, Err(session::WriterGone));
    });
}

struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failed_write_ends_writer() {
    block_on(async {
        let (out, queue) = outbox(4);
        let mut writer = StdoutWriter::spawn(
            queue,
            Encoder::new(Form::Delta),
            Sink::from_writer(Broken).unwrap(),
        );
        out.response(ClientId::default(), numbered(1)).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), writer.ended())
            .await
            .unwrap();
        assert!(matches!(ended, Err(Error::Output(_))), "{ended:?}");
    });
}

#[test]
fn close_times_out_on_stalled_reader() {
    block_on(async {
        let (reader, out, writer) = start(16, Form::Delta);
        out.event(delta("x".repeat(2 * PIPE_BYTES))).await.unwrap();
        drop(out);
        let limit = Duration::from_millis(50);
        assert!(matches!(writer.close(limit).await, Err(Error::OutputStuck(_))));
        drop(reader);
    });
}

#[test]
fn dropped_sink_leaves_no_descriptor() {
    block_on(async {
        let (mut reader, out, writer) = start(16, Form::Delta);
        drop(out);
        writer.close(Duration::from_secs(60)).await.unwrap();
        // The end of the stream comes only when threads gave up their descriptors too.
        let begin = Instant::now();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() && begin.elapsed() < Duration::from_secs(20));
    });
}

#[test]
fn full_non_blocking_pipe_is_awaited() {
    let (mut reader, writer) = io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut patient = crate::stdio::Patient(File::from(OwnedFd::from(writer)));
    let writing = thread::spawn(move || patient.write_all(&vec![b'x'; 1_000_000]));
    thread::sleep(Duration::from_millis(20));
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    writing.join().unwrap().unwrap();
    assert_eq!(all.len(), 1_000_000);
}

const CHILD: &str = "PINION_TEST_STDOUT_CHILD";

/// Runs only as a child of the next test: takes stdout, then prints in every way it can think of.
#[test]
fn stdout_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut protocol = crate::stdio::take_stdout().unwrap();
    println!("noise by macro");
    File::options()
        .write(true)
        .open("/dev/stdout")
        .unwrap()
        .write_all(b"noise by name\n")
        .unwrap();
    Command::new("sh")
        .args(["-c", "echo noise by child"])
        .status()
        .unwrap();
    protocol.write_all(b"PROTOCOL\n").unwrap();
}

#[test]
fn only_protocol_reaches_stdout() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "tests::writer::stdout_child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    // The test harness prints its own head before the child takes stdout.
    let (_, ours) = stdout.split_once("PROTOCOL").expect(&stdout);
    assert_eq!(ours, "\n");
    assert!(!stdout.contains("noise"), "{stdout}");
    for noise in ["noise by macro", "noise by name", "noise by child"] {
        assert!(stderr.contains(noise), "{stderr}");
    }
}

#[test]
fn outbox_items_are_small() {
    assert!(size_of::<Outgoing>() <= 256, "{}", size_of::<Outgoing>());
}
