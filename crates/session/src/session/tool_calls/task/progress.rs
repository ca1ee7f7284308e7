//! What a sub-agent has done so far, summed up from the events of its session.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::{Map, Value};
use wire::content::AssistantBlock;
use wire::run_limits::ReachedLimit;
use wire::subagent::{AgentProgress, RecentTool, SubagentStatus};
use wire::{AssistantMessage, Event, Message, StopReason, Usage};

use crate::session::clock::now_ms;
use crate::{limits, strings};

/// The sum of a sub-agent's work.
pub(super) struct Summary {
    progress: AgentProgress,
    recent: VecDeque<RecentTool>,
    started: Instant,
    usage: Usage,
    /// The newest answer.
    answer: Option<AssistantMessage>,
    limit: Option<ReachedLimit>,
    is_settled: bool,
}

impl Summary {
    /// The sum at the start of the work.
    pub(super) fn new(progress: AgentProgress) -> Self {
        Self {
            progress,
            recent: VecDeque::new(),
            started: Instant::now(),
            usage: Usage::default(),
            answer: None,
            limit: None,
            is_settled: false,
        }
    }

    /// The sum for clients.
    pub(super) fn progress(&self) -> AgentProgress {
        let elapsed = self.started.elapsed().as_millis();
        let mut progress = self.progress.clone();
        progress.recent_tools = self.recent.iter().cloned().collect();
        progress.totals.duration_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        progress
    }

    /// Sets the state.
    pub(super) fn set_status(&mut self, status: SubagentStatus) {
        self.progress.status = status;
    }

    /// Sets the model, as `provider/id`.
    pub(super) fn set_model(&mut self, model: String) {
        self.progress.resolved_model = model;
    }

    /// What the models of the sub-agent used.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns true once the work has ended.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Takes an event of the session. Returns true if the sum changed.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::ToolExecutionStart { tool_name, args, .. } => self.begin_tool(tool_name, args),
            Event::ToolExecutionEnd { .. } => self.end_tool(),
            Event::MessageEnd { message, .. } => match message.as_ref() {
                Message::Assistant(answer) => self.add_answer(answer),
                _ => return false,
            },
            Event::AgentEnd { limit, .. } => self.limit = *limit,
            // Not with `agent_end`, which a retry may follow.
            Event::AgentSettled { .. } => self.is_settled = true,
            _ => return false,
        }
        true
    }

    fn begin_tool(&mut self, name: &str, args: &Map<String, Value>) {
        let args = Value::Object(args.clone()).to_string();
        self.progress.current_tool = Some(name.to_owned());
        self.progress.current_tool_args = Some(args.chars().take(limits::SUBAGENT_ARGS).collect());
        self.progress.current_tool_start_ms = Some(now_ms());
    }

    fn end_tool(&mut self) {
        self.progress.totals.tool_count += 1;
        self.progress.current_tool_start_ms = None;
        let args = self.progress.current_tool_args.take().unwrap_or_default();
        // Parallel calls share one place: the first end takes the name, and the others find none.
        let Some(tool) = self.progress.current_tool.take() else {
            return;
        };
        self.recent.push_front(RecentTool {
            tool,
            args,
            end_ms: now_ms(),
        });
        self.recent.truncate(limits::SUBAGENT_RECENT_TOOLS);
    }

    fn add_answer(&mut self, answer: &AssistantMessage) {
        self.usage = self.usage.plus(&answer.usage);
        let progress = &mut self.progress;
        let totals = &mut progress.totals;
        totals.requests += 1;
        let counts = [answer.usage.input, answer.usage.output, answer.usage.cache_write];
        totals.tokens = counts.into_iter().fold(totals.tokens, u64::saturating_add);
        totals.cost += answer.usage.cost.total;
        let text = text_of(answer);
        let lines: Vec<&str> = text.lines().collect();
        let newest = lines.iter().rev().take(limits::SUBAGENT_RECENT_LINES).rev();
        // An answer that only calls tools leaves the text of the one before it.
        if !lines.is_empty() {
            progress.recent_output = newest.map(|line| (*line).to_owned()).collect();
        }
        self.answer = Some(answer.clone());
    }

    /// The text of the result, or why there is none.
    ///
    /// # Errors
    /// A text for the model that gave the task.
    pub(super) fn result(&self) -> Result<String, String> {
        let text = self.answer.as_ref().map(text_of).unwrap_or_default();
        // First: a run that a limit ended has an aborted answer, and the model must learn of the limit.
        if let Some(limit) = self.limit {
            return Err(strings::subagent_limit(limit, &text));
        }
        let Some(answer) = &self.answer else {
            return Err(strings::SUBAGENT_SILENT.to_owned());
        };
        match answer.stop_reason {
            StopReason::Error => Err(answer
                .error_message
                .clone()
                .unwrap_or_else(|| strings::SUBAGENT_SILENT.to_owned())),
            StopReason::Aborted => Err(strings::ABORTED.to_owned()),
            _ if text.trim().is_empty() => Err(strings::SUBAGENT_SILENT.to_owned()),
            _ => Ok(text),
        }
    }

    /// Returns true if the work was aborted.
    pub(super) fn is_aborted(&self) -> bool {
        let answer = self.answer.as_ref();
        // A limit ends a run like an abort, but then the task has failed.
        self.limit.is_none() && answer.is_some_and(|answer| answer.stop_reason == StopReason::Aborted)
    }
}

