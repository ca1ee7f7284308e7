export default function (pi) {

  pi.on("context", async (event) => ({ messages: [...event.messages, { role: "user", content: [{ type: "text", text: "added by context" }], timestamp: Date.now() }] }));
  pi.on("before_provider_request", async (event) => ({ ...event.payload, max_tokens: 77 }));

}
