//! The file that `details` of a call name for clients of today's oh-my-pi.

use pinion_tools::{ToolContext, ToolRequest, Toolbox, ToolsConfig};
use process::Reaper;
use serde_json::{Value, json};
use wire::Dialect;

#[tokio::test]
async fn details_name_file_for_newest_omp_only() {
    for dialect in [Dialect::OmpNow, Dialect::Pi] {
        let config = ToolsConfig {
            dialect,
            ..ToolsConfig::default()
        };
        let toolbox = Toolbox::new(config, Reaper::direct());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("it\u{2019}s"), "text\n").unwrap();
        let path = |name: &str| json!(dir.path().join(name).display().to_string());
        let edits = json!([{"oldText": "new", "newText": "newer"}]);
        for (name, args, member, file) in [
            (
                "write",
                json!({"path": "a.txt", "content": "new\n"}),
                "resolvedPath",
                path("a.txt"),
            ),
            (
                "edit",
                json!({"path": "a.txt", "edits": edits}),
                "path",
                path("a.txt"),
            ),
            ("read", json!({"path": "a.txt"}), "resolvedPath", Value::Null),
            (
                "read",
                json!({"path": "it's"}),
                "resolvedPath",
                path("it\u{2019}s"),
            ),
        ] {
            let request = ToolRequest {
                name: name.to_owned(),
                args: args.as_object().cloned().unwrap_or_default(),
            };
            let context = ToolContext {
                cwd: dir.path().to_path_buf(),
                ..ToolContext::default()
            };
            let outcome = toolbox.run(request, context).await;
            assert!(!outcome.is_error, "{}", outcome.result.joined_text());
            let details = outcome.result.details.unwrap_or_default();
            let expected = match dialect {
                Dialect::OmpNow => file,
                _ => Value::Null,
            };
            assert_eq!(details[member], expected, "{name}: {details}");
        }
    }
}
