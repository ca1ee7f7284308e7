//! Which reply a request gets. Replies are only chosen here, not sent.

use std::cell::LazyCell;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::encode::pyjson;
use super::record::Request;
use super::reply::{Match, Reply};

/// A rule that makes up replies.
pub(crate) type Rule = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The replies of a server and what has become of them.
#[derive(Default)]
pub(crate) struct Script {
    replies: Vec<(Arc<Reply>, bool)>,
    default: Option<Arc<Reply>>,
    rule: Option<Rule>,
    last: Option<Arc<Reply>>,
    served: u64,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("replies", &self.replies.len())
            .field("served", &self.served)
            .finish()
    }
}

/// What [`Script::pick`] found.
pub(crate) enum Picked {
    /// This reply, which is the `n`th one served (from 1).
    Reply(Arc<Reply>, u64),
    /// The rule decides; it runs outside the lock. The number is as above.
    Rule(Rule, u64),
    /// There is no reply.
    Nothing,
}

impl Script {
    pub(crate) fn push(&mut self, reply: Reply) {
        self.replies.push((Arc::new(reply), false));
    }

    pub(crate) fn set_default(&mut self, reply: Reply) {
        self.default = Some(Arc::new(reply));
    }

    pub(crate) fn set_rule(&mut self, rule: Rule) {
        self.rule = Some(rule);
    }

    /// Positions of the unused replies, counted from 0.
    pub(crate) fn unused(&self) -> Vec<usize> {
        let open =
            |(i, (r, used)): (usize, &(Arc<Reply>, bool))| (!used && !r.repeat && !r.optional).then_some(i);
        self.replies.iter().enumerate().filter_map(open).collect()
    }

    /// Chooses a reply: for a client library's retry the same one again, else the first unused reply that fits, else the
    /// rule, else the default.
    pub(crate) fn pick(&mut self, request: &Request) -> Picked {
        if request.sdk_retry > 0
            && let Some(last) = self.last.as_ref().filter(|r| !r.per_try)
        {
            return Picked::Reply(Arc::clone(last), self.served);
        }
        self.served += 1;
        let text = LazyCell::new(|| pyjson::to_string(&request.body));
        let scripted = self.replies.iter_mut().find(|(r, used)| {
            (!*used || r.repeat)
                && r.matching
                    .as_ref()
                    .is_none_or(|m| fits(m, request, || text.as_str()))
        });
        if let Some((reply, used)) = scripted {
            *used = true;
            self.last = Some(Arc::clone(reply));
            return Picked::Reply(Arc::clone(reply), self.served);
        }
        self.last = None;
        if let Some(rule) = &self.rule {
            return Picked::Rule(Arc::clone(rule), self.served);
        }
        match &self.default {
            Some(reply) => Picked::Reply(Arc::clone(reply), self.served),
            None => Picked::Nothing,
        }
    }
}

fn fits<'a>(m: &Match, request: &Request, text: impl Fn() -> &'a str) -> bool {
    m.contains.as_ref().is_none_or(|s| text().contains(s))
        && m.not_contains.as_ref().is_none_or(|s| !text().contains(s))
        && m.tools.is_none_or(|want| offers_tools(&request.body) == want)
        && m.api.is_none_or(|api| request.api == Some(api))
}

fn offers_tools(body: &Value) -> bool {
    let filled = |v: &Value| v.as_array().is_some_and(|a| !a.is_empty());
    body.get("tools").is_some_and(filled) || body.pointer("/config/tools").is_some_and(filled)
}
