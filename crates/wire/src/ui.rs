//! Questions of the agent to the person in front of the client, and what it wants shown (dialects.md 10.4): the frames that go
//! out, the frames that answer, the methods a client may declare to render. The host crate asks and waits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Method of a dialog or notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum UiMethod {
    /// Choose one option. The answer contains `value`.
    Select,
    /// Yes or no. The answer contains `confirmed`.
    Confirm,
    /// Enter a line of text. The answer contains `value`.
    Input,
    /// Edit a longer text. The answer contains `value`.
    Editor,
    /// Cancels the dialog in `targetId`. An answer is no longer needed.
    Cancel,
    /// Show a message.
    Notify,
    /// Set a text of the status line.
    SetStatus,
    /// Set lines above or below the editor.
    SetWidget,
    /// Set the window title.
    SetTitle,
    /// Set the text of the editor.
    #[serde(rename = "set_editor_text")]
    SetEditorText,
    /// Open a page in a browser.
    #[serde(rename = "open_url")]
    OpenUrl,
}

impl UiMethod {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Select,
        Self::Confirm,
        Self::Input,
        Self::Editor,
        Self::Cancel,
        Self::Notify,
        Self::SetStatus,
        Self::SetWidget,
        Self::SetTitle,
        Self::SetEditorText,
        Self::OpenUrl,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Confirm => "confirm",
            Self::Input => "input",
            Self::Editor => "editor",
            Self::Cancel => "cancel",
            Self::Notify => "notify",
            Self::SetStatus => "setStatus",
            Self::SetWidget => "setWidget",
            Self::SetTitle => "setTitle",
            Self::SetEditorText => "set_editor_text",
            Self::OpenUrl => "open_url",
        }
    }

    /// Returns true if an extension shows something with it, without a question.
    #[must_use]
    pub const fn only_shows(self) -> bool {
        matches!(
            self,
            Self::Notify | Self::SetStatus | Self::SetWidget | Self::SetTitle | Self::SetEditorText
        )
    }

    /// The method of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == word)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UiMethods(u16);

impl UiMethods {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them, which is what a client that says nothing is taken to render.
    pub const ALL: Self = Self(u16::MAX);

    /// Returns true if the set contains the method.
    #[must_use]
    pub const fn has(self, method: UiMethod) -> bool {
        self.0 & method.bit() != 0
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, method: UiMethod) -> Self {
        Self(self.0 | method.bit())
    }

    /// Reads the known methods of a list (the `ui` of `hello`); none if the value is no list.
    #[must_use]
    pub fn read(wish: &Value) -> Option<Self> {
        let known = wish.as_array()?.iter().filter_map(Value::as_str);
        Some(
            known
                .filter_map(UiMethod::parse)
                .fold(Self::NONE, |set, method| set.with(method)),
        )
    }

    /// The set as a number, for those who share it between threads.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set of a number from [`bits`](Self::bits).
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// Severity of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NotifyType {
    /// Information.
    Info,
    /// Warning.
    Warning,
    /// Error.
    Error,
}

/// Position of a widget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WidgetPlacement {
    /// Above the editor.
    AboveEditor,
    /// Below the editor.
    BelowEditor,
}

/// An option of a `select`. As JSON it is its label. Clients of today's oh-my-pi get the descriptions, too (dialects.md 10.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SelectOption {
    /// The text of the option, which is also the answer.
    pub label: String,
    /// What the option means.
    pub description: Option<String>,
}

impl From<String> for SelectOption {
    fn from(label: String) -> Self {
        Self {
            label,
            description: None,
        }
    }
}

impl From<SelectOption> for String {
    fn from(option: SelectOption) -> Self {
        option.label
    }
}

/// A dialog or notification for the user. Each method has its own fields; the others are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UiRequest {
    /// Unique id, for the answer.
    pub id: String,
    /// The method. `select`, `confirm`, `input` and `editor` need an answer.
    pub method: UiMethod,
    /// Title of the dialog; the text of `setTitle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `select`: the options.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub options: Option<Vec<SelectOption>>,
    /// `confirm`: the question. `notify`: the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `input`: placeholder text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// `editor`: the initial text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill: Option<String>,
    /// Milliseconds until the dialog times out and returns its default; 0 means never. If absent, the timeout in
    /// `get_protocol` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// `cancel`: id of the dialog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_id: Option<String>,
    /// `notify`: the severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify_type: Option<NotifyType>,
    /// `setStatus`: key of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_key: Option<String>,
    /// `setStatus`: the text; if absent, the text is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_text: Option<String>,
    /// `setWidget`: key of the widget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widget_key: Option<String>,
    /// `setWidget`: its lines; if absent, the widget is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widget_lines: Option<Vec<String>>,
    /// `setWidget`: its position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widget_placement: Option<WidgetPlacement>,
    /// `set_editor_text`: the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `open_url`: the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `open_url`: a shorter address of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_url: Option<String>,
    /// `open_url`: instructions for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Id of the tool call that a permission dialog is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl UiRequest {
    /// A frame with nothing but its id and what it is about.
    #[must_use]
    pub fn new(id: String, method: UiMethod) -> Self {
        Self {
            id,
            method,
            title: None,
            options: None,
            message: None,
            placeholder: None,
            prefill: None,
            timeout: None,
            target_id: None,
            notify_type: None,
            status_key: None,
            status_text: None,
            widget_key: None,
            widget_lines: None,
            widget_placement: None,
            text: None,
            url: None,
            launch_url: None,
            instructions: None,
            tool_call_id: None,
        }
    }
}

/// The answer to a dialog. Older clients call it `hook_ui_response`. Fields of the wrong type count as absent. An answer
/// without the field that the method needs counts as cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UiResponse {
    /// The `id` of the dialog.
    pub id: String,
    /// `select`, `input`, `editor`: the chosen option or the text.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub value: Value,
    /// `confirm`: the answer.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub confirmed: Value,
    /// True if the user cancelled the dialog.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub cancelled: Value,
    /// True, together with `cancelled`, if the client timed out.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub timed_out: Value,
    /// Permission dialogs: why the user denies the call. The model receives it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub reason: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ui_method_names_round_trip() {
        for method in UiMethod::ALL {
            assert_eq!(serde_json::to_value(method).unwrap(), json!(method.as_str()));
            assert_eq!(UiMethod::parse(method.as_str()), Some(method));
        }
        assert_eq!(UiMethod::parse("dance"), None);
    }

    #[test]
    fn ui_method_sets_contain_named_methods() {
        let set = UiMethods::read(&json!(["select", "setTitle", "dance", 5])).unwrap();
        for method in UiMethod::ALL {
            let named = matches!(method, UiMethod::Select | UiMethod::SetTitle);
            assert_eq!(set.has(method), named, "{method:?}");
            assert!(UiMethods::ALL.has(method) && !UiMethods::NONE.has(method));
        }
        assert_eq!(UiMethods::from_bits(set.bits()), set);
        assert_eq!(UiMethods::read(&json!("select")), None);
    }
}
