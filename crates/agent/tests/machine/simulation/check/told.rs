//! What must hold for the events of clients: starts and ends, and their content.

use std::sync::Arc;

use pinion_agent::{CompactOutcome, Input, ModelInput, QueueKind, Verdict};
use wire::event::CompactionReason;
use wire::state::InterruptMode;
use wire::{AssistantMessage, Event, Message, StopReason};

use super::super::calls::Calls;
use super::{Checked, Checker, Next, Run, Say, Turn, good, must, said, same};

impl Checker {
    pub(super) fn on_event(&mut self, event: &Event) -> Checked {
        match event {
            Event::ToolExecutionStart {
                parent_tool_call_id: Some(_),
                ..
            }
            | Event::ToolExecutionUpdate {
                parent_tool_call_id: Some(_),
                ..
            }
            | Event::ToolExecutionEnd {
                parent_tool_call_id: Some(_),
                ..
            } => self.hooked.event(event),
            Event::AgentStart => {
                self.has_run = true;
                self.on_agent_start()
            }
            Event::AgentEnd {
                messages, will_retry, ..
            } => self.on_agent_end(messages, *will_retry),
            Event::AgentSettled { aborted } => self.on_settled(*aborted),
            Event::TurnStart => self.on_turn_start(),
            Event::TurnEnd {
                message,
                tool_results,
            } => self.on_turn_end(message, tool_results),
            Event::MessageStart { message } => self.on_message_start(message),
            Event::MessageEnd { message } => self.on_message_end(message),
            Event::MessageUpdate {
                assistant_message_event,
                ..
            } => {
                let open = self
                    .open
                    .as_ref()
                    .is_some_and(|open| open.as_assistant().is_some());
                let own = matches!(&self.given, Input::Model(ModelInput::Update(given, _)) if given == assistant_message_event);
                must(open && own && self.asking, "an update of nothing")
            }
            Event::ToolExecutionStart { tool_call_id, .. } => self.turn()?.calls.on_start(tool_call_id),
            Event::ToolExecutionUpdate { tool_call_id, .. } => self.turn()?.calls.on_update(tool_call_id),
            Event::ToolExecutionEnd {
                tool_call_id,
                result,
                is_error,
                duration_ms,
                ..
            } => {
                let (aborted, timed) = (self.aborted, duration_ms.is_some());
                self.turn()?
                    .calls
                    .on_end(tool_call_id, result, *is_error, timed, aborted)
            }
            Event::QueueUpdate { steering, follow_up } => self.on_queue(steering, follow_up),
            Event::CompactionStart { reason } => self.on_compaction_start(*reason),
            Event::CompactionEnd { .. } => self.on_compaction_end(event),
            Event::AutoRetryStart {
                attempt, delay_ms, ..
            } => self.on_retry_start(*attempt, *delay_ms),
            Event::AutoRetryEnd {
                success,
                attempt,
                final_error,
            } => self.on_retry_end(*success, *attempt, final_error.as_deref()),
            Event::TodoAutoClear => {
                self.cleared = self
                    .cleared
                    .checked_sub(1)
                    .ok_or("a todo left that was not done")?;
                Ok(())
            }
            other => Err(format!("{other:?} is not the machine's to tell")),
        }
    }

    fn on_agent_start(&mut self) -> Checked {
        must(
            self.run.is_none() && self.compaction.is_none(),
            "a run inside of something",
        )?;
        let retry = matches!(self.given, Input::RetryDue) && std::mem::take(&mut self.waiting);
        must(!self.waiting, "a run although one waits to be tried again")?;
        let again = std::mem::take(&mut self.healed);
        let joined = self.joined.take();
        let steering = joined.as_ref().map(|joined| joined.steering);
        self.prompts
            .extend(joined.into_iter().flat_map(|joined| joined.messages));
        let queued = !retry && !again && self.prompts.is_empty();
        if queued {
            self.seen.push("run for what was queued meanwhile");
            must(self.rest && self.fresh > 0, "a run that nothing called for")?;
            must(self.retry.is_none(), "messages that wait begin a retry")?;
        }
        must(
            !self.aborted || !self.prompts.is_empty(),
            "a run began after an abort",
        )?;
        self.rest = false;
        self.fresh = 0;
        self.run = Some(Run {
            added: Vec::new(),
            turns: 0,
            queued,
            immediate: self.settings.interrupt_mode == InterruptMode::Immediate,
            steering,
            answer: None,
            goes_on: false,
        });
        Ok(())
    }

