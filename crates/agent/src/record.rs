//! Records of inputs: each step of a session as a line of JSON, and a replay that gives a fresh machine the same inputs.
//!
//! A line has the input and the time in full, and of the effects only a digest: effects repeat what the inputs said, and a
//! digest is enough to find the first step at which a replay goes another way. A record is whole from the first step of a
//! machine; a session that changes to another file goes on in the same record.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::effect::Effect;
use crate::input::Input;
use crate::machine::Machine;

/// Version of the format, in each line: a replay by another version of the machine shows differences that are none.
pub const VERSION: u32 = 3;

/// Length and hash of effects as JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// How many effects.
    pub count: usize,
    /// Bytes of their text.
    pub bytes: usize,
    /// 64-bit FNV-1a hash of their text, in hexadecimal.
    pub hash: String,
}

impl Digest {
    /// The digest of effects. `redact` takes out of their text what the record must not hold.
    ///
    /// # Errors
    /// If effects cannot be written as JSON.
    pub fn of(effects: &[Effect], redact: impl Fn(String) -> String) -> serde_json::Result<Self> {
        let text = redact(serde_json::to_string(effects)?);
        Ok(Self {
            count: effects.len(),
            bytes: text.len(),
            hash: format!("{:016x}", fnv_1a(text.as_bytes())),
        })
    }
}

/// The hash must be the same in every build and on every machine, which the standard library does not promise of its own.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Numbers the steps of one machine and writes them as lines.
#[derive(Debug)]
pub struct Recorder {
    session: u64,
    step: u64,
}

/// An input that is written down and not yet carried out: the machine consumes the input itself.
#[derive(Debug)]
pub struct Pending {
    session: u64,
    step: u64,
    now: i64,
    input: String,
}

#[derive(Serialize)]
struct LineOut<'a> {
    version: u32,
    session: u64,
    step: u64,
    now: i64,
    input: &'a RawValue,
    effects: Digest,
}

#[derive(Deserialize)]
struct LineIn {
    version: u32,
    session: u64,
    step: u64,
    now: i64,
    input: Input,
    effects: Digest,
}

impl Recorder {
    /// A recorder for a machine that has had no input yet. `session` is its number in the record.
    #[must_use]
    pub const fn new(session: u64) -> Self {
        Self { session, step: 0 }
    }

    /// Writes down an input and its time (Unix milliseconds) before the machine gets them.
    ///
    /// # Errors
    /// If the input cannot be written as JSON. Its number is used up, so that a replay finds the gap.
    pub fn begin(&mut self, input: &Input, now: i64) -> serde_json::Result<Pending> {
        // Before the input is written: a number that is missing in the record shows the gap.
        self.step += 1;
        Ok(Pending {
            session: self.session,
            step: self.step,
            now,
            input: serde_json::to_string(input)?,
        })
    }
}

impl Pending {
    /// The line of the step, without a line feed. `redact` takes out what the record must not hold: of the input, and of the
    /// effects before their digest is made, so that a replay of the redacted input has the same digest.
    ///
    /// # Errors
    /// If effects cannot be written as JSON, or the redacted input is none.
    pub fn finish(self, effects: &[Effect], redact: impl Fn(String) -> String) -> serde_json::Result<String> {
        // The check that the rest is JSON comes with it.
        let input = RawValue::from_string(redact(self.input))?;
        serde_json::to_string(&LineOut {
            version: VERSION,
            session: self.session,
            step: self.step,
            now: self.now,
            input: &input,
            effects: Digest::of(effects, redact)?,
        })
    }
}

/// A step that was replayed.
#[derive(Debug)]
pub struct Replayed {
    /// Its number in the session, from 1.
    pub step: u64,
    /// The time that the machine was given, in Unix milliseconds.
    pub now: i64,
    /// What the machine was given.
    pub input: Input,
    /// What it wanted done.
    pub effects: Vec<Effect>,
}

/// Why a record cannot be replayed.
#[derive(Debug)]
pub enum ReplayError {
    /// A line is no step of this version.
    Line {
        /// Its number in the file, from 1.
        line: usize,
        /// The fault.
        reason: String,
    },
    /// Steps are missing: the queue or the file was full when they came.
    Gap {
        /// The step that had to come.
        expected: u64,
        /// The step that came.
        found: u64,
    },
    /// The machine wants something else than it did when the record was made.
    Differs {
        /// The step.
        step: u64,
        /// The effects of the replay, as JSON.
        effects: String,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, reason } => write!(f, "line {line} is no step: {reason}"),
            Self::Gap { expected, found } => {
                write!(
                    f,
                    "step {expected} is missing: the next one in the record is {found}"
                )
            }
            Self::Differs { step, effects } => {
                write!(
                    f,
                    "step {step} has other effects than when it was recorded: {effects}"
                )
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// Gives a fresh machine the inputs of one session of a record and compares the effects of every step with the recorded
/// digest. `each` sees every step that agrees.
///
/// # Errors
/// At the first line that is damaged, missing, or has other effects. Lines of other sessions are only parsed.
pub fn replay<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    session: u64,
    mut each: impl FnMut(Replayed),
) -> Result<(), ReplayError> {
    // A session begins with an empty machine, too: settings and conversation come with its first input, `Change::Open`.
    let mut machine = Machine::default();
    let mut expected = 1;
    for (at, text) in lines.into_iter().enumerate() {
        let broken = |reason: String| ReplayError::Line { line: at + 1, reason };
        let line: LineIn = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        if line.version != VERSION {
            return Err(broken(format!("its version is {}, not {VERSION}", line.version)));
        }
        if line.session != session {
            continue;
        }
        if line.step != expected {
            let found = line.step;
            return Err(ReplayError::Gap { expected, found });
        }
        expected += 1;
        let mut effects = Vec::new();
        machine.step(line.input.clone(), line.now, &mut effects);
        // The recorded input is redacted already.
        let digest = Digest::of(&effects, |text| text).map_err(|error| broken(error.to_string()))?;
        if digest != line.effects {
            return Err(ReplayError::Differs {
                step: line.step,
                effects: serde_json::to_string(&effects).unwrap_or_default(),
            });
        }
        each(Replayed {
            step: line.step,
            now: line.now,
            input: line.input,
            effects,
        });
    }
    Ok(())
}

/// The numbers of the sessions in a record, in the order in which they began.
#[must_use]
pub fn sessions<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<u64> {
    #[derive(Deserialize)]
    struct Head {
        session: u64,
    }
    let mut found = Vec::new();
    for line in lines {
        // A damaged line is skipped: `replay` reports it.
        if let Ok(Head { session }) = serde_json::from_str(line)
            && !found.contains(&session)
        {
            found.push(session);
        }
    }
    found
}
