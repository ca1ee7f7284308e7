//! The YAML between two `---` lines at the top of a Markdown file (pi-core.md 6.3). What the keys mean is not known here.

use serde_json::{Map, Value};

/// A Markdown file taken apart.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// The keys of the front matter; empty when there is none.
    meta: Map<String, Value>,
    /// The text after the front matter, trimmed; the whole text, untouched but for line ends, when there is none.
    pub(crate) body: String,
    /// Set when the front matter is no valid YAML; simple `key: value` lines were then used as they are.
    pub(crate) problem: Option<String>,
}

impl Document {
    /// A scalar as text; a list is put back between brackets, since `argument-hint: [file]` is meant as text.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = scalar(self.meta.get(key)?)?;
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    }

    /// A list of texts; a single text is a list of one.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let values = match self.meta.get(key) {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let texts = values.into_iter().filter_map(scalar);
        texts.filter(|text| !text.trim().is_empty()).collect()
    }

    /// Returns true if there is such a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.meta.contains_key(key)
    }

    /// True for a true boolean only.
    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.meta.get(key), Some(Value::Bool(true)))
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(scalar).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Takes a file apart. Never fails: what cannot be understood is body.
pub(crate) fn parse(text: &str) -> Document {
    let text = if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    };
    let Some((yaml, body)) = split(&text) else {
        return Document {
            body: text,
            ..Document::default()
        };
    };
    let body = body.trim().to_owned();
    if yaml.trim().is_empty() {
        return Document {
            body,
            ..Document::default()
        };
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(meta)) => Document {
            meta,
            body,
            problem: None,
        },
        Ok(_) => Document {
            body,
            problem: Some("front matter is not a list of keys".to_owned()),
            ..Document::default()
        },
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            Document {
                meta: plain_lines(yaml),
                body,
                problem: Some(format!(
                    "front matter is not valid YAML ({reason}); read line by line instead"
                )),
            }
        }
    }
}

/// The YAML and the rest, if the text starts with front matter that is also closed.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (yaml, after) = rest.split_at_checked(at)?;
            let (_, body) = after.split_at_checked(line.len())?;
            return Some((yaml, body));
        }
        at += line.len();
    }
    None
}

/// `key: value` lines without indentation. People write colons into descriptions, which YAML forbids.
fn plain_lines(yaml: &str) -> Map<String, Value> {
    yaml.lines()
        .filter(|line| !line.starts_with([' ', '\t', '#', '-']))
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim().to_owned(), plain_value(value.trim())))
        .collect()
}

fn plain_value(text: &str) -> Value {
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|q| text.strip_prefix(*q)?.strip_suffix(*q));
    match (unquoted, text) {
        (Some(inner), _) => Value::from(inner),
        (None, "true") => Value::Bool(true),
        (None, "false") => Value::Bool(false),
        (None, other) => Value::from(other),
    }
}
