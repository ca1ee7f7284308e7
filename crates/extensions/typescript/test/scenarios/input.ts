export default function (pi) {

  pi.on("input", async (event, ctx) => {
    if (event.text === "ping") { ctx.ui.notify("pong " + event.source); return { action: "handled" }; }
    if (event.text.startsWith("?quick ")) return { action: "transform", text: "Briefly: " + event.text.slice(7) };
  });
  pi.on("before_agent_start", async (event) => event.prompt.startsWith("Briefly") ? { message: { customType: "kit", content: "injected context", display: true, details: { a: 1 } }, systemPrompt: event.systemPrompt + "\nINJECTED-SYSTEM" } : undefined);

}
