//! Replays a record of inputs (`pinion --record-inputs FILE`): `cargo run -p pinion-agent --example replay -- FILE [SESSION]`.
//! Prints each step and what followed from it, and where the machine of this build goes another way than the recorded one.

use std::io::{self, Write};
use std::process::ExitCode;

use pinion_agent::record::{replay, sessions};

fn main() -> io::Result<ExitCode> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or_else(|| io::Error::other("name a record"))?;
    let text = std::fs::read_to_string(&path)?;
    let only = args.next().and_then(|arg| arg.parse::<u64>().ok());
    let mut out = io::stdout().lock();
    let mut failed = false;
    for session in sessions(text.lines()) {
        if only.is_some_and(|only| only != session) {
            continue;
        }
        let mut unwritten = Ok(());
        let replayed = replay(text.lines(), session, |step| {
            if unwritten.is_ok() {
                unwritten = print(&mut out, session, &step);
            }
        });
        unwritten?;
        if let Err(error) = replayed {
            writeln!(out, "session {session}: {error}")?;
            failed = true;
        }
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn print(out: &mut impl Write, session: u64, step: &pinion_agent::record::Replayed) -> io::Result<()> {
    let input = serde_json::to_string(&step.input)?;
    writeln!(
        out,
        "session {session} step {} at {}: {input}",
        step.step, step.now
    )?;
    for effect in &step.effects {
        writeln!(out, "    {}", serde_json::to_string(effect)?)?;
    }
    Ok(())
}
