//! Runs that follow by themselves: the model is reminded of open todos, or told a rule that its answer went against
//! (dialects.md 8). `todo` and `ttsr` decide when a reminder is due and its text.

use std::sync::Arc;

use wire::entry::TtsrInjection;
use wire::{EntryBody, Event, Message, Rule, StreamEvent};

use crate::effect::Effect;
use crate::output::Ending;
use crate::phase::Run;
use crate::todo::REMINDER_MESSAGE;
use crate::ttsr::hidden;
use crate::turn_loop::TurnLoop;

impl TurnLoop {
    /// A run ended well: reminds the model if todos are open, else all is quiet.
    pub(crate) fn remind(&mut self, now: i64, out: &mut Vec<Effect>) {
        let Some(reminder) = self.todos.remind() else {
            // A client changed the list while the conversation was being compacted.
            self.settle(false, out);
            return;
        };
        self.add_hidden(hidden(REMINDER_MESSAGE, reminder.text, now), out);
        out.push(Effect::Emit(reminder.event));
        self.start_run(Vec::new(), now, out);
    }

    /// Rules that match what arrived now and want the answer stopped.
    pub(crate) fn watch(&mut self, event: &StreamEvent) -> Vec<Arc<Rule>> {
        match &mut self.ttsr {
            // Deltas still come between the cancellation and the end of the request; they must not trigger a second time.
            Some(watch) if !self.aborted && self.stopped_by.is_empty() => watch.on_update(event),
            _ => Vec::new(),
        }
    }

    /// Stops the request that is out. It still ends like every other; `tell_rules` follows then.
    pub(crate) fn stop_answer(&mut self, rules: Vec<Arc<Rule>>, out: &mut Vec<Effect>) {
        if rules.is_empty() {
            return;
        }
        out.push(Effect::Emit(Event::TtsrTriggered { rules: rules.clone() }));
        // Kept for the end of the answer, which tells a stop by rules from an abort.
        self.stopped_by = rules;
        out.push(Effect::CancelModel);
    }

    /// The answer that rules stopped has ended: tells the model the rules and begins another run.
    pub(crate) fn tell_rules(&mut self, run: Run, rules: &[Arc<Rule>], now: i64, out: &mut Vec<Effect>) {
        // The stopped answer used up the rest: rules that no request can follow are not told.
        if let Some(limit) = self.budget.reached() {
            return self.finish_run(run, false, Some(limit), out);
        }
        out.push(Effect::Emit(self.output.end(run, Ending::RETRY)));
        if let Some(watch) = &mut self.ttsr {
            if !watch.keeps_partial() {
                // As with a retry: it stays in the file but leaves the conversation.
                self.messages.pop();
            }
            let message = watch.tell(rules, now);
            self.add_hidden(message, out);
            out.push(Effect::Record(injection_entry(rules)));
        }
        self.start_run(Vec::new(), now, out);
    }

    /// Do rules wait to be told when the run would end?
    pub(crate) fn has_notes(&self) -> bool {
        self.ttsr.as_ref().is_some_and(crate::ttsr::Watch::has_notes)
    }

    /// Tells the model the rules that matched without stopping an answer.
    pub(crate) fn say_notes(&mut self, run: &mut Run, now: i64, out: &mut Vec<Effect>) {
        let Some(watch) = self.ttsr.as_mut().filter(|watch| watch.has_notes()) else {
            return;
        };
        let rules = watch.take_notes();
        let message = watch.tell(&rules, now);
        self.say(run, Arc::new(message), out);
        out.push(Effect::Record(injection_entry(&rules)));
    }

    /// A message that only the model hears: on disk and in the conversation, but in no run.
    fn add_hidden(&mut self, message: Message, out: &mut Vec<Effect>) {
        let message = Arc::new(message);
        out.push(Effect::Persist(Arc::clone(&message)));
        self.messages.push(message);
    }
}

fn injection_entry(rules: &[Arc<Rule>]) -> EntryBody {
    EntryBody::TtsrInjection(TtsrInjection {
        injected_rules: rules.iter().map(|rule| rule.name.clone()).collect(),
        extra: wire::Extra::default(),
    })
}