    fn on_turn_start(&mut self) -> Checked {
        must(self.turn.is_none(), "a turn inside of a turn")?;
        let prompts: Vec<_> = self.prompts.drain(..).map(Say::Prompt).collect();
        let settings = self.settings;
        let mut due = self.queues.due(QueueKind::Steering, &settings);
        let later = self.queues.due(QueueKind::FollowUp, &settings);
        let run = self.run()?;
        let may_follow = if run.turns == 0 { run.queued } else { !run.goes_on };
        run.turns += 1;
        if let Some(most) = run.steering.take() {
            due.truncate(most);
        }
        let follows = due.is_empty() && may_follow;
        if follows {
            due = later;
        }
        let terminated =
            follows && !due.is_empty() && matches!(self.given, Input::Tool(..) | Input::Context(_));
        self.seen.extend(terminated.then_some("follow-up taken"));
        let script = prompts.into_iter().chain(due.into_iter().map(Say::Queued));
        self.turn = Some(Turn {
            script: script.collect(),
            ..Turn::default()
        });
        Ok(())
    }

    fn on_message_start(&mut self, message: &Arc<Message>) -> Checked {
        must(self.open.is_none(), "a message inside of a message")?;
        self.open = Some(Arc::clone(message));
        let aborted = self.aborted;
        let turn = self.turn()?;
        must(
            turn.answer.is_none() || matches!(**message, Message::ToolResult(_)),
            "said after the answer",
        )?;
        match message.as_ref() {
            Message::Assistant(_) if turn.asked => Ok(()),
            Message::Assistant(_) => {
                let waits = turn.script.iter().any(|say| matches!(say, Say::Prompt(_)));
                must(
                    aborted && !waits && turn.delivered == 0,
                    "an answer that nobody asked for",
                )
            }
            Message::ToolResult(result) => {
                let told = turn.calls.on_result(turn.results.len(), result);
                let is_early = !turn.calls.all_ended();
                self.seen
                    .extend(is_early.then_some("result before the end of another call"));
                told
            }
            _ => match turn.script.pop_front() {
                Some(Say::Prompt(prompt)) => must(Arc::ptr_eq(&prompt, message), "another prompt was due"),
                Some(Say::Queued(text)) => {
                    turn.delivered += 1;
                    must(said(message) == text, "another queued message was due")
                }
                None => Err("said what was not due".to_owned()),
            },
        }
    }

    fn on_message_end(&mut self, message: &Arc<Message>) -> Checked {
        let began = self.open.take().ok_or("a message ended that never began")?;
        match message.as_ref() {
            Message::Assistant(answer) => self.on_answer(message, answer)?,
            other => {
                must(Arc::ptr_eq(&began, message), "another message ended than began")?;
                if matches!(other, Message::User(_)) {
                    self.overflowed = false;
                }
                if matches!(other, Message::ToolResult(_)) {
                    self.turn()?.results.push(Arc::clone(message));
                }
            }
        }
        self.run()?.added.push(Arc::clone(message));
        Ok(())
    }

    fn on_answer(&mut self, message: &Arc<Message>, answer: &AssistantMessage) -> Checked {
        let (aborted, order) = (self.aborted, self.settings.results);
        let asked = self.turn()?.asked;
        let right = match &self.given {
            Input::Model(ModelInput::Finished(given, _)) if asked => {
                let lost_race = aborted && !given.failed();
                self.seen.extend(lost_race.then_some("answer after abort"));
                (lost_race && answer.stop_reason == StopReason::Aborted && answer.content == given.content)
                    || given == answer
            }
            _ => !asked && answer.stop_reason == StopReason::Aborted && answer.content.is_empty(),
        };
        must(right, "an answer that the model did not give")?;
        must(!aborted || answer.failed(), "an answer counts after an abort")?;
        let turn = self.turn()?;
        turn.answer = Some(Arc::clone(message));
        if !answer.failed() {
            turn.calls = Calls::of(answer, order);
            let cut_off = answer.stop_reason == StopReason::Length && turn.calls.len() > 0;
            self.seen.extend(cut_off.then_some("cut off calls"));
            self.overflowed = false;
        }
        if asked && self.retry.is_some() && self.ends_retries(answer) {
            self.seen
                .extend(answer.failed().then_some("retry ended by an abort"));
            self.next = Next::RetrySucceeded;
        }
        Ok(())
    }

