//! The rules that sessions follow in some dialects only. A session asks for a rule by its name, so this table alone says what a dialect
//! means for sessions (docs/internals/decisions/36-dialects-in-the-session.md).

use super::Dialect;

/// A rule that a session follows in some dialects. The dialect is that with which the process starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRule {
    /// An answer that was aborted ends the retries before it as a success.
    AbortedAnswersEndRetries,
    /// The response to `abort_retry` comes before the session settles.
    AnswersAbortOfRetryFirst,
    /// Clients get the list of commands when it changes.
    AnnouncesCommands,
    /// Clients get `entry_appended` for each entry that an extension adds. A message that an extension adds at a boundary of the run is an
    /// entry alone.
    AnnouncesEntries,
    /// A run without a command asks extensions for `before_agent_start`, too.
    AsksBeforeEachRun,
    /// An answer may have the rest of the context, however small, if the provider has counted the context.
    AsksForLeastRoom,
    /// A summary of a branch has the thinking level of the session.
    BranchSummariesThink,
    /// The error of `clone` for a session without messages says that the session is not saved.
    ClonesSavedSessionsOnly,
    /// A compaction keeps at most `keepRecentTokens`, and asks for a short summary, too.
    CompactsAsOmp,
    /// The statistics of a session count its whole file, with compacted messages and summaries.
    CountsWholeFile,
    /// The next model is chosen also if the scope has one model only.
    CyclesSingleModel,
    /// The session file has messages with system prompt and tools. The tools that a branch declares become active with it.
    DeclaresTools,
    /// A session without messages is exported.
    ExportsEmptySessions,
    /// Extensions get the forms of oh-my-pi: the system prompt is a list of texts, for example.
    ExtensionsSeeOmp,
    /// Images of a prompt are made fit for the model, and notes about them follow the text.
    FitsImages,
    /// A failure by a used-up quota is tried again only if the quota comes back soon.
    KnowsQuotas,
    /// An answer that failed and is tried again leaves the context by an entry of the file.
    LeavesOutFailedAnswers,
    /// An answer that failed for good because the prompt is too long leaves the context.
    LeavesOutOverflows,
    /// The ends of messages and turns are sent also after the input has ended.
    LostClientsGetMessages,
    /// Reasoning stays off after a model that cannot reason.
    LostLevelsStayOff,
    /// An extension may go to another place of the tree only while the session is idle.
    MovesIdleSessionsOnly,
    /// The client cannot negotiate the version of the protocol with which a connection begins.
    NegotiatesNewVersionsOnly,
    /// A new session begins with the settings, and not with what the client chose.
    NewSessionsTakeSettings,
    /// The system prompt has no date.
    OmitsDate,
    /// Requests have no blocks of empty text.
    OmitsEmptyText,
    /// The end of a run that overflowed does not say that another one follows.
    OverflowsEndRuns,
    /// `~` at the beginning of a path that a client names is the home directory.
    PathsHaveHome,
    /// A prompt becomes the beginning of the retry that the session waits for.
    PromptsJoinRetries,
    /// The thinking level is stored with the next prompt if the branch says another one.
    PromptsStoreLevel,
    /// Messages that wait begin a run after a failed one, and retries end before the compaction after an overflow.
    QueuesFollowFailures,
    /// A queue that goes with its session is not announced.
    QueuesEndSilently,
    /// A prompt during a compaction or a navigation is refused also if it says what to do during a run.
    RefusesPromptsInCompactions,
    /// Requests to models have the conventions of today's pi.
    RequestsOfNewestPi,
    /// The result of each of several calls of an answer is stored and sent when its call ends.
    ResultsFollowEnds,
    /// A run that `compact` interrupts goes on after it.
    ResumesAfterCompaction,
    /// A run is active until the session settles, also while it compacts by itself or waits for a retry.
    RunsIncludeRetries,
    /// Messages for the next turn go with any message that begins a run.
    RunsTakeNextTurn,
    /// A model that is selected has the thinking level of the settings again.
    SelectedModelsTakeLevel,
    /// Shell commands of the user join the conversation as soon as the run has ended.
    ShellMessagesFollowRun,
    /// The state of the session has the system prompt and the tools.
    ShowsPrompt,
    /// No automatic compaction begins that would find nothing to summarise.
    SkipsEmptyCompactions,
    /// A summary may have as many tokens as the model can write.
    SummariesUseModelLimit,
    /// The active run takes over a model that is selected.
    SwitchesModelInRun,
    /// Tools that are chosen keep the order in which they became active.
    ToolsKeepOrder,
    /// Pinion estimates the tokens after a compaction from all messages, also the one with prompt and tools.
    EstimatesAllMessages,
}