fn text_of(answer: &AssistantMessage) -> String {
    let texts = answer.content.iter().filter_map(|block| match block {
        AssistantBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use wire::run_limits::LimitKind;
    use wire::subagent::{AgentSource, SubagentTotals};
    use wire::{TextContent, ToolResult};

    use super::*;

    fn summary() -> Summary {
        Summary::new(AgentProgress {
            index: 0,
            id: "general-0".to_owned(),
            agent: "general".to_owned(),
            agent_source: AgentSource::User,
            status: SubagentStatus::Running,
            task: "look".to_owned(),
            description: None,
            current_tool: None,
            current_tool_args: None,
            current_tool_start_ms: None,
            recent_tools: Vec::new(),
            recent_output: Vec::new(),
            totals: SubagentTotals::default(),
            resolved_model: String::new(),
        })
    }

    fn answer(text: &str, reason: StopReason) -> Event {
        let mut answer = AssistantMessage::begin("api", "test", "a", 1);
        answer.stop_reason = reason;
        answer.usage.input = 3;
        answer.usage.output = 4;
        answer.content.push(AssistantBlock::Text(TextContent {
            text: text.to_owned(),
            ..TextContent::default()
        }));
        Event::MessageEnd {
            message: Arc::new(Message::Assistant(answer)),
        }
    }

    fn begin(tool: &str, text: &str) -> Event {
        Event::ToolExecutionStart {
            tool_call_id: tool.to_owned(),
            tool_name: tool.to_owned(),
            args: json!({"text": text}).as_object().unwrap().clone(),
            parent_tool_call_id: None,
        }
    }

    fn end(tool: &str) -> Event {
        Event::ToolExecutionEnd {
            tool_call_id: tool.to_owned(),
            tool_name: tool.to_owned(),
            result: ToolResult::text(""),
            is_error: false,
            duration_ms: None,
            parent_tool_call_id: None,
        }
    }

    fn ended(limit: Option<ReachedLimit>) -> Event {
        Event::AgentEnd {
            messages: Vec::new(),
            will_retry: false,
            limit,
            result: None,
            result_error: None,
        }
    }

    #[test]
    fn recent_tools_are_newest_first_and_bounded() {
        let mut summary = summary();
        for n in 0..limits::SUBAGENT_RECENT_TOOLS + 2 {
            assert!(summary.take(&begin(&n.to_string(), "x")));
            assert!(summary.take(&end(&n.to_string())));
        }
        let progress = summary.progress();
        assert_eq!(progress.recent_tools.len(), limits::SUBAGENT_RECENT_TOOLS);
        let newest = (limits::SUBAGENT_RECENT_TOOLS + 1).to_string();
        assert_eq!(progress.recent_tools[0].tool, newest);
        assert_eq!(
            progress.totals.tool_count,
            limits::SUBAGENT_RECENT_TOOLS as u64 + 2
        );
        assert_eq!((progress.current_tool, progress.current_tool_args), (None, None));
    }

    #[test]
    fn long_arguments_are_cut_between_letters() {
        let mut summary = summary();
        summary.take(&begin("write", &"ä".repeat(limits::SUBAGENT_ARGS)));
        let args = summary.progress().current_tool_args.unwrap();
        assert_eq!(args.chars().count(), limits::SUBAGENT_ARGS);
    }

    #[test]
    fn shown_output_is_the_end_of_newest_text() {
        let mut summary = summary();
        let text: Vec<String> = (0..limits::SUBAGENT_RECENT_LINES + 2)
            .map(|n| n.to_string())
            .collect();
        summary.take(&answer(&text.join("\n"), StopReason::Stop));
        assert_eq!(summary.progress().recent_output, text[2..]);
        summary.take(&answer("", StopReason::ToolUse));
        assert_eq!(
            summary.progress().recent_output,
            text[2..],
            "a silent answer shows nothing"
        );
    }

    #[test]
    fn totals_sum_all_answers() {
        let mut summary = summary();
        for _ in 0..2 {
            summary.take(&answer("x", StopReason::Stop));
        }
        let totals = summary.progress().totals;
        assert_eq!((totals.requests, totals.tokens), (2, 14));
        assert_eq!(summary.usage().input, 6);
        assert!(!summary.take(&Event::TurnStart), "nothing to tell");
    }

    #[test]
    fn limit_wins_over_text_of_answer() {
        let mut summary = summary();
        summary.take(&answer("half", StopReason::Aborted));
        assert!(summary.is_aborted());
        assert_eq!(summary.result(), Err(strings::ABORTED.to_owned()));
        let limit = ReachedLimit {
            kind: LimitKind::Turns,
            value: 3.0,
        };
        summary.take(&ended(Some(limit)));
        assert!(!summary.is_aborted(), "a limit is no abort");
        let error = summary.result().unwrap_err();
        assert!(error.contains("half"), "{error}");
    }

    #[test]
    fn silent_or_failed_answer_is_no_result() {
        let mut summary = summary();
        assert_eq!(summary.result(), Err(strings::SUBAGENT_SILENT.to_owned()));
        summary.take(&answer(" \n", StopReason::Stop));
        assert_eq!(summary.result(), Err(strings::SUBAGENT_SILENT.to_owned()));
        summary.take(&answer("text", StopReason::Error));
        assert!(summary.result().is_err());
        summary.take(&answer("done", StopReason::Stop));
        assert_eq!(summary.result(), Ok("done".to_owned()));
    }

    #[test]
    fn work_has_settled_once_session_says_so() {
        let mut summary = summary();
        summary.take(&ended(None));
        assert!(!summary.is_settled(), "a retry may follow");
        summary.take(&Event::AgentSettled { aborted: false });
        assert!(summary.is_settled());
    }
}
