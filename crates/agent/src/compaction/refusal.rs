//! Why there is no compaction or branch summary. The texts are what clients see, behind a prefix that `session` adds.

use std::fmt;

use super::request::SummaryKind;

/// Why a compaction or a branch summary cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The branch ends with a compaction (pi-core.md 3.2).
    AlreadyCompacted,
    /// All of the branch would be kept, so nothing is left to summarise (pi-1.5-delta.md 4).
    NothingToCompact,
    /// The branch that was left holds nothing to summarise (pi-core.md 3.7).
    NothingToSummarise,
    /// The request for a summary failed; the provider's words.
    Failed(SummaryKind, String),
    /// The request for a summary was aborted.
    Aborted,
    /// A limit of the host allows no further request; the limit.
    Limit(String),
    /// The summary hit its output limit; half a summary is worse than none (pi-core.md, appendix A, 12).
    CutOff(SummaryKind),
    /// The model called a tool, although it had none.
    CalledTool(SummaryKind),
    /// The model answered without text.
    Empty,
    /// Not as many answers as there were requests.
    Answers {
        /// Number of requests.
        wanted: usize,
        /// Number of answers.
        got: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // This text, the next one and that of `Aborted` are those of pi (pi-core.md 3.2).
            Self::AlreadyCompacted => f.write_str("Already compacted"),
            Self::NothingToCompact => f.write_str("Nothing to compact (session too small)"),
            Self::NothingToSummarise => f.write_str("No content to summarize"),
            Self::Failed(kind, message) => write!(f, "{kind} failed: {message}"),
            Self::Aborted => f.write_str("Compaction cancelled"),
            Self::Limit(limit) => write!(f, "Limit reached: {limit}"),
            Self::CutOff(kind) => write!(
                f,
                "{kind} failed: generation hit the token cap and the summary is incomplete"
            ),
            Self::CalledTool(kind) => write!(f, "{kind} attempted to call a tool"),
            Self::Empty => f.write_str("Summarization failed: the summary is empty"),
            Self::Answers { wanted, got } => {
                write!(f, "Summarization failed: {got} answers for {wanted} requests")
            }
        }
    }
}

impl std::error::Error for Refusal {}
