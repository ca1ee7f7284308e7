//! A server made with rmcp's own server half, for what the hand-written ones may get wrong.

use pinion_mcp::Status;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServiceExt as _};

use crate::play::{call, played_raw, settled};

struct Proper;

impl ServerHandler for Proper {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_instructions("Be kind")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema =
            serde_json::from_str(r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#).unwrap();
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "count",
            "Counts",
            std::sync::Arc::<serde_json::Map<_, _>>::new(schema),
        )]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "count" {
            return Err(ErrorData::invalid_params("no such tool", None));
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("one, two")]).into())
    }
}

#[tokio::test]
async fn standard_mcp_server_is_supported() {
    let mut server = played_raw(|input, output| async move {
        if let Ok(running) = Proper.serve((input, output)).await {
            let _ended = running.waiting().await;
        }
    });
    let seen = settled(&mut server).await;
    assert_eq!(seen.status, Status::Connected);
    assert_eq!(seen.instructions.as_deref(), Some("Be kind"));
    assert_eq!(seen.lists.tools[0].name, "mcp__p__count");
    assert_eq!(seen.lists.tools[0].schema["properties"]["n"]["type"], "integer");
    assert_eq!(call(&server, "count").await, Ok("one, two".to_owned()));
    let error = call(&server, "other").await.unwrap_err();
    assert!(error.starts_with("no such tool"), "{error}");
}
