// Tools that the host gives to the agent, and the calls that come in.

/** What a function returned as the result of a tool: a string, blocks, a whole result, or anything that JSON can say. */
export function resultOf(value) {
  if (value && Array.isArray(value.content)) return value;
  if (Array.isArray(value) && value.length > 0 && value.every((item) => item && typeof item.type === "string")) {
    return { content: value };
  }
  if (value === undefined || value === null) return { content: [] };
  return { content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] };
}

/** What `set_host_tools` is told. */
export function definition({ name, label, description, parameters, hidden }) {
  return {
    name,
    description,
    parameters: parameters ?? { type: "object", properties: {} },
    ...(label === undefined ? {} : { label }),
    ...(hidden ? { hidden: true } : {}),
  };
}

/** The tools of all sessions and the calls that are under way. */
export class ToolHost {
  #send;
  #tools = new Map();
  #calls = new Map();

  constructor(send) {
    this.#send = send;
  }

  replace(session, tools) {
    this.#tools.set(session, new Map(tools.map((tool) => [tool.name, tool])));
  }

  of(session) {
    return [...(this.#tools.get(session)?.values() ?? [])];
  }

  forget(session) {
    this.#tools.delete(session);
  }

  /** Answers a `host_tool_call` when the function is done. */
  async called(frame) {
    const controller = new AbortController();
    this.#calls.set(frame.id, controller);
    const session = frame.session;
    const say = (type, fields) => this.#send({ type, id: frame.id, ...(session === undefined ? {} : { session }), ...fields });
    const call = {
      id: frame.id,
      toolCallId: frame.toolCallId,
      name: frame.toolName,
      session,
      signal: controller.signal,
      update: (content) => say("host_tool_update", { partialResult: resultOf(content) }),
    };
    let fields;
    try {
      const tool = this.#tools.get(session)?.get(frame.toolName);
      if (!tool) throw new Error(`Tool ${frame.toolName} not found`);
      fields = { result: resultOf(await tool.execute(frame.arguments ?? {}, call)) };
      // A result that JSON cannot express is an error, too. Without any result the run would not end.
      JSON.stringify(fields);
    } catch (error) {
      const text = (error instanceof Error && error.message) || String(error);
      fields = { result: { content: [{ type: "text", text }] }, isError: true };
    }
    this.#calls.delete(frame.id);
    if (!controller.signal.aborted) await say("host_tool_result", fields);
  }

  /** Ends a call; nobody wants its result any more. */
  cancelled(target) {
    this.#calls.get(target)?.abort();
    this.#calls.delete(target);
  }

  cancelAll() {
    for (const id of [...this.#calls.keys()]) this.cancelled(id);
  }
}
