//! The files that a summarised part of a conversation read and changed (pi-core.md 3.6).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wire::Message;

/// Files that were read and files that were changed, as paths the way the model wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLists {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

const READ_FILES: &str = "read-files";
const MODIFIED_FILES: &str = "modified-files";

impl FileLists {
    /// Files that were read and never changed, sorted.
    pub fn read(&self) -> impl Iterator<Item = &str> {
        self.read.difference(&self.modified).map(String::as_str)
    }

    /// Files that were written or edited, sorted.
    pub fn modified(&self) -> impl Iterator<Item = &str> {
        self.modified.iter().map(String::as_str)
    }

    /// The `details` of an entry: `{"readFiles": [...], "modifiedFiles": [...]}`.
    #[must_use]
    pub fn details(&self) -> Value {
        let read: Vec<_> = self.read().collect();
        let modified: Vec<_> = self.modified().collect();
        json!({"readFiles": read, "modifiedFiles": modified})
    }

    /// Adds the files that a message's tool calls name. Calls of a failed answer never ran and do not count.
    pub(super) fn add_calls(&mut self, message: &Message) {
        let Some(answer) = message.as_assistant().filter(|answer| !answer.failed()) else {
            return;
        };
        for call in answer.tool_calls() {
            let files = match call.name.as_str() {
                "read" => &mut self.read,
                "write" | "edit" => &mut self.modified,
                // The files of other tools are not known (pi-core.md 3.6).
                _ => continue,
            };
            files.extend(
                call.arguments
                    .get("path")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
        }
    }

    /// Adds the lists of an earlier summary. False when an extension made it or it has none: what its `details` hold is
    /// then none of our business.
    pub(super) fn add_details(&mut self, details: Option<&Value>, from_hook: Option<bool>) -> bool {
        let Some(details) = details.filter(|details| details.is_object() && from_hook != Some(true)) else {
            return false;
        };
        self.read.extend(strings(details.get("readFiles")));
        self.modified.extend(strings(details.get("modifiedFiles")));
        true
    }

    /// Appends the lists to a summary, each as a block with one path per line; nothing for an empty list.
    #[must_use]
    pub fn append_to(&self, mut summary: String) -> String {
        let read: Vec<_> = self.read().collect();
        let modified: Vec<_> = self.modified().collect();
        // Behind the summary, each list as a block of its own (behaviour.md 8.5).
        for (tag, files) in [(READ_FILES, read), (MODIFIED_FILES, modified)] {
            if !files.is_empty() {
                summary.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", files.join("\n")));
            }
        }
        summary
    }
}

/// A summary without the file lists at its end. The lists are kept in `details` and appended anew each time; left in the
/// text, the model would copy them.
pub(super) fn without_lists(summary: &str) -> &str {
    // Removed from the end: `append_to` writes them in the other order.
    [MODIFIED_FILES, READ_FILES]
        .into_iter()
        .fold(summary.trim_end(), |text, tag| {
            let Some(body) = text.strip_suffix(&format!("</{tag}>")) else {
                return text;
            };
            // From the end, since the summary itself may contain the tag.
            body.rfind(&format!("<{tag}>\n"))
                .and_then(|at| body.get(..at))
                .map_or(text, str::trim_end)
        })
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice);
    let texts = items.unwrap_or_default().iter().filter_map(Value::as_str);
    texts.map(str::to_owned)
}
