//! What a configuration says of a server: the entries of `mcpServers` (pi 1.x, and what other clients' files have in
//! common with it). Which files there are and which of them counts is the host's business.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::limits;
use crate::names;

/// A server, as it was configured: variables are not put in yet.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// True if the session uses the server.
    pub enabled: bool,
    /// How long a request waits; progress begins it anew.
    pub timeout: Duration,
    /// What it offers, in a sentence.
    pub description: Option<String>,
    /// Which of its tools are offered to the model.
    pub offered: Offered,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// A program that speaks over its standard streams.
    Stdio(StdioConfig),
    /// An address.
    Http(HttpConfig),
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StdioConfig {
    /// The executable, by name or path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition.
    pub env: Vec<(String, String)>,
    /// Where it works; the session's directory if it does not say.
    pub cwd: Option<String>,
}

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpConfig {
    /// Where.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// How to log in.
    pub oauth: OauthConfig,
}

/// The client's registration at an authorisation server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OauthConfig {
    /// A registered client.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// What to ask for, separated by spaces.
    pub scope: Option<String>,
    /// The name to register with.
    pub client_name: Option<String>,
    /// The port that the browser is sent to.
    pub callback_port: Option<u16>,
}

/// Which tools are offered: patterns with `*`, by the names that the server uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offered {
    /// Only these, if there are any.
    pub allow: Vec<String>,
    /// Hidden tools; this list takes precedence.
    pub deny: Vec<String>,
    /// pi's words, in order: the first that fits says whether the tool is shown; an exact name comes before patterns.
    pub exposure: Vec<(String, bool)>,
    /// Hides all tools that `exposure` does not show.
    pub hidden: bool,
}

impl Offered {
    /// Returns true if the model gets this tool.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|pattern| fits(pattern, tool));
        let exact = self.exposure.iter().find(|(pattern, _)| pattern == tool);
        let exposed = exact.or_else(|| self.exposure.iter().find(|(pattern, _)| fits(pattern, tool)));
        exposed.map_or(!self.hidden, |(_, shown)| *shown)
            && (self.allow.is_empty() || named(&self.allow))
            && !named(&self.deny)
    }
}

/// Returns true if the name matches a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

/// The servers of a document with `mcpServers`, in its order; an entry that cannot be used comes as a sentence.
#[must_use]
pub fn servers(document: &Value) -> Vec<Result<ServerConfig, String>> {
    match document.get("mcpServers") {
        None => Vec::new(),
        Some(Value::Object(entries)) => entries
            .iter()
            .map(|(name, entry)| ServerConfig::read(name, entry))
            .collect(),
        Some(_) => vec![Err("\"mcpServers\" should be an object".to_owned())],
    }
}

impl ServerConfig {
    /// Reads an entry.
    ///
    /// # Errors
    /// A sentence that says which member is wrong.
    pub fn read(name: &str, entry: &Value) -> Result<Self, String> {
        let shown = crate::text::line(name, limits::NAME);
        let fail = |what: &str| Err(format!("MCP server \"{shown}\": {what}"));
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > limits::TOOL_NAME || !name.chars().all(is_letter) {
            return fail("a name is made of at most 64 letters, digits, \"_\" and \"-\"");
        }
        let Value::Object(entry) = entry else {
            return fail("should be an object");
        };
        Entry(entry).read(name).or_else(|error| fail(&error))
    }

    /// Returns true if another name means the same server.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        names::namespace(&self.name) == names::namespace(name)
    }
}

/// The members of an entry.
struct Entry<'a>(&'a Map<String, Value>);

