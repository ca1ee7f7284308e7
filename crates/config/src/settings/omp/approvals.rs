//! Approvals of `config.yml` as permissions: `tools.approvalMode`, `tools.approval` and `bash.patterns`.
//!
//! They never become looser than `config.yml` says: a value that is not understood is a fault and is asked about, and an `allow` that
//! oh-my-pi itself limits (commands) or that cannot be compared (names of MCP tools) allows nothing.

use std::path::Path;

use permissions::PermissionLayer;
use serde_json::{Map, Value};
use wire::state::PermissionMode;

use crate::diagnostic::Diagnostic;
use crate::settings::keys::distance;
use crate::settings::layers::at;
use crate::settings::permissions::misspelled_tool;
use crate::source::Scope;

/// The value of `permissions`; `None` if the file has no approvals.
pub(super) fn permissions(
    config: &Map<String, Value>,
    path: &Path,
    scope: Scope,
    tools: &[&str],
    notes: &mut Vec<Diagnostic>,
) -> Option<Value> {
    let mut found = Found {
        rules: PermissionLayer::default(),
        path,
        tools,
        notes,
    };
    found.mode(config);
    found.policies(config);
    found.patterns(config);
    found.misspelled(config);
    let mut rules = found.rules;
    if scope == Scope::Project {
        // A project allows nothing by itself.
        rules.allow.clear();
    }
    let mut out = Map::new();
    if let Some(mode) = rules.mode {
        out.insert("mode".to_owned(), mode.as_str().into());
    }
    for (key, rules) in [("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny)] {
        if !rules.is_empty() {
            out.insert(key.to_owned(), rules.into());
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// What oh-my-pi does with a call.
#[derive(Clone, Copy)]
enum Approval {
    Allow,
    Prompt,
    Deny,
}

impl Approval {
    fn parse(value: Option<&Value>) -> Option<Self> {
        match value?.as_str()?.trim().to_ascii_lowercase().as_str() {
            "allow" => Some(Self::Allow),
            "prompt" => Some(Self::Prompt),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

/// The rules so far.
struct Found<'a> {
    rules: PermissionLayer,
    path: &'a Path,
    /// Names of the built-in tools.
    tools: &'a [&'a str],
    notes: &'a mut Vec<Diagnostic>,
}

impl Found<'_> {
    fn fault(&mut self, key: &str, message: &str) {
        let message = format!("\"{key}\" {message}");
        self.notes.push(Diagnostic::fault(self.path, key, message));
    }

    /// `write` differs from `always-ask` in that files are changed without a question; the mode `ask` covers both, as for the
    /// option `--approval-mode`. `yolo` is the mode without limits, in which rules hold.
    fn mode(&mut self, config: &Map<String, Value>) {
        if config
            .get("tools")
            .is_some_and(|tools| !tools.is_object() && !tools.is_null())
        {
            self.fault(
                "tools",
                "should be a mapping; taken as the approval mode always-ask",
            );
            self.rules.mode = Some(PermissionMode::Ask);
        }
        let Some(mode) = at(config, "tools.approvalMode") else {
            return;
        };
        match mode.as_str() {
            Some("yolo") => return,
            Some("always-ask" | "write") => {}
            _ => self.fault(
                "tools.approvalMode",
                "should be always-ask, write or yolo; taken as always-ask",
            ),
        }
        self.rules.mode = Some(PermissionMode::Ask);
    }

    fn policies(&mut self, config: &Map<String, Value>) {
        let policies = match at(config, "tools.approval") {
            None => return,
            Some(Value::Object(policies)) => policies,
            Some(_) => {
                self.fault("tools.approval", "should be a mapping; every call is asked about");
                return self.rules.ask.push("*".to_owned());
            }
        };
        for (tool, value) in policies {
            if value.is_null() || tool.trim().is_empty() {
                continue;
            }
            let rules = rules_for(tool, self.tools);
            match Approval::parse(Some(value)) {
                Some(Approval::Allow) if is_allowed_as_whole(tool) => self.rules.allow.push(tool.clone()),
                Some(Approval::Allow) => {}
                Some(Approval::Prompt) => self.rules.ask.extend(rules),
                Some(Approval::Deny) => self.rules.deny.extend(rules),
                None => {
                    let key = format!("tools.approval.{tool}");
                    self.fault(&key, "should be allow, prompt or deny; taken as prompt");
                    self.rules.ask.extend(rules);
                }
            }
        }
    }

    fn patterns(&mut self, config: &Map<String, Value>) {
        const KEY: &str = "bash.patterns";
        let patterns = match at(config, KEY) {
            None => return,
            Some(Value::Array(patterns)) => patterns,
            Some(_) => {
                self.fault(KEY, "should be a list; every command is asked about");
                return self.rules.ask.push("bash".to_owned());
            }
        };
        for pattern in patterns {
            let text = pattern.get("match").and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            let rule = text.map_or_else(|| "bash".to_owned(), command_rule);
            match Approval::parse(pattern.get("approval")).filter(|_| text.is_some()) {
                // oh-my-pi still asks about some commands that such a pattern matches.
                Some(Approval::Allow) => {}
                Some(Approval::Prompt) => self.rules.ask.push(rule),
                Some(Approval::Deny) => self.rules.deny.push(rule),
                None => {
                    let message = "should be a list of mappings with match, and allow, prompt or deny as approval; taken as prompt";
                    self.fault(KEY, message);
                    self.rules.ask.push(rule);
                }
            }
        }
    }

    /// oh-my-pi ignores such a key. It looks like an approval that holds, as a misspelled key of settings.json does.
    fn misspelled(&mut self, config: &Map<String, Value>) {
        for (top, name) in [
            ("tools", "approvalMode"),
            ("tools", "approval"),
            ("bash", "patterns"),
        ] {
            let key = format!("{top}.{name}");
            if config.contains_key(&key) {
                self.fault(&key, &format!("is not a key; write {name} as a member of {top}"));
            }
            let Some(Value::Object(members)) = config.get(top) else {
                continue;
            };
            for member in members.keys().filter(|member| *member != name) {
                if distance(member, name) <= 2 {
                    let wrong = format!("{top}.{member}");
                    self.fault(&wrong, &format!("is not a key (did you mean \"{key}\"?)"));
                }
            }
        }
    }
}

/// Returns true if `allow` for this tool allows the same as in oh-my-pi. There, commands that it holds for critical are asked about all
/// the same, an MCP tool has another name, and a name is compared letter by letter.
fn is_allowed_as_whole(tool: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
    tool != "bash" && !tool.starts_with("mcp__") && tool.chars().all(is_plain)
}

/// The rules that ask about the tool of oh-my-pi, or deny it. They may match more, never less.
fn rules_for(tool: &str, tools: &[&str]) -> Vec<String> {
    /// A longer name of an MCP tool may end in a hash.
    const WHOLE_NAME: usize = 48;
    let tool = tool.trim();
    if let Some(name) = tool.strip_prefix("mcp__") {
        // oh-my-pi joins server and tool with one underscore, and leaves out what both names begin with.
        let is_cut = name.chars().count() > WHOLE_NAME;
        let name: String = name.chars().take(WHOLE_NAME).collect();
        let end = if is_cut { "*" } else { "" };
        return vec![format!("mcp__{}{end}", name.replace('_', "*"))];
    }
    match tool {
        "glob" => vec!["find".to_owned()],
        // It reads directories and web pages as well.
        "read" => ["read", "ls", "fetch"].map(str::to_owned).to_vec(),
        // The name differs by dialect.
        "todo" => vec!["todo*".to_owned()],
        // Without the star, a rule for a tool that only oh-my-pi has would count as a misspelled one for a tool of ours.
        _ if misspelled_tool(tool, tools).is_some() => vec![format!("{tool}*")],
        _ => vec![tool.to_owned()],
    }
}

/// The rule for a pattern of oh-my-pi, which compares it with the text of the whole line as well. Rules are compared with single
/// commands without their quotes, so that a pattern counts up to the first character that is not in them. They are without assignments,
/// too, which only the whole line has.
fn command_rule(pattern: &str) -> String {
    let end = pattern.find([
        '|', '&', ';', '<', '>', '(', ')', '{', '}', '$', '`', '"', '\'', '\\', '\n', '#',
    ]);
    let (head, rest) = pattern.split_at(end.unwrap_or(pattern.len()));
    let head = if rest.starts_with(['<', '>']) {
        // The number belongs to the redirection: `make 2>&1`.
        head.trim_end_matches(|letter: char| letter.is_ascii_digit())
    } else {
        head
    };
    let first = head.split_whitespace().next().unwrap_or_default();
    let (before, after) = match (first.contains('='), rest.is_empty()) {
        (true, _) => ("*", "*"),
        (false, true) => ("", ""),
        (false, false) => ("", "*"),
    };
    match head.trim_end() {
        "" => "bash".to_owned(),
        head => format!("bash({before}{head}{after})"),
    }
}

/// The permissions of settings.json, `own`, with those of `config.yml`: the stricter mode, and the rules of both that ask or deny. An
/// `allow` of `config.yml` counts only if settings.json has no permissions.
pub(super) fn join(own: Option<Value>, config: Value) -> Value {
    let (mut own, config) = match (own, config) {
        (Some(Value::Object(own)), Value::Object(config)) => (own, config),
        // An unknown mode: its reader reports it, and asks about every call.
        (Some(wrong), Value::Object(config)) => {
            let mode = Value::Array(vec![wrong]);
            (Map::from_iter([("mode".to_owned(), mode)]), config)
        }
        (_, config) => return config,
    };
    let said = config.get("mode").and_then(mode_of);
    let has_rules = config.contains_key("ask") || config.contains_key("deny");
    // Rules do not hold in the mode off.
    let least = said.or(has_rules.then_some(PermissionMode::Auto));
    let mode = match own.get("mode").filter(|mode| !mode.is_null()) {
        None => said,
        Some(mode) => mode_of(mode).and_then(|given| least.filter(|least| *least > given)),
    };
    if let Some(mode) = mode {
        own.insert("mode".to_owned(), mode.as_str().into());
    }
    for key in ["ask", "deny"] {
        let Some(Value::Array(rules)) = config.get(key) else {
            continue;
        };
        let mut all = match own.remove(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(own)) => own,
            Some(text @ Value::String(_)) => vec![text],
            Some(wrong) => {
                // Its reader reports it, and takes it as a rule for all tools.
                own.insert(key.to_owned(), wrong);
                continue;
            }
        };
        all.extend(rules.iter().cloned());
        own.insert(key.to_owned(), Value::Array(all));
    }
    Value::Object(own)
}

fn mode_of(value: &Value) -> Option<PermissionMode> {
    PermissionMode::parse(value.as_str()?)
}
