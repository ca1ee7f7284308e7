//! Rules made ready for matching: conditions as automata, scopes and globs taken apart.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::Rule;

use crate::limits;

use super::stream::Kind;
use super::syntax;

/// Rules that can be matched, in their order.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Compiled>,
    /// The directory that relative globs start at.
    cwd: String,
}

/// A rule that can be matched.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Arc<Rule>,
    pub(super) conditions: Vec<DFA>,
    scope: Vec<Scope>,
    globs: Vec<PathGlob>,
}

/// Something that is watched.
#[derive(Debug)]
enum Scope {
    Text,
    Thinking,
    /// Calls: of one tool or all, about some files or any.
    Tool(Option<String>, Option<PathGlob>),
}

/// A glob for paths.
#[derive(Debug)]
pub(super) struct PathGlob {
    glob: GlobMatcher,
    /// Without a slash it is about names, wherever the file is.
    is_name: bool,
}

/// What a rule says to a stream, as far as its place goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Never.
    Outside,
    /// Always.
    Inside,
    /// If the call is about the right files.
    Asks,
}

impl Rules {
    /// Makes rules ready. `cwd` is the directory that relative globs start at. Errors in rules come back as
    /// sentences, with the path of each; parts that cannot be used are left out.
    #[must_use]
    pub fn new(rules: Vec<Rule>, cwd: &str) -> (Self, Vec<(String, String)>) {
        let mut problems = Vec::new();
        let mut ready = Vec::new();
        for rule in rules {
            if ready.len() >= limits::RULES {
                problems.push((
                    rule.path.clone(),
                    format!("more than {} rules; left out", limits::RULES),
                ));
                continue;
            }
            let mut complain = |text: String| problems.push((rule.path.clone(), text));
            let compiled = Compiled::new(&rule, &mut complain);
            // Without a usable condition it could never match.
            if !compiled.conditions.is_empty() {
                ready.push(compiled);
            }
        }
        let rules = Self {
            rules: ready,
            cwd: cwd.to_owned(),
        };
        (rules, problems)
    }

    /// Is there nothing to watch for?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules as they were found, in their order.
    pub fn sources(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|compiled| &*compiled.rule)
    }

    pub(super) fn cwd(&self) -> &str {
        &self.cwd
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Compiled> {
        self.rules.iter()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Compiled> {
        self.rules.get(at)
    }
}

/// The sources that [`Rules::new`] takes.
#[derive(Serialize, Deserialize)]
struct Sources<T> {
    rules: Vec<T>,
    cwd: String,
}

/// Written as sources: automata are not portable.
impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rules = self.rules.iter().map(|rule| Arc::clone(&rule.rule)).collect();
        let cwd = self.cwd.clone();
        Sources::<Arc<Rule>> { rules, cwd }.serialize(serializer)
    }
}

/// Compiled anew. What could not be used then cannot be used now either, so both match alike.
impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sources::<Rule> { rules, cwd } = Sources::deserialize(deserializer)?;
        Ok(Self::new(rules, &cwd).0)
    }
}

impl Compiled {
    fn new(rule: &Rule, complain: &mut impl FnMut(String)) -> Self {
        let mut conditions = Vec::new();
        for pattern in rule.condition.iter().take(limits::CONDITIONS) {
            match condition(pattern) {
                Ok(automaton) => conditions.push(automaton),
                Err(error) => complain(format!("condition \"{pattern}\" cannot be used: {error}")),
            }
        }
        if rule.condition.len() > limits::CONDITIONS {
            complain(format!(
                "more than {} conditions; the rest is left out",
                limits::CONDITIONS
            ));
        }
        let mut scope = Vec::new();
        for token in &rule.scope {
            match Scope::parse(token) {
                Ok(place) => scope.push(place),
                Err(error) => complain(format!("scope \"{token}\" cannot be used: {error}")),
            }
        }
        // Only if none is named: with unusable scopes alone the rule watches nothing, rather than more than its author wanted.
        if rule.scope.is_empty() {
            scope = vec![Scope::Text, Scope::Tool(None, None)];
        }
        let mut globs = Vec::new();
        for text in &rule.globs {
            match PathGlob::new(text) {
                Ok(glob) => globs.push(glob),
                Err(error) => complain(format!("glob \"{text}\" cannot be used: {error}")),
            }
        }
        if globs.is_empty() && !rule.globs.is_empty() {
            // Without its filter the rule would reach further than its author wanted.
            conditions.clear();
        }
        Self {
            rule: Arc::new(rule.clone()),
            conditions,
            scope,
            globs,
        }
    }