impl Dialect {
    /// Returns true if sessions follow the rule.
    #[must_use]
    pub const fn follows(self, rule: SessionRule) -> bool {
        match rule {
            // What pi changed since 0.74 (pi-1.5-delta.md).
            SessionRule::AnswersAbortOfRetryFirst
            | SessionRule::AnnouncesEntries
            | SessionRule::AsksBeforeEachRun
            | SessionRule::AsksForLeastRoom
            | SessionRule::BranchSummariesThink
            | SessionRule::ClonesSavedSessionsOnly
            | SessionRule::CountsWholeFile
            | SessionRule::CyclesSingleModel
            | SessionRule::DeclaresTools
            | SessionRule::EstimatesAllMessages
            | SessionRule::FitsImages
            | SessionRule::LeavesOutFailedAnswers
            | SessionRule::MovesIdleSessionsOnly
            | SessionRule::NewSessionsTakeSettings
            | SessionRule::OmitsDate
            | SessionRule::OverflowsEndRuns
            | SessionRule::PathsHaveHome
            | SessionRule::PromptsStoreLevel
            | SessionRule::QueuesEndSilently
            | SessionRule::QueuesFollowFailures
            | SessionRule::RefusesPromptsInCompactions
            | SessionRule::RequestsOfNewestPi
            | SessionRule::RunsIncludeRetries
            | SessionRule::RunsTakeNextTurn
            | SessionRule::SelectedModelsTakeLevel
            | SessionRule::ShellMessagesFollowRun
            | SessionRule::SkipsEmptyCompactions
            | SessionRule::SummariesUseModelLimit
            | SessionRule::SwitchesModelInRun
            | SessionRule::ToolsKeepOrder => self.is_newest_pi(),
            // Points of oh-my-pi 18 (dialects.md 14.1).
            SessionRule::AnnouncesCommands
            | SessionRule::CompactsAsOmp
            | SessionRule::ExportsEmptySessions
            | SessionRule::ExtensionsSeeOmp
            | SessionRule::KnowsQuotas
            | SessionRule::LeavesOutOverflows
            | SessionRule::LostClientsGetMessages
            | SessionRule::NegotiatesNewVersionsOnly
            | SessionRule::OmitsEmptyText
            | SessionRule::ResultsFollowEnds
            | SessionRule::ResumesAfterCompaction
            | SessionRule::ShowsPrompt => self.is_newest_omp(),
            // Both.
            SessionRule::LostLevelsStayOff => self.is_newest_pi() || self.is_newest_omp(),
            // As in pi since 0.74.
            SessionRule::AbortedAnswersEndRetries => matches!(self, Self::Auto | Self::Pi | Self::PiDelta),
            // As in pi 0.74.
            SessionRule::PromptsJoinRetries => matches!(self, Self::Auto | Self::Pi),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_in_their_dialects_only() {
        let rows: [(SessionRule, &[Dialect]); 6] = [
            (SessionRule::CompactsAsOmp, &[Dialect::OmpNow]),
            (SessionRule::DeclaresTools, &[Dialect::PiDelta]),
            (
                SessionRule::LostLevelsStayOff,
                &[Dialect::OmpNow, Dialect::PiDelta],
            ),
            (SessionRule::OmitsEmptyText, &[Dialect::OmpNow]),
            (SessionRule::PromptsJoinRetries, &[Dialect::Auto, Dialect::Pi]),
            (SessionRule::ResultsFollowEnds, &[Dialect::OmpNow]),
        ];
        for (rule, dialects) in rows {
            for dialect in Dialect::ALL {
                assert_eq!(
                    dialect.follows(rule),
                    dialects.contains(&dialect),
                    "{rule:?} {dialect:?}"
                );
            }
        }
    }
}
