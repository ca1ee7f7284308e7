export default function (pi) {

  for (const n of ["session_start", "agent_start", "agent_end", "turn_start", "turn_end", "message_start", "message_end", "tool_execution_start", "tool_execution_end", "tool_call", "tool_result", "context", "before_provider_request", "after_provider_response", "before_agent_start", "input"])
    pi.on(n, async (e, ctx) => { ctx.ui.setStatus("ev", n + (e.message ? ":" + e.message.role : "") + (e.reason ? ":" + e.reason : "") + (e.status ? ":" + e.status : "") + (e.turnIndex !== undefined ? ":" + e.turnIndex : "")); });

}
