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
    // Before anything is read, so that a long list costs no work.
    if values.len() > limits::HOST_TOOLS {
        return Err(strings::too_many_host_tools(values.len(), limits::HOST_TOOLS));
    }
    let mut tools = Vec::with_capacity(values.len());
    let mut bytes = 0;
    for (index, value) in values.iter().enumerate() {
        tools.push(tool(index, value)?);
        bytes += size(value);
    }
    // After the definitions: the protocol refuses a wrong one before a repeated name (dialects.md 7).
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
    // After the checks of the protocol, whose order clients see (dialects.md 7).
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
    // Reserved by oh-my-pi, and the refusal is part of the protocol (dialects.md 7).
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "finds", "parameters": {"type": "object"}})
    }

    fn tools_refused(values: &[Value]) -> String {
        tools(values).err().expect("the definitions are refused")
    }

    fn schemes_refused(values: &[Value]) -> String {
        schemes(values).expect_err("the schemes are refused")
    }

    #[test]
    fn tool_without_name_is_refused_by_index() {
        for name in [json!(""), json!("  "), json!(7), Value::Null] {
            let mut nameless = tool("x");
            nameless["name"] = name;
            assert_eq!(
                tools_refused(&[tool("a"), nameless]),
                strings::nameless_host_tool(1)
            );
        }
    }

    #[test]
    fn tool_without_description_or_schema_is_refused() {
        let mut silent = tool("a");
        silent["description"] = json!(" ");
        assert_eq!(tools_refused(&[silent]), strings::undescribed_host_tool("a"));
        let mut shapeless = tool("a");
        shapeless["parameters"] = json!([]);
        assert_eq!(
            tools_refused(&[shapeless]),
            strings::host_tool_without_schema("a")
        );
    }

    #[test]
    fn tool_names_are_trimmed_before_comparison() {
        let tools = tools(&[tool(" a ")]).ok().unwrap();
        assert_eq!(tools[0].name, "a");
        assert_eq!(
            tools_refused(&[tool("a"), tool(" a ")]),
            strings::DOUBLE_HOST_TOOL
        );
    }

    #[test]
    fn only_true_hides_a_tool() {
        let hidden = |value: Value| {
            let mut tool = tool("a");
            tool["hidden"] = value;
            tools(&[tool]).ok().unwrap()[0].hidden
        };
        assert!(hidden(json!(true)));
        assert!(!hidden(json!("true")) && !hidden(json!(1)) && !hidden(Value::Null));
    }

    #[test]
    fn tools_are_bounded_in_number_and_bytes() {
        let many: Vec<Value> = (0..=limits::HOST_TOOLS).map(|n| tool(&n.to_string())).collect();
        assert_eq!(
            tools_refused(&many),
            strings::too_many_host_tools(limits::HOST_TOOLS + 1, limits::HOST_TOOLS)
        );
        assert!(tools(&many[1..]).is_ok());
        let mut large = tool("large");
        large["description"] = json!("x".repeat(limits::HOST_TOOL_BYTES));
        assert_eq!(
            tools_refused(&[large]),
            strings::host_tool_too_large("large", limits::HOST_TOOL_BYTES)
        );
        let count = limits::HOST_TOOLS_BYTES / limits::HOST_TOOL_BYTES + 1;
        let near = "x".repeat(limits::HOST_TOOL_BYTES - 200);
        let together: Vec<Value> = (0..=count)
            .map(|n| {
                let mut tool = tool(&n.to_string());
                tool["description"] = json!(near);
                tool
            })
            .collect();
        assert_eq!(
            tools_refused(&together),
            strings::host_tools_too_large(limits::HOST_TOOLS_BYTES)
        );
    }

    #[test]
    fn scheme_names_are_lower_case_letters_first() {
        for odd in ["1db", "+db", "d b", "db:", "dä"] {
            assert_eq!(
                schemes_refused(&[json!({"scheme": odd})]),
                strings::odd_scheme(odd),
                "{odd}"
            );
        }
        let fine = schemes(&[json!({"scheme": " Db+1.x-y "})]).unwrap();
        assert_eq!(fine[0].scheme, "db+1.x-y");
    }

    #[test]
    fn empty_or_reserved_scheme_is_refused() {
        assert_eq!(schemes_refused(&[json!({"scheme": " "})]), strings::EMPTY_SCHEME);
        assert_eq!(schemes_refused(&[json!({})]), strings::EMPTY_SCHEME);
        assert_eq!(
            schemes_refused(&[json!({"scheme": "SECURITY"})]),
            strings::reserved_scheme("security")
        );
    }

    #[test]
    fn later_scheme_replaces_earlier_one_in_place() {
        let given = [
            json!({"scheme": "db", "writable": true}),
            json!({"scheme": "log"}),
            json!({"scheme": "DB", "immutable": true, "description": " rows "}),
        ];
        let schemes = schemes(&given).unwrap();
        let names: Vec<&str> = schemes.iter().map(|scheme| scheme.scheme.as_str()).collect();
        assert_eq!(names, ["db", "log"]);
        assert!(schemes[0].immutable && !schemes[0].writable);
        assert_eq!(schemes[0].description.as_deref(), Some("rows"));
    }

    #[test]
    fn schemes_are_bounded_in_number_and_bytes() {
        let many: Vec<Value> = (0..=limits::HOST_SCHEMES)
            .map(|n| json!({"scheme": format!("s{n}")}))
            .collect();
        assert_eq!(
            schemes_refused(&many),
            strings::too_many_schemes(limits::HOST_SCHEMES + 1, limits::HOST_SCHEMES)
        );
        assert!(schemes(&many[1..]).is_ok());
        let large = json!({"scheme": "db", "description": "x".repeat(limits::HOST_SCHEME_BYTES)});
        assert_eq!(
            schemes_refused(&[large]),
            strings::scheme_too_large("db", limits::HOST_SCHEME_BYTES)
        );
    }
}
