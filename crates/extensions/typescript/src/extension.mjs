/** What one extension file has registered, and how that is told to the agent. */

export class Extension {
  /**
   * @param {{path: string, given?: string, scope?: string, kind?: string}} spec path: the file that was loaded
   */
  constructor({ path, given, scope, kind }) {
    this.path = path;
    /** The path the agent named, when that was a folder. */
    this.given = given;
    this.scope = scope ?? "user";
    this.kind = kind ?? "extension";
    /** @type {Map<string, Function[]>} */
    this.handlers = new Map();
    this.tools = new Map();
    /** Names of tools with `defaultInactive`, a member of oh-my-pi. */
    this.inactive = new Set();
    this.commands = new Map();
    this.flags = new Map();
    this.shortcuts = new Map();
    this.renderers = new Set();
    this.providers = new Map();
    this.mcpServers = new Map();
    /** Handlers of custom tools for changes of session. */
    this.onSession = [];
    /** Names of events this extension hears through an older name. */
    this.heard = new Set();
  }

  /**
   * The members line.rs lists for an extension.
   * @param {{name: string}[]} [builtIn] the tools of the agent itself
   */
  describe(builtIn = []) {
    // Tools cannot be unregistered in pi: an extension takes one back by this exposure. One in the place of a built-in tool stays, since
    // the model would get the built-in tool otherwise.
    const isTold = ({ name, exposure }) => exposure !== "hidden" || builtIn.some((tool) => tool.name === name);
    return {
      path: this.path,
      ...(this.given ? { given: this.given } : {}),
      kind: this.kind,
      scope: this.scope,
      tools: [...this.tools.values()].filter(isTold).map((tool) => describeTool(tool, this.inactive.has(tool.name))),
      commands: [...this.commands].map(([name, { description, argumentHint, getArgumentCompletions }]) => (
        { name, description, argumentHint, completes: typeof getArgumentCompletions === "function" || undefined })),
      flags: [...this.flags].map(([name, flag]) => ({ name, ...flag })),
      shortcuts: [...this.shortcuts].map(([shortcut, { description }]) => ({ shortcut, description })),
      renderers: [...this.renderers],
      events: this.#eventNames(),
      providers: [...this.providers].map(([name, config]) => ({ name, config: config.told })),
      ...(this.mcpServers.size ? { mcpServers: [...this.mcpServers].map(([name, config]) => ({ name, config })) } : {}),
    };
  }

  #eventNames() {
    const names = [...this.handlers].filter(([, list]) => list.length > 0).map(([name]) => name);
    return [...new Set([...names, ...this.heard])];
  }
}

/** Members of a tool that are data and that the agent uses. */
const TOOL_MEMBERS = ["name", "label", "description", "promptSnippet", "promptGuidelines", "parameters", "outputSchema",
  "executionMode", "exposure", "namespace", "annotations", "defaultActive", "constrainedSampling", "strict", "hidden"];

function describeTool(tool, isInactive) {
  const told = {};
  for (const name of TOOL_MEMBERS) if (tool[name] !== undefined && typeof tool[name] !== "function") told[name] = tool[name];
  if (tool.parameters) told.parameters = jsonSchema(tool.parameters);
  told.label ??= tool.name;
  if (isInactive) told.defaultActive = false;
  if (typeof tool.prepareArguments === "function") told.prepares = true;
  return told;
}

/** Schemas of zod and arktype know how to be told as JSON Schema. */
function jsonSchema(parameters) {
  const convert = parameters.toJSONSchema ?? parameters.toJsonSchema;
  return typeof convert === "function" ? convert.call(parameters) : parameters;
}
