//! Matching text that arrives in pieces. Each condition is an automaton that stands where the text ends, so that a piece
//! costs as much as it is long, independent of the text before it; the outcome is that of searching the whole text after each piece.

use std::fmt;

use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::start;
use serde_json::{Map, Value};
use wire::partial_json::PartialJson;

use crate::limits;

use super::compile::{Place, Rules};
use super::paths;

/// What arrives. Each is matched by itself; all text blocks of an answer are one, and so is all reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Text,
    Thinking,
    /// The arguments of the call at this place of the answer's content.
    Tool(usize),
}

/// One stream.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    tool: Option<String>,
    /// Rules that may still match, by their place in the list.
    watched: Vec<Watched>,
    /// The arguments so far, kept when a rule asks for paths.
    args: Option<PartialJson>,
    begun: bool,
}

#[derive(Debug, Clone)]
struct Watched {
    rule: usize,
    heads: Vec<Head>,
    asks: bool,
    /// A condition has matched; the rule waits for the path of the file. Its length decides when to look again.
    waits: Option<usize>,
}

impl Buffer {
    pub(super) fn new(tool: Option<&str>, rules: impl Iterator<Item = usize>) -> Self {
        let watched = rules.map(|rule| Watched {
            rule,
            heads: Vec::new(),
            asks: false,
            waits: None,
        });
        Self {
            tool: tool.map(str::to_owned),
            watched: watched.collect(),
            args: None,
            begun: false,
        }
    }

    /// Takes a piece; gives the rules that match now. Each rule matches a stream once.
    pub(super) fn push(&mut self, rules: &Rules, kind: Kind, piece: &str) -> Vec<usize> {
        // Not when the buffer is made: an automaton costs memory, and most calls have no rule that fits their tool.
        if !self.begun {
            self.begin(rules, kind);
        }
        if let Some(args) = &mut self.args {
            args.push(piece);
        }
        let mut matched = Vec::new();
        let (args, tool) = (&self.args, self.tool.as_deref());
        self.watched.retain_mut(|watched| {
            let Some(rule) = rules.get(watched.rule) else {
                return false;
            };
            if watched.waits.is_none() {
                let feeds = rule.conditions.iter().zip(&mut watched.heads);
                // Every head must see every piece.
                let hits = feeds.filter_map(|(automaton, head)| head.feed(automaton, piece).then_some(()));
                if hits.count() == 0 {
                    return true;
                }
                watched.waits = Some(0);
            }
            if watched.asks {
                let length = args.as_ref().map_or(0, |args| args.stable().len());
                let looked = watched.waits.unwrap_or(0);
                // Looking costs as much as the text is long: only when it has doubled.
                if length < looked.saturating_mul(2) {
                    return true;
                }
                // At least 1: doubling 0 would look at each piece.
                watched.waits = Some(length.max(1));
                let found = args.as_ref().map(paths::complete).unwrap_or_default();
                if !rule.takes(kind, tool, &found, rules.cwd()) {
                    return true;
                }
            }
            matched.push(watched.rule);
            false
        });
        matched
    }

    /// The call is complete: rules that waited for its paths.
    pub(super) fn end(&mut self, rules: &Rules, arguments: &Map<String, Value>) -> Vec<usize> {
        let found = paths::of(arguments);
        let waiting = self.watched.iter().filter(|watched| watched.waits.is_some());
        let taken = waiting.filter(|watched| {
            let rule = rules.get(watched.rule);
            // A scope does not ask for the place of the call.
            rule.is_some_and(|rule| rule.takes(Kind::Tool(0), self.tool.as_deref(), &found, rules.cwd()))
        });
        taken.map(|watched| watched.rule).collect()
    }

    fn begin(&mut self, rules: &Rules, kind: Kind) {
        self.begun = true;
        let tool = self.tool.as_deref();
        self.watched.retain_mut(|watched| {
            let Some(rule) = rules.get(watched.rule) else {
                return false;
            };
            let place = rule.place(kind, tool);
            watched.asks = place == Place::Asks;
            if place != Place::Outside {
                watched.heads = rule.conditions.iter().map(Head::new).collect();
            }
            place != Place::Outside
        });
        if self.watched.iter().any(|watched| watched.asks) {
            self.args = Some(PartialJson::new());
        }
    }
}

/// Where an automaton stands.
#[derive(Clone)]
struct Head {
    /// The states it has met so far; boxed, since it is large.
    cache: Box<Cache>,
    /// None: it can match no more.
    state: Option<LazyStateID>,
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Head {
    fn new(automaton: &DFA) -> Self {
        let mut cache = Box::new(automaton.create_cache());
        let config = start::Config::new().anchored(Anchored::No);
        let state = automaton.start_state(&mut cache, &config).ok();
        Self { cache, state }
    }

    /// Takes a piece. Does the condition match the whole text that has arrived?
    fn feed(&mut self, automaton: &DFA, piece: &str) -> bool {
        let Some(mut state) = self.state else {
            return false;
        };
        for byte in piece.bytes() {
            match automaton.next_state(&mut self.cache, state, byte) {
                // The rest of the piece does not matter: `Buffer::push` feeds a rule that has matched no more.
                Ok(next) if next.is_match() => {
                    self.state = Some(next);
                    return true;
                }
                Ok(next) if !next.is_dead() && !next.is_quit() => state = next,
                _ => {
                    self.state = None;
                    return false;
                }
            }
        }
        self.state = Some(state);
        self.matches_here(automaton, state)
    }

    /// Matches are seen one byte late; this looks past the end. It may add a state, and where there is no room for one the
    /// automaton would forget all others: then it works on a copy.
    fn matches_here(&mut self, automaton: &DFA, state: LazyStateID) -> bool {
        let has_room = self.cache.memory_usage() < limits::CONDITION_BYTES / 4 * 3;
        let end = if has_room {
            automaton.next_eoi_state(&mut self.cache, state)
        } else {
            automaton.next_eoi_state(&mut self.cache.clone(), state)
        };
        end.is_ok_and(|end| end.is_match())
    }
}
