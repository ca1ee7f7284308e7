//! Skills and prompt templates that extensions bring (`resources_discover`).

use std::path::Path;

use config::{ExtraPath, Scope, resolve_path};
use serde_json::Value;

/// The files that extensions name.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    pub(crate) skills: Vec<ExtraPath>,
    pub(crate) prompts: Vec<ExtraPath>,
}

impl Resources {
    /// Reads the answer to `resources_discover`. Relative paths start at the directory of the extension that names them.
    pub(crate) fn parse(answer: &Value, cwd: &Path, home: Option<&Path>) -> Self {
        Self {
            skills: paths(answer, "skillPaths", cwd, home),
            prompts: paths(answer, "promptPaths", cwd, home),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.prompts.is_empty()
    }
}

fn paths(answer: &Value, member: &str, cwd: &Path, home: Option<&Path>) -> Vec<ExtraPath> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let named = answer.get(member).and_then(Value::as_array).into_iter().flatten();
    let named = named.filter_map(|named| {
        // `extensions::combining` adds it to each path. Without it, a relative path has no base.
        let base = text(named, "extensionPath")?;
        let base = Path::new(&base).parent().unwrap_or(cwd).to_path_buf();
        Some(ExtraPath {
            path: resolve_path(&text(named, "path")?, &base, home),
            scope: Scope::Temporary,
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::Resources;

    #[test]
    fn resources_resolve_beside_their_extension() {
        let answer = json!({
            "skillPaths": [{"extensionPath": "/home/me/ext/index.ts", "path": "skills"}, {"path": "lost"}],
            "promptPaths": [{"extensionPath": "/home/me/ext/index.ts", "path": "/abs/p.md"}],
        });
        let found = Resources::parse(&answer, Path::new("/work"), None);
        let paths = |paths: &[config::ExtraPath]| {
            let paths = paths.iter().map(|path| path.path.to_string_lossy().into_owned());
            paths.collect::<Vec<_>>()
        };
        assert_eq!(paths(&found.skills), ["/home/me/ext/skills"]);
        assert_eq!(paths(&found.prompts), ["/abs/p.md"]);
        assert!(!found.is_empty() && Resources::parse(&json!(null), Path::new("/"), None).is_empty());
    }
}
