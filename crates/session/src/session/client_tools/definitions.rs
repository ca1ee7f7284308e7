//! What definitions of the client must look like; the words in which they are refused are part of the protocol (dialects.md 7).

use std::collections::HashSet;

use serde_json::Value;
use tools::ForeignSchema;
use wire::hosted::HostUriScheme;

use crate::{limits, strings};

/// A tool that the client carries out, as it was set.
pub(super) struct ClientDefinition {
    pub(super) name: String,
    pub(super) description: String,
    /// It is off unless the command line names it.
    pub(super) hidden: bool,
    pub(super) schema: ForeignSchema,
}

/// Reads the tools of `set_host_tools`.
pub(super) fn tools(values: &[Value]) -> Result<Vec<ClientDefinition>, String> {
    if values.len() > limits::HOST_TOOLS {
        return Err(strings::too_many_host_tools(values.len(), limits::HOST_TOOLS));
    }
    let mut tools = Vec::with_capacity(values.len());
    let mut bytes = 0;
    for (index, value) in values.iter().enumerate() {
        tools.push(tool(index, value)?);
        bytes += size(value);
    }
    let mut names = HashSet::new();
    if !tools.iter().all(|tool| names.insert(tool.name.as_str())) {
        return Err(strings::DOUBLE_HOST_TOOL.to_owned());
    }
    if bytes > limits::HOST_TOOLS_BYTES {
        return Err(strings::host_tools_too_large(limits::HOST_TOOLS_BYTES));
    }
    Ok(tools)
}

fn tool(index: usize, value: &Value) -> Result<ClientDefinition, String> {
    let name = text(value, "name").ok_or_else(|| strings::nameless_host_tool(index))?;
    let description = text(value, "description").ok_or_else(|| strings::undescribed_host_tool(&name))?;
    let schema = value.get("parameters").filter(|schema| schema.is_object());
    let schema = schema.ok_or_else(|| strings::host_tool_without_schema(&name))?;
    if size(value) > limits::HOST_TOOL_BYTES {
        return Err(strings::host_tool_too_large(&name, limits::HOST_TOOL_BYTES));
    }
    Ok(ClientDefinition {
        name,
        description,
        hidden: value.get("hidden") == Some(&Value::Bool(true)),
        schema: ForeignSchema::new(schema.clone()),
    })
}

/// Reads the schemes of `set_host_uri_schemes`. Of two with one name the later counts.
pub(super) fn schemes(values: &[Value]) -> Result<Vec<HostUriScheme>, String> {
    if values.len() > limits::HOST_SCHEMES {
        return Err(strings::too_many_schemes(values.len(), limits::HOST_SCHEMES));
    }
    let mut schemes: Vec<HostUriScheme> = Vec::new();
    for value in values {
        let new = scheme(value)?;
        match schemes.iter_mut().find(|known| known.scheme == new.scheme) {
            Some(known) => *known = new,
            None => schemes.push(new),
        }
    }
    Ok(schemes)
}

fn scheme(value: &Value) -> Result<HostUriScheme, String> {
    let given = text(value, "scheme").ok_or(strings::EMPTY_SCHEME)?;
    let scheme = given.to_ascii_lowercase();
    let is_fine = |(at, letter): (usize, char)| {
        letter.is_ascii_lowercase() || at > 0 && (letter.is_ascii_digit() || "+.-".contains(letter))
    };
    if !scheme.char_indices().all(is_fine) {
        let given = value.get("scheme").and_then(Value::as_str).unwrap_or_default();
        return Err(strings::odd_scheme(given));
    }
    if scheme == "security" {
        return Err(strings::reserved_scheme(&scheme));
    }
    if size(value) > limits::HOST_SCHEME_BYTES {
        return Err(strings::scheme_too_large(&scheme, limits::HOST_SCHEME_BYTES));
    }
    let is_set = |key: &str| value.get(key) == Some(&Value::Bool(true));
    Ok(HostUriScheme {
        description: text(value, "description"),
        writable: is_set("writable"),
        immutable: is_set("immutable"),
        scheme,
    })
}

/// A text of an object, trimmed; none when it is not there or empty.
fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key).and_then(Value::as_str)?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Bytes of a value as JSON.
fn size(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}
