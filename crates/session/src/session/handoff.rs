//! The command `handoff` of oh-my-pi (dialects.md 14): a compaction whose summary is a document for the next agent.

use agent::compaction::Refusal;
use wire::Reply;
use wire::command::CompactParams;
use wire::event::CompactionResult;
use wire::omp::Handoff;

use crate::outbox::Responder;
use crate::strings;

/// What the summary of a handoff should contain, in addition to what every summary does.
const HANDOFF: &str = "The summary is a handoff: another person or agent continues the work with it and nothing else. State the \
    goal, what is done, what is left, the next step, decisions with their reasons, and the files and commands that matter.";

/// Returns true if there was nothing that a summary could replace.
pub(super) fn is_needless(error: &str) -> bool {
    // Compared as texts: the refusal reaches the responder as the sentence for the client.
    [Refusal::NothingToCompact, Refusal::AlreadyCompacted]
        .iter()
        .any(|refusal| refusal.to_string() == error)
}

/// The compaction that makes a document, and who gets its outcome.
pub(super) fn handoff(
    params: CompactParams,
    responder: Responder<Handoff>,
) -> (CompactParams, Responder<CompactionResult>) {
    let wishes = params.custom_instructions.iter().map(String::as_str);
    let instructions: Vec<&str> = std::iter::once(HANDOFF).chain(wishes).collect();
    let params = CompactParams {
        custom_instructions: Some(instructions.join("\n\n")),
    };
    let responder = responder.taking(|outcome: Result<CompactionResult, String>| match outcome {
        // Without `savedPath`: the document is a compaction of the session and no file of its own.
        Ok(_) => Ok(Reply::from(Handoff::default())),
        Err(error) if is_needless(&error) => Err(strings::NO_HANDOFF.to_owned()),
        Err(error) => Err(error),
    });
    (params, responder)
}