impl Entry<'_> {
    fn read(&self, name: &str) -> Result<ServerConfig, String> {
        let enabled = self.flag("enabled")?.unwrap_or(true) && !self.flag("disabled")?.unwrap_or(false);
        Ok(ServerConfig {
            name: name.to_owned(),
            reach: self.reach()?,
            enabled,
            timeout: self.timeout()?,
            description: self.text("description")?,
            offered: self.offered()?,
        })
    }

    fn reach(&self) -> Result<Reach, String> {
        let (command, url) = (self.text("command")?, self.text("url")?);
        let kind = self.text("type")?;
        match (kind.as_deref(), command, url) {
            (Some("sse"), _, _) => Err(
                "the old SSE transport is not spoken; many servers offer streamable HTTP, often at /mcp"
                    .to_owned(),
            ),
            (None | Some("stdio"), Some(command), None) => Ok(Reach::Stdio(StdioConfig {
                command,
                args: self.texts("args")?,
                env: self.pairs("env")?,
                cwd: self.text("cwd")?,
            })),
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
                Ok(Reach::Http(HttpConfig {
                    url,
                    headers: self.pairs("headers")?,
                    oauth: self.oauth()?,
                }))
            }
            (Some(kind), _, _) if !["stdio", "http", "streamable-http", "streamableHttp"].contains(&kind) => {
                Err(format!(
                    "type \"{}\" is unknown: stdio or http",
                    crate::text::line(kind, limits::NAME)
                ))
            }
            _ => Err("needs either \"command\" or \"url\"".to_owned()),
        }
    }

    fn oauth(&self) -> Result<OauthConfig, String> {
        let Some(value) = self.0.get("oauth") else {
            return Ok(OauthConfig::default());
        };
        let Value::Object(map) = value else {
            return Err("\"oauth\" should be an object".to_owned());
        };
        let oauth = Entry(map);
        let port = match map.get("callbackPort") {
            None => None,
            Some(port) => Some(
                port.as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .ok_or("\"oauth.callbackPort\" should be a port")?,
            ),
        };
        Ok(OauthConfig {
            client_id: oauth.text("clientId")?,
            client_secret: oauth.text("clientSecret")?,
            scope: oauth.text("scope")?,
            client_name: oauth.text("clientName")?,
            callback_port: port,
        })
    }

    /// Seconds, as pi has it.
    fn timeout(&self) -> Result<Duration, String> {
        match self.0.get("timeout") {
            None | Some(Value::Null) => Ok(limits::TIMEOUT),
            Some(value) => match value.as_f64() {
                Some(seconds) if seconds > 0.0 => {
                    let most = limits::TIMEOUT_MAX.as_secs_f64();
                    Ok(Duration::from_secs_f64(seconds.min(most)))
                }
                _ => Err("\"timeout\" should be a number of seconds".to_owned()),
            },
        }
    }

    fn offered(&self) -> Result<Offered, String> {
        let mut offered = Offered::default();
        match self.0.get("tools") {
            None | Some(Value::Null) => {}
            Some(Value::Array(_)) => {
                for pattern in self.texts("tools")? {
                    match pattern.strip_prefix('!') {
                        Some(pattern) => offered.deny.push(pattern.to_owned()),
                        None => offered.allow.push(pattern),
                    }
                }
            }
            Some(Value::Object(map)) => {
                let tools = Entry(map);
                offered.allow = tools.texts("allow")?;
                offered.deny = tools.texts("deny")?;
            }
            Some(_) => return Err("\"tools\" should be a list of patterns".to_owned()),
        }
        offered.hidden = match self.text("exposure")? {
            None => false,
            Some(word) => !shows("exposure", &word)?,
        };
        for (pattern, word) in self.pairs("toolExposure")? {
            let shown = shows("toolExposure", &word)?;
            offered.exposure.push((pattern, shown));
        }
        Ok(offered)
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(format!("\"{key}\" should be a text")),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(format!("\"{key}\" should be true or false")),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.0.get(key).filter(|value| !value.is_null()) else {
            return Ok(Vec::new());
        };
        let texts = value.as_array().and_then(|items| {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        });
        texts.ok_or_else(|| format!("\"{key}\" should be a list of texts"))
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let Some(value) = self.0.get(key).filter(|value| !value.is_null()) else {
            return Ok(Vec::new());
        };
        // A list of names and values is how the protocol for editors writes it.
        let pairs = match value {
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect::<Option<Vec<_>>>(),
            Value::Array(items) => items
                .iter()
                .map(|item| {
                    let member = |name: &str| item.get(name)?.as_str().map(str::to_owned);
                    Some((member("name")?, member("value")?))
                })
                .collect(),
            _ => None,
        };
        pairs.ok_or_else(|| format!("\"{key}\" should be an object of texts"))
    }
}

/// pi's ways to reach a tool: all but one mean here that the model sees it.
fn shows(key: &str, word: &str) -> Result<bool, String> {
    match word {
        "direct" | "codemode" | "codemode-deferred" | "deferred" => Ok(true),
        "hidden" => Ok(false),
        _ => Err(format!(
            "\"{key}\" should be direct, codemode, deferred or hidden"
        )),
    }
}