    /// Is this stream watched? `tool` is the name of the tool that is called.
    pub(super) fn place(&self, kind: Kind, tool: Option<&str>) -> Place {
        let places = self.scope.iter().map(|scope| scope.place(kind, tool));
        let place = places.fold(Place::Outside, Place::or);
        match place {
            Place::Inside if !self.globs.is_empty() => match kind {
                // Text for the user concerns no file.
                Kind::Text | Kind::Thinking => Place::Outside,
                Kind::Tool(_) => Place::Asks,
            },
            place => place,
        }
    }

    /// Does a call of this tool about these files count?
    pub(super) fn takes(&self, kind: Kind, tool: Option<&str>, paths: &[String], cwd: &str) -> bool {
        let in_globs = self.globs.is_empty() || self.globs.iter().any(|glob| glob.takes(paths, cwd));
        let in_scope = self.scope.iter().any(|scope| match scope.place(kind, tool) {
            Place::Outside => false,
            Place::Inside => true,
            Place::Asks => scope.glob().is_some_and(|glob| glob.takes(paths, cwd)),
        });
        in_globs && in_scope
    }
}

impl Scope {
    /// `text`, `thinking`, `tool`, `toolcall`, `NAME`, `tool:NAME`, the last four with `(GLOB)` if wanted.
    fn parse(token: &str) -> Result<Self, String> {
        let (word, glob) = match token.trim().split_once('(') {
            None => (token.trim(), None),
            Some((word, rest)) => {
                let glob = rest.strip_suffix(')').ok_or("no closing bracket")?;
                (word.trim(), Some(PathGlob::new(glob.trim())?))
            }
        };
        Ok(match (word, glob) {
            ("", _) => return Err("no name".to_owned()),
            ("text" | "thinking", Some(_)) => return Err("only tools are about files".to_owned()),
            ("text", None) => Self::Text,
            ("thinking", None) => Self::Thinking,
            ("tool" | "toolcall", glob) => Self::Tool(None, glob),
            (word, glob) => {
                let name = word.strip_prefix("tool:").unwrap_or(word).trim();
                Self::Tool(Some(name.to_owned()), glob)
            }
        })
    }

    fn place(&self, kind: Kind, tool: Option<&str>) -> Place {
        match (self, kind) {
            (Self::Text, Kind::Text) | (Self::Thinking, Kind::Thinking) => Place::Inside,
            (Self::Tool(name, glob), Kind::Tool(_)) => match (name, glob) {
                (Some(name), _) if Some(name.as_str()) != tool => Place::Outside,
                (_, Some(_)) => Place::Asks,
                (_, None) => Place::Inside,
            },
            _ => Place::Outside,
        }
    }

    fn glob(&self) -> Option<&PathGlob> {
        match self {
            Self::Tool(_, glob) => glob.as_ref(),
            Self::Text | Self::Thinking => None,
        }
    }
}

impl Place {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Inside, _) | (_, Self::Inside) => Self::Inside,
            (Self::Asks, _) | (_, Self::Asks) => Self::Asks,
            _ => Self::Outside,
        }
    }
}

impl PathGlob {
    fn new(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_start_matches("./");
        // `*` stays inside of a directory: `src/*.rs` does not mean `src/b/a.rs`.
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(Self {
            glob: glob.compile_matcher(),
            is_name: !text.contains('/'),
        })
    }

    fn takes(&self, paths: &[String], cwd: &str) -> bool {
        paths.iter().any(|path| {
            let path = path.replace('\\', "/");
            let path = path.trim_start_matches("./");
            // Models also name files by absolute paths, and globs begin at the working directory.
            // An empty directory would be a prefix of every path.
            let inside = path
                .strip_prefix(cwd)
                .and_then(|rest| rest.strip_prefix('/'))
                .filter(|_| !cwd.is_empty());
            let name = path.rsplit('/').next().filter(|_| self.is_name);
            [Some(path), inside, name]
                .into_iter()
                .flatten()
                .any(|path| self.glob.is_match(path))
        })
    }
}

/// A condition as an automaton that can be fed piece by piece. The syntax is that of the `regex` crate: no look-around and
/// no back references, so that no rule can make an answer slow.
fn condition(pattern: &str) -> Result<DFA, String> {
    let small = limits::CONDITION_BYTES;
    DFA::builder()
        // Small, since each stream has a cache for each condition. States that do not fit are computed again.
        .configure(
            DFA::config()
                .cache_capacity(small)
                .skip_cache_capacity_check(true),
        )
        .syntax(regex_automata::util::syntax::Config::new().utf8(false))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(small)))
        .build(&syntax::translated(pattern))
        .map_err(|error| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(inner) = source {
                text = inner.to_string();
                source = inner.source();
            }
            // Syntax errors draw a picture of several lines; the last names the error.
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })
}
