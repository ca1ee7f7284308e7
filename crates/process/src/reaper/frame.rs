//! The messages between agent and guardian and their bytes. Sockets and processes live elsewhere.
//!
//! A frame is a length (u32), a kind (u8), a command number (u64) and a body. Both ends are the same program, so the
//! format needs no versions. A `Spawn` frame travels with the file descriptors of the child's streams.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::error::ChildError;
use crate::limits;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpawnSpec {
    /// Program, as a path.
    pub program: OsString,
    /// Arguments without the program's name.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub cwd: OsString,
}

/// What the agent asks of the guardian.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Start command `id`. Its streams come along: one descriptor, or three when they are apart.
    Spawn { id: u64, spec: SpawnSpec, apart: bool },
    /// Kill command `id` whose first process was `pid` and whose processes carry `marker` in their environment.
    Kill { id: u64, pid: u32, marker: Vec<u8> },
}

/// What the guardian reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Command `id` runs as `pid`, which is also its process group.
    Spawned { id: u64, pid: u32 },
    /// Command `id` could not be started.
    Failed { id: u64, errno: i32 },
    /// The first process of command `id` ended.
    Exited {
        id: u64,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// A kill is done; `left` processes could not be killed in time.
    Killed { id: u64, left: u32 },
    /// The guardian is there; `pid` is its process id.
    Ready { pid: u32 },
    /// The guardian could not be started.
    Unavailable { errno: i32 },
}

const SPAWN: u8 = 1;
const KILL: u8 = 2;
const SPAWNED: u8 = 3;
const FAILED: u8 = 4;
const EXITED: u8 = 5;
const KILLED: u8 = 6;
const READY: u8 = 7;
const UNAVAILABLE: u8 = 8;
/// Stands for "no exit code" and "no signal".
const NONE: i32 = i32::MIN;

impl Request {
    /// The frame's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Spawn { id, spec, apart } => {
                let mut out = Writer::new(SPAWN, *id);
                out.word(i32::from(*apart));
                out.bytes(spec.program.as_bytes());
                out.bytes(spec.cwd.as_bytes());
                out.count(spec.args.len());
                spec.args.iter().for_each(|arg| out.bytes(arg.as_bytes()));
                out.count(spec.env.len());
                for (name, value) in &spec.env {
                    out.bytes(name.as_bytes());
                    out.bytes(value.as_bytes());
                }
                out.done()
            }
            Self::Kill { id, pid, marker } => {
                let mut out = Writer::new(KILL, *id);
                out.word(pid.cast_signed());
                out.bytes(marker);
                out.done()
            }
        }
    }

    /// Reads a frame's payload.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, ChildError> {
        let (kind, id, mut body) = Reader::new(payload)?;
        match kind {
            SPAWN => {
                let apart = body.word()? != 0;
                let program = body.os()?;
                let cwd = body.os()?;
                // A wrong count reserves no memory: it ends with an error where the payload ends.
                let args = (0..body.count()?).map(|_| body.os()).collect::<Result<_, _>>()?;
                let env = (0..body.count()?)
                    .map(|_| Ok((body.os()?, body.os()?)))
                    .collect::<Result<_, ChildError>>()?;
                Ok(Self::Spawn {
                    id,
                    spec: SpawnSpec {
                        program,
                        args,
                        env,
                        cwd,
                    },
                    apart,
                })
            }
            KILL => Ok(Self::Kill {
                id,
                pid: body.word()?.cast_unsigned(),
                marker: body.bytes()?.to_vec(),
            }),
            _ => Err(ChildError::Frame),
        }
    }
}

impl Report {
    /// The frame's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Spawned { id, pid } => Writer::new(SPAWNED, *id).words(&[pid.cast_signed()]),
            Self::Failed { id, errno } => Writer::new(FAILED, *id).words(&[*errno]),
            Self::Exited { id, code, signal } => {
                Writer::new(EXITED, *id).words(&[code.unwrap_or(NONE), signal.unwrap_or(NONE)])
            }
            Self::Killed { id, left } => Writer::new(KILLED, *id).words(&[left.cast_signed()]),
            Self::Ready { pid } => Writer::new(READY, 0).words(&[pid.cast_signed()]),
            Self::Unavailable { errno } => Writer::new(UNAVAILABLE, 0).words(&[*errno]),
        }
    }

    /// Reads a frame's payload.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, ChildError> {
        let (kind, id, mut body) = Reader::new(payload)?;
        let some = |word: i32| (word != NONE).then_some(word);
        Ok(match kind {
            SPAWNED => Self::Spawned {
                id,
                pid: body.word()?.cast_unsigned(),
            },
            FAILED => Self::Failed {
                id,
                errno: body.word()?,
            },
            EXITED => Self::Exited {
                id,
                code: some(body.word()?),
                signal: some(body.word()?),
            },
            KILLED => Self::Killed {
                id,
                left: body.word()?.cast_unsigned(),
            },
            READY => Self::Ready {
                pid: body.word()?.cast_unsigned(),
            },
            UNAVAILABLE => Self::Unavailable { errno: body.word()? },
            _ => return Err(ChildError::Frame),
        })
    }
}

