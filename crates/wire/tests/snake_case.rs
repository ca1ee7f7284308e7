//! Members of two words of commands may be written in snake case (the head of `command`). Otherwise a limit or a schema of a client in
//! Python would be passed over without an error.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Debug;

use pinion_wire::RunLimits;
use pinion_wire::changes::{ChangesParams, RewindParams};
use pinion_wire::command::{
    BashParams, BranchParams, CompactParams, EditQueuedParams, ExportParams, ForkParams, LabelParams,
    LoginParams, NavigateParams, NegotiateParams, NewSessionParams, OpenSessionParams, PromptParams,
    RemoveQueuedParams, SetModelParams, StatsParams, SwitchParams,
};
use pinion_wire::looking::DeleteSessionParams;
use pinion_wire::mcp::McpServersParams;
use pinion_wire::omp::ContinueSessionParams;
use pinion_wire::process::{KillProcessParams, ReadProcessParams, ResizeProcessParams, WriteProcessParams};
use pinion_wire::subagent::SubagentMessagesParams;
use pinion_wire::tool::ActiveToolsParams;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Parameters with these members are the same with their names in snake case. No value is the default of its member.
#[track_caller]
fn same_in_snake_case<T: DeserializeOwned + PartialEq + Debug>(members: Value) {
    let camel: Map<String, Value> = serde_json::from_value(members.clone()).unwrap();
    let snake: Map<String, Value> = camel
        .into_iter()
        .map(|(name, value)| (snake_case(&name), value))
        .collect();
    let expected: T = serde_json::from_value(members).unwrap();
    let read: T = serde_json::from_value(Value::Object(snake)).unwrap();
    assert_eq!(read, expected);
}

#[test]
fn members_of_commands_are_read_in_snake_case() {
    same_in_snake_case::<PromptParams>(json!({
        "message": "x", "streamingBehavior": "steer", "fallbackModels": ["p/m"], "outputSchema": {"type": "object"},
    }));
    same_in_snake_case::<EditQueuedParams>(json!({"queuedId": "q", "message": "x"}));
    same_in_snake_case::<RemoveQueuedParams>(json!({"queuedId": "q"}));
    same_in_snake_case::<NegotiateParams>(json!({"protocolVersion": 2}));
    same_in_snake_case::<NewSessionParams>(json!({"parentSession": "p"}));
    same_in_snake_case::<StatsParams>(json!({"byModel": true}));
    same_in_snake_case::<SetModelParams>(json!({"provider": "p", "modelId": "m"}));
    same_in_snake_case::<BashParams>(json!({"command": "ls", "excludeFromContext": true}));
    same_in_snake_case::<CompactParams>(json!({"customInstructions": "c"}));
    same_in_snake_case::<ExportParams>(json!({"outputPath": "o"}));
    same_in_snake_case::<SwitchParams>(json!({"sessionPath": "s"}));
    same_in_snake_case::<ForkParams>(json!({"entryId": "e"}));
    same_in_snake_case::<BranchParams>(json!({"entryId": "e", "entryIndex": 3}));
    same_in_snake_case::<NavigateParams>(
        json!({"targetId": "t", "customInstructions": "c", "replaceInstructions": true}),
    );
    same_in_snake_case::<LoginParams>(json!({"providerId": "p"}));
    same_in_snake_case::<LabelParams>(json!({"targetId": "t"}));
    same_in_snake_case::<OpenSessionParams>(json!({"sessionPath": "s", "forkPath": "f", "sessionDir": "d"}));
    same_in_snake_case::<ContinueSessionParams>(json!({"sessionDir": "d"}));
    same_in_snake_case::<DeleteSessionParams>(json!({"sessionPath": "s"}));
    same_in_snake_case::<ChangesParams>(json!({"entryId": "e"}));
    same_in_snake_case::<RewindParams>(json!({"entryId": "e"}));
    same_in_snake_case::<SubagentMessagesParams>(
        json!({"subagentId": "s", "sessionFile": "f", "fromByte": 1}),
    );
    same_in_snake_case::<ReadProcessParams>(json!({"processId": "p", "fromByte": 1, "maxBytes": 2}));
    same_in_snake_case::<WriteProcessParams>(json!({"processId": "p", "data": "x"}));
    same_in_snake_case::<ResizeProcessParams>(json!({"processId": "p", "columns": 80, "rows": 24}));
    same_in_snake_case::<KillProcessParams>(json!({"processId": "p"}));
    same_in_snake_case::<ActiveToolsParams>(json!({"toolNames": ["read"]}));
    same_in_snake_case::<McpServersParams>(json!({"mcpServers": {"a": {"command": "a"}}}));
    same_in_snake_case::<RunLimits>(json!({
        "maxTurns": 1, "maxToolCalls": 2, "maxTokens": 3, "maxCost": 4.5, "maxSeconds": 5, "maxRepeats": 6,
    }));
}