    fn on_turn_end(&mut self, message: &Arc<Message>, results: &[Arc<Message>]) -> Checked {
        let turn = self.turn.take().ok_or("a turn ended that never began")?;
        must(self.open.is_none(), "a turn ended inside of a message")?;
        let answer = turn.answer.ok_or("a turn ended without an answer")?;
        must(Arc::ptr_eq(&answer, message), "turn_end tells another answer")?;
        must(same(&turn.results, results), "turn_end tells other results")?;
        must(
            turn.calls.len() == results.len() && turn.calls.all_ended(),
            "a call without a result",
        )?;
        self.seen
            .extend(turn.calls.is_interrupted().then_some("calls interrupted"));
        let run = self.run()?;
        run.goes_on = turn.calls.want_an_answer();
        let terminated = turn.calls.len() > 0 && !run.goes_on;
        run.answer = Some(answer);
        self.seen.extend(terminated.then_some("all results terminate"));
        Ok(())
    }

    fn on_agent_end(&mut self, messages: &[Arc<Message>], will_retry: bool) -> Checked {
        let run = self.run.take().ok_or("a run ended that never began")?;
        must(self.turn.is_none(), "a run ended inside of a turn")?;
        must(same(&run.added, messages), "agent_end tells other messages")?;
        let answer = run.answer.ok_or("a run ended without an answer")?;
        if good(&answer).is_some() {
            must(!self.aborted, "an aborted run ended without a mark")?;
            must(!run.goes_on, "a run ended although results wait")?;
            must(self.queues.len() == 0, "a run ended although messages wait")?;
            self.rest = true;
            self.fresh = 0;
            return must(!will_retry, "a good run is to be tried again");
        }
        let verdict = match &self.given {
            Input::Model(ModelInput::Finished(_, verdict)) if !self.aborted => *verdict,
            _ => Verdict::Final,
        };
        let settings = self.settings.retry;
        self.next = match verdict {
            Verdict::Retry(_) if settings.enabled && self.retry.unwrap_or(0) < settings.max_retries => {
                Next::RetryStart
            }
            Verdict::Overflow if !self.overflowed && self.retry.is_some() && self.is_newest_pi() => {
                Next::RetryGivenUp
            }
            Verdict::Overflow if !self.overflowed => Next::CompactionStart(CompactionReason::Overflow),
            _ => {
                self.note_failure();
                return must(!will_retry, "a run is to be tried again for no reason");
            }
        };
        let popped = self.expected.pop().ok_or("no answer to leave")?;
        self.left.push(popped);
        must(will_retry, "a run that must be tried again is not")
    }

    fn on_settled(&mut self, aborted: bool) -> Checked {
        must(std::mem::take(&mut self.has_run), "settled without a run")?;
        self.at_rest(aborted)
    }

    /// Everything must be over.
    pub(super) fn at_rest(&mut self, aborted: bool) -> Checked {
        must(
            self.run.is_none() && self.compaction.is_none() && !self.waiting && !self.moving,
            "settled in the middle of something",
        )?;
        must(self.retry.is_none(), "settled without auto_retry_end")?;
        must(aborted == self.aborted, "settled tells wrongly about the abort")?;
        must(self.prompts.is_empty(), "a prompt was never said")?;
        must(
            aborted || !self.rest || self.fresh == 0,
            "what was queued meanwhile did not start a run",
        )?;
        self.next = Next::Idle;
        Ok(())
    }

    fn on_queue(&mut self, steering: &[String], follow_up: &[String]) -> Checked {
        if !matches!(self.given, Input::Enqueue(..) | Input::ClearQueue) {
            let text = match self.turn()?.script.front() {
                Some(Say::Queued(text)) => text.clone(),
                _ => return Err("a queue changed although nothing was due".to_owned()),
            };
            self.queues.take(&text)?;
            self.next = Next::Said(text);
        }
        self.queues.same(steering, follow_up)
    }