/// Cuts the next whole frame off `buffer` and returns its payload.
pub(crate) fn take_frame(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>, ChildError> {
    let Some((head, rest)) = buffer.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let len = u32::from_le_bytes(*head) as usize;
    // Before the bytes are waited for: a wrong length would let the buffer grow without end.
    if len > limits::FRAME_MAX {
        return Err(ChildError::Frame);
    }
    let Some(payload) = rest.get(..len) else {
        return Ok(None);
    };
    let payload = payload.to_vec();
    buffer.drain(..4 + len);
    Ok(Some(payload))
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8, id: u64) -> Self {
        // Room for the length, which `done` fills in.
        let mut out = vec![0; 4];
        out.push(kind);
        out.extend_from_slice(&id.to_le_bytes());
        Self(out)
    }

    fn word(&mut self, word: i32) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn words(mut self, words: &[i32]) -> Vec<u8> {
        words.iter().for_each(|word| self.word(*word));
        self.done()
    }

    fn count(&mut self, count: usize) {
        // For a length that does not fit, the largest: the reader refuses it.
        self.0
            .extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn done(mut self) -> Vec<u8> {
        let len = u32::try_from(self.0.len().saturating_sub(4)).unwrap_or(u32::MAX);
        if let Some(head) = self.0.first_chunk_mut::<4>() {
            *head = len.to_le_bytes();
        }
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn new(payload: &'a [u8]) -> Result<(u8, u64, Self), ChildError> {
        let (kind, rest) = payload.split_first().ok_or(ChildError::Frame)?;
        let (id, rest) = rest.split_first_chunk::<8>().ok_or(ChildError::Frame)?;
        Ok((*kind, u64::from_le_bytes(*id), Self(rest)))
    }

    fn word(&mut self) -> Result<i32, ChildError> {
        let (word, rest) = self.0.split_first_chunk::<4>().ok_or(ChildError::Frame)?;
        self.0 = rest;
        Ok(i32::from_le_bytes(*word))
    }

    fn count(&mut self) -> Result<usize, ChildError> {
        let count = self.word()?.cast_unsigned() as usize;
        // Every element takes at least its own length field, so a larger count is a lie.
        if count > self.0.len() {
            Err(ChildError::Frame)
        } else {
            Ok(count)
        }
    }

    fn bytes(&mut self) -> Result<&'a [u8], ChildError> {
        // As for a count, the length is compared with the rest of the frame before anything is allocated.
        let len = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(ChildError::Frame)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn os(&mut self) -> Result<OsString, ChildError> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()))
    }
}

/// Name of the environment variable that marks all processes of a command.
pub(crate) const MARKER_NAME: &str = "PINION_COMMAND_ID";

