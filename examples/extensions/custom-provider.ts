/**
 * Two model providers of your own.
 *
 * - `parrot` answers by itself: its stream is written here, no server is asked. Put your service's protocol in its place.
 * - `gateway` is a server that speaks a protocol the agent knows; only address, key and models are told. It is registered
 *   when GATEWAY_URL is set, and its key is read from GATEWAY_KEY with each request.
 *
 * Try it: pinion -e examples/extensions/custom-provider.ts --model parrot/parrot-1 -p "Say something"
 */
import { calculateCost, createAssistantMessageEventStream } from "@earendil-works/pi-ai";
import type { AssistantMessage, Context, Model, SimpleStreamOptions } from "@earendil-works/pi-ai";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** Repeats what the user said last, word by word. */
function parrot(model: Model<any>, context: Context, options?: SimpleStreamOptions) {
  const stream = createAssistantMessageEventStream();
  const message: AssistantMessage = {
    role: "assistant",
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
    stopReason: "stop",
    timestamp: Date.now(),
  };
  const answer = async () => {
    const words = lastText(context).split(/(?<=\s)/);
    const block = { type: "text" as const, text: "" };
    // One start, then blocks that begin, grow and end, then one done or error.
    stream.push({ type: "start", partial: message });
    message.content.push(block);
    stream.push({ type: "text_start", contentIndex: 0, partial: message });
    for (const word of words) {
      // An abort must end the stream, or the agent waits for nothing.
      if (options?.signal?.aborted) throw new Error("Request was aborted");
      block.text += word;
      stream.push({ type: "text_delta", contentIndex: 0, delta: word, partial: message });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    stream.push({ type: "text_end", contentIndex: 0, content: block.text, partial: message });
    Object.assign(message.usage, { input: words.length, output: words.length, totalTokens: 2 * words.length });
    calculateCost(model, message.usage);
    stream.push({ type: "done", reason: "stop", message });
  };
  answer().catch((error) => {
    message.stopReason = options?.signal?.aborted ? "aborted" : "error";
    // Texts like "rate limit" or "connection lost" make the agent try again.
    message.errorMessage = String(error?.message ?? error);
    stream.push({ type: "error", reason: message.stopReason, error: message });
  });
  return stream;
}

function lastText({ messages }: Context): string {
  const last = messages.findLast(({ role }) => role === "user");
  if (typeof last?.content === "string") return last.content;
  return (last?.content ?? []).map((part: any) => part.text ?? "").join(" ");
}

export default function (pi: ExtensionAPI) {
  pi.registerProvider("parrot", {
    baseUrl: "parrot:",
    // A name of its own says that nobody but this extension speaks it.
    api: "parrot-api",
    streamSimple: parrot,
    models: [
      {
        id: "parrot-1",
        name: "Parrot",
        reasoning: false,
        input: ["text"],
        // Dollars per million tokens.
        cost: { input: 1000, output: 2000, cacheRead: 0, cacheWrite: 0 },
        contextWindow: 32_000,
        maxTokens: 4_000,
      },
    ],
  });

  if (process.env.GATEWAY_URL) {
    pi.registerProvider("gateway", {
      baseUrl: process.env.GATEWAY_URL,
      apiKey: "$GATEWAY_KEY",
      api: "anthropic-messages",
      headers: { "x-gateway-team": "docs" },
      models: [
        {
          id: "house-model",
          name: "House model",
          reasoning: true,
          input: ["text", "image"],
          cost: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1 },
          contextWindow: 200_000,
          maxTokens: 8_000,
        },
      ],
    });
  }
}