    fn on_compaction_start(&mut self, reason: CompactionReason) -> Checked {
        must(
            self.turn.is_none() && self.compaction.is_none() && !self.waiting,
            "compacting inside of something",
        )?;
        let right = match &self.given {
            Input::Compact => reason == CompactionReason::Manual,
            Input::Prompt { full: true, .. } | Input::Context(true) => reason == CompactionReason::Threshold,
            Input::Model(ModelInput::Finished(_, Verdict::Overflow)) => reason == CompactionReason::Overflow,
            _ => false,
        };
        must(right, "compacting for no reason")?;
        if reason == CompactionReason::Manual {
            self.rest = true;
            self.fresh = 0;
        }
        self.overflowed |= reason == CompactionReason::Overflow;
        self.compaction = Some(reason);
        self.seen.push(match (reason, self.run.is_some()) {
            (CompactionReason::Manual, _) => "manual compaction",
            (CompactionReason::Overflow, _) => "overflow",
            (CompactionReason::Threshold, true) => "compaction between turns",
            (CompactionReason::Threshold, false) => "compaction before or after a run",
        });
        self.next = Next::Compact(reason);
        Ok(())
    }

    fn on_compaction_end(&mut self, event: &Event) -> Checked {
        let Event::CompactionEnd {
            reason,
            result,
            aborted,
            will_retry,
            error_message,
        } = event
        else {
            return Ok(());
        };
        let Some(started) = self.compaction.take() else {
            self.seen.push("overflow twice");
            let twice = matches!(
                self.given,
                Input::Model(ModelInput::Finished(_, Verdict::Overflow))
            );
            let told = *reason == CompactionReason::Overflow
                && result.is_none()
                && !will_retry
                && !aborted
                && error_message.is_some();
            must(
                self.retry.is_none() || !self.is_newest_pi(),
                "retries ended after the recovery",
            )?;
            return must(twice && told, "a compaction ended that never began");
        };
        let Input::Compacted(outcome) = &self.given else {
            return Err("a compaction ended by itself".to_owned());
        };
        let (done, failed) = (
            matches!(outcome, CompactOutcome::Done { .. }),
            matches!(outcome, CompactOutcome::Failed(_)),
        );
        let again = done && started == CompactionReason::Overflow && !self.aborted;
        let right = *reason == started
            && result.is_some() == done
            && *aborted == matches!(outcome, CompactOutcome::Aborted)
            && *will_retry == again
            && error_message.is_some() == failed;
        self.seen.push(match () {
            () if again => "overflow healed",
            () if done => "compaction done",
            () if failed => "compaction failed",
            () => "compaction aborted",
        });
        self.healed = again;
        if again {
            self.next = Next::AgentStart;
        } else if started == CompactionReason::Overflow {
            self.note_failure();
        }
        must(right, "compaction_end tells the wrong thing")
    }

    fn on_retry_start(&mut self, attempt: u32, delay_ms: u64) -> Checked {
        let asked = match &self.given {
            Input::Model(ModelInput::Finished(_, Verdict::Retry(asked))) => *asked,
            _ => None,
        };
        must(
            attempt == self.retry.unwrap_or(0) + 1,
            "retries are counted wrongly",
        )?;
        must(
            delay_ms == self.settings.retry.delay_ms(attempt, asked),
            "a wait of the wrong length",
        )?;
        self.retry = Some(attempt);
        self.next = Next::Timer(delay_ms);
        Ok(())
    }

    fn on_retry_end(&mut self, success: bool, attempt: u32, error: Option<&str>) -> Checked {
        self.seen.push(match (success, &self.given) {
            (true, _) => "retry succeeded",
            (false, Input::Abort | Input::AbortRetry) => "retry cancelled",
            (false, _) => "retry given up",
        });
        must(
            self.retry.take() == Some(attempt),
            "auto_retry_end without a start, or miscounted",
        )?;
        let answered = self
            .turn
            .as_ref()
            .and_then(|turn| turn.answer.as_deref())
            .and_then(Message::as_assistant)
            .is_some_and(|answer| self.ends_retries(answer));
        if matches!(self.given, Input::AbortRetry) && self.joined.is_none() {
            self.note_failure();
        }
        let names_abort =
            success || !self.aborted || !self.is_newest_pi() || error == Some("Retry cancelled");
        must(names_abort, "auto_retry_end names no abort")?;
        must(success == answered, "auto_retry_end tells the wrong thing")
    }
}