/// The marker as it stands in `/proc/<pid>/environ`.
pub(crate) fn marker_entry(value: &OsStr) -> Vec<u8> {
    [MARKER_NAME.as_bytes(), b"=", value.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_wire_in_any_cut() {
        let spec = SpawnSpec {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), "".into(), "echo \u{e9}".into()],
            env: vec![("A".into(), "1".into()), ("EMPTY".into(), "".into())],
            cwd: "/".into(),
        };
        let requests = [
            Request::Spawn {
                id: 0,
                spec: spec.clone(),
                apart: true,
            },
            Request::Spawn {
                id: u64::MAX,
                spec,
                apart: false,
            },
            Request::Kill {
                id: 1,
                pid: 42,
                marker: b"PINION_COMMAND_ID=x".to_vec(),
            },
        ];
        let stream: Vec<u8> = requests.iter().flat_map(Request::encode).collect();
        let (mut buffer, mut seen) = (Vec::new(), Vec::new());
        for byte in stream {
            buffer.push(byte);
            while let Some(payload) = take_frame(&mut buffer).unwrap() {
                seen.push(Request::decode(&payload).unwrap());
            }
        }
        assert_eq!(seen, requests);
        for report in [
            Report::Spawned { id: 3, pid: 7 },
            Report::Failed { id: 3, errno: 2 },
            Report::Exited {
                id: 3,
                code: Some(0),
                signal: None,
            },
            Report::Exited {
                id: 3,
                code: None,
                signal: Some(9),
            },
            Report::Killed { id: 3, left: 0 },
            Report::Ready { pid: 7 },
            Report::Unavailable { errno: 11 },
        ] {
            let mut bytes = report.encode();
            assert_eq!(
                Report::decode(&take_frame(&mut bytes).unwrap().unwrap()).unwrap(),
                report
            );
        }
    }

    #[test]
    fn malformed_reaper_frames_are_refused() {
        assert!(take_frame(&mut vec![255, 255, 255, 255, 0]).is_err());
        assert!(Request::decode(&[]).is_err());
        assert!(Request::decode(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]).is_err());
        assert!(Report::decode(&[9; 9]).is_err());
    }
    fn spawn() -> Request {
        Request::Spawn {
            id: 7,
            spec: SpawnSpec {
                program: "/bin/sh".into(),
                args: vec!["-c".into()],
                env: vec![("A".into(), "1".into())],
                cwd: "/".into(),
            },
            apart: true,
        }
    }

    #[test]
    fn cut_request_is_refused_at_every_length() {
        for request in [
            spawn(),
            Request::Kill {
                id: 1,
                pid: 42,
                marker: b"M=x".to_vec(),
            },
        ] {
            let payload = take_frame(&mut request.encode()).unwrap().unwrap();
            for length in 0..payload.len() {
                assert!(Request::decode(&payload[..length]).is_err(), "{length}");
            }
            assert_eq!(Request::decode(&payload).unwrap(), request);
        }
    }

    #[test]
    fn count_beyond_the_frame_is_refused() {
        let mut payload = take_frame(&mut spawn().encode()).unwrap().unwrap();
        // Kind, id and flag come before the length of the program's name.
        payload[13..17].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Request::decode(&payload).is_err());
    }

    #[test]
    fn frame_over_limit_is_refused_before_it_arrives() {
        let length = |length: usize| u32::try_from(length).unwrap().to_le_bytes().to_vec();
        assert!(take_frame(&mut length(limits::FRAME_MAX + 1)).is_err());
        assert_eq!(take_frame(&mut length(limits::FRAME_MAX)).unwrap(), None);
        assert_eq!(
            take_frame(&mut vec![0, 0]).unwrap(),
            None,
            "the length itself is cut"
        );
    }

    #[test]
    fn next_frame_stays_in_the_buffer() {
        let (first, second) = (Report::Ready { pid: 1 }, Report::Killed { id: 2, left: 3 });
        let mut buffer = [first.encode(), second.encode(), vec![9]].concat();
        for report in [first, second] {
            let payload = take_frame(&mut buffer).unwrap().unwrap();
            assert_eq!(Report::decode(&payload).unwrap(), report);
        }
        assert_eq!(buffer, [9]);
    }

    #[test]
    fn kinds_of_one_direction_are_refused_by_other() {
        let request = take_frame(&mut spawn().encode()).unwrap().unwrap();
        assert!(Report::decode(&request).is_err());
        let report = take_frame(&mut Report::Ready { pid: 1 }.encode())
            .unwrap()
            .unwrap();
        assert!(Request::decode(&report).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_survive() {
        let odd = OsString::from_vec(vec![0xff, b'=', 0xfe]);
        let request = Request::Spawn {
            id: 1,
            spec: SpawnSpec {
                program: odd.clone(),
                args: vec![odd.clone()],
                env: vec![(odd.clone(), odd.clone())],
                cwd: odd,
            },
            apart: false,
        };
        let payload = take_frame(&mut request.encode()).unwrap().unwrap();
        assert_eq!(Request::decode(&payload).unwrap(), request);
    }

    #[test]
    fn marker_is_a_whole_entry_of_environment() {
        assert_eq!(marker_entry(OsStr::new("a-1")), b"PINION_COMMAND_ID=a-1");
    }
}
