//! A server at home: answers some paths with prepared JSON, leads conversations to the scripted provider, and can go away.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::{LONG, until};

/// A web server with fixed answers, in front of a scripted model server.
pub(crate) struct Front {
    address: SocketAddr,
    gone: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<String>>>,
    /// Prepared answers are held back.
    held: Arc<AtomicBool>,
    /// Connections that were led on.
    led: Arc<Mutex<Vec<TcpStream>>>,
}

impl Front {
    /// A server with these answers by path; conversations go to `behind`.
    pub(crate) fn start(answers: &[(&str, Value)], behind: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers: HashMap<String, String> = answers
            .iter()
            .map(|(path, answer)| ((*path).to_owned(), answer.to_string()))
            .collect();
        let (gone, asked) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let led = Arc::<Mutex<Vec<TcpStream>>>::default();
        let held = Arc::<AtomicBool>::default();
        let waits = Arc::clone(&held);
        let open = Arc::clone(&led);
        let (leaving, log, answers) = (Arc::clone(&gone), Arc::clone(&asked), Arc::new(answers));
        let behind = behind.trim_start_matches("http://").to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if leaving.load(Ordering::SeqCst) {
                    return;
                }
                let (log, answers, behind) = (Arc::clone(&log), Arc::clone(&answers), behind.clone());
                let (open, waits) = (Arc::clone(&open), Arc::clone(&waits));
                // A client may close its connection at any time.
                std::thread::spawn(move || drop(serve(stream, &answers, &log, &behind, &open, &waits)));
            }
        });
        Self {
            address,
            gone,
            asked,
            held,
            led,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The paths it was asked for since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Holds back every prepared answer from now on.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    /// Gives the answers that are held back, and holds back none any more.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::SeqCst);
    }

    /// Refuses all further connections.
    pub(crate) fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _woken = TcpStream::connect(self.address);
        for stream in self.led.lock().unwrap().drain(..) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
        until("the server to leave", || {
            TcpStream::connect(self.address).is_err()
        });
    }
}

/// One request per connection.
fn serve(
    mut stream: TcpStream,
    answers: &HashMap<String, String>,
    log: &Mutex<Vec<String>>,
    behind: &str,
    led: &Mutex<Vec<TcpStream>>,
    held: &AtomicBool,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let path = text.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
    if path.ends_with("/chat/completions") {
        let mut there = TcpStream::connect(behind)?;
        there.write_all(&head)?;
        led.lock()
            .unwrap()
            .extend([stream.try_clone()?, there.try_clone()?]);
        let (mut from, mut to) = (stream.try_clone()?, there.try_clone()?);
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        std::io::copy(&mut there, &mut stream)?;
        return stream.shutdown(Shutdown::Both);
    }
    let length = text.to_lowercase();
    let length = length.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    log.lock().unwrap().push(path.clone());
    let end = Instant::now() + LONG;
    while held.load(Ordering::SeqCst) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(3));
    }
    let (status, answer) = match answers.get(&path) {
        Some(answer) => ("200 OK", answer.as_str()),
        None => ("404 Not Found", "{}"),
    };
    let length = answer.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
    )
}
