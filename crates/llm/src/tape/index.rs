//! Where the lines of each exchange stand in a tape. Bodies stay in the file until they are played.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use super::compare::fingerprint;
use super::format::{Line, VERSION, what};
use crate::limits::{MAX_TAPE_EXCHANGES, MAX_TAPE_LINE};

/// A line's place: offset and length in bytes.
pub(super) type Place = (u64, usize);

/// One exchange.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) api: String,
    pub(super) provider: String,
    /// See [`what`].
    pub(super) what: String,
    /// Of the conversation in the request.
    pub(super) fingerprint: u64,
    /// The request.
    pub(super) request: Place,
    /// What followed.
    pub(super) lines: Vec<Place>,
}

/// Reads a tape once. A line cut short by the end of its recording is left out.
pub(super) fn read(file: &File) -> io::Result<Vec<Entry>> {
    let mut reader = BufReader::new(file);
    let mut entries: Vec<Entry> = Vec::new();
    // Of the program that recorded the lines that are being read.
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut damaged = None;
    let mut line = Vec::new();
    let (mut offset, mut number) = (0, 0_u64);
    loop {
        line.clear();
        let length = (&mut reader).take(MAX_TAPE_LINE).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        number += 1;
        let place = (offset, length);
        offset += length as u64;
        let parsed = serde_json::from_slice::<Line>(&line).ok();
        match (&parsed, damaged) {
            (Some(Line::Tape { .. }), _) => damaged = None,
            (_, Some(bad)) => return Err(bad_line(bad)),
            _ => {}
        }
        match parsed {
            Some(Line::Tape { version, .. }) if version == VERSION => numbers.clear(),
            Some(Line::Tape { version, .. }) => {
                return Err(io::Error::other(format!(
                    "recordings of version {version} are not known"
                )));
            }
            Some(_) if number == 1 => return Err(io::Error::other("it is no recording")),
            Some(Line::Request(request)) => {
                if entries.len() >= MAX_TAPE_EXCHANGES {
                    return Err(io::Error::other("it holds too many requests"));
                }
                numbers.insert(request.exchange, entries.len());
                entries.push(Entry {
                    what: what(&request.url).to_owned(),
                    api: request.api,
                    provider: request.provider,
                    fingerprint: fingerprint(&request.body),
                    request: place,
                    lines: Vec::new(),
                });
            }
            Some(
                Line::Response { exchange, .. } | Line::Chunk { exchange, .. } | Line::End { exchange, .. },
            ) => {
                let entry = numbers.get(&exchange).and_then(|at| entries.get_mut(*at));
                entry.ok_or_else(|| bad_line(number))?.lines.push(place);
            }
            None if number == 1 => return Err(io::Error::other("it is no recording")),
            None => damaged = Some(number),
        }
    }
    Ok(entries)
}

fn bad_line(number: u64) -> io::Error {
    io::Error::other(format!("line {number} is damaged"))
}
