/** Client for the coding agent pinion, and for other agents that speak its protocol (`--mode rpc`). */
import type * as protocol from "./protocol.js";
import { Commands } from "./commands.js";
import type { FromSchema, JsonSchema } from "./schema.js";
import type {
  AssistantMessage,
  BashResult,
  Changes,
  ChangeScope,
  CompactionResult,
  ContextUsage,
  CycledModel,
  CycledThinking,
  Disposition,
  Entries,
  Event,
  Forked,
  ForkMessage,
  ImageContent,
  InboundLine,
  ListScope,
  ListedSession,
  Message,
  Model,
  Navigated,
  Queues,
  QueueMode,
  ResponseOf,
  RewindTarget,
  Rewound,
  SessionState,
  SessionStats,
  SessionTree,
  StopReason,
  ThinkingLevel,
  ToolResult,
  UserBlock,
} from "./protocol.js";

export type { FromSchema, JsonSchema, protocol };

/** A command's name. */
export type CommandName = keyof ResponseOf;
/** How a command is sent. */
export interface CallOptions {
  /** Milliseconds after which the call is given up. */
  timeoutMs?: number;
}
/** A command's parameters. */
export type Params<T extends CommandName> = Omit<Extract<InboundLine, { type: T }>, "id" | "type" | "session">;
/** What a command answers. */
export type Data<T extends CommandName> = Extract<ResponseOf[T], { success: true }> extends { data: infer D } ? D : undefined;

/** An image to send; pi's clients write the `type`. */
export type Image = ImageContent & { type?: "image" };

/** Frames that a newer agent sends; `type` tells them apart. */
export interface OtherEvent {
  type: "host_tool_call" | "host_tool_cancel" | "extension_ui_request" | "extension_error";
  [member: string]: unknown;
}
export type AgentEvent = (Event | OtherEvent) & { session?: string };

export type Content = string | UserBlock[] | ToolResult | object | undefined | void;

/** A call of a tool of yours. */
export interface ToolCall {
  id: string;
  /** The model's id of the call, as in `tool_execution_start`. */
  toolCallId: string;
  name: string;
  /** Handle of the session that calls; undefined for the first. */
  session?: string;
  /** Aborted when the agent no longer wants the result. */
  signal: AbortSignal;
  /** Tells how far the tool has come. What is given replaces what was given before. */
  update(content: Content): Promise<void>;
}

/** A tool that the host gives to the agent. Whatever `execute` throws becomes an error that the model sees. */
export interface Tool<Arguments = any> {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters?: object;
  label?: string;
  /** Registered, but not shown to the model until it is activated by name. */
  hidden?: boolean;
  execute(args: Arguments, call: ToolCall): Content | Promise<Content>;
}

/** A question that an extension asks the user. */
export interface Dialog {
  id: string;
  method: "select" | "confirm" | "input" | "editor";
  title: string;
  message?: string;
  options?: string[];
  placeholder?: string;
  prefill?: string;
  /** Milliseconds after which the agent no longer waits. */
  timeout?: number;
  session?: string;
}
/** Denies the call of a permission dialog. The model receives the reason. */
export interface Denial {
  deny: string;
}
/** The chosen option or text; true or false for `confirm`; a denial; undefined to cancel. */
export type DialogAnswer = string | boolean | Denial | undefined | null | void;
export type DialogHandler = (dialog: Dialog, signal: AbortSignal) => DialogAnswer | Promise<DialogAnswer>;

/** A reply that the agent plays instead of asking a model. */
export interface Reply {
  stream?: unknown[];
  error?: { kind?: string; message?: string };
  match?: { contains?: string };
  repeat?: boolean;
}
export type FailureKind = "server" | "rate_limit" | "overloaded" | "context_overflow" | "too_large" | "auth" | "invalid";
/** An answer; each chunk arrives as a delta of its own, `delayMs` after the one before. */
export function reply(chunks: string | string[], options?: { thinking?: string; delayMs?: number }): Reply;
/** An answer that calls one tool. */
export function toolCall(name: string, args?: object): Reply;
/** An answer that calls several tools. */
export function toolCalls(...calls: [name: string, args?: object][]): Reply;
/** The provider fails. */
export function failure(kind?: FailureKind, message?: string): Reply;
/** The answer for requests that contain a text, however often they come. */
export function when(wanted: string, answer: Reply | string): Reply;

/** Options of an agent. All times are in milliseconds. */
export interface AgentOptions {
  /** The agent, alone or with leading arguments; default: $PINION_PROGRAM, else that of @pinion-agent/cli, else `pinion` on the PATH. */
  program?: string | string[];
  cwd?: string;
  /** Added to the environment. */
  env?: Record<string, string>;
  provider?: string;
  /** Id, or provider/id. */
  model?: string;
  thinking?: ThinkingLevel;
  /** A session to go on with: file or beginning of its id. */
  session?: string;
  sessionDir?: string;
  /** False keeps nothing on disk. */
  persist?: boolean;
  tools?: Tool[];
  /** Without it dialogs are cancelled at once. */
  onDialog?: DialogHandler;
  /** Replies to play in place of a model (plain strings are answers), or a file of them. */
  script?: (Reply | string)[] | string;
  /** A file for everything that providers are asked and answer, without keys. */
  record?: string;
  /** Such a file, which answers in place of providers. */
  replay?: string;
  /** Further arguments. */
  args?: string[];
  /** How events are written; null leaves it to the agent. Default: `pi-delta`, the linear form. */
  dialect?: string | null;
  startTimeoutMs?: number;
  commandTimeoutMs?: number;
  /** For commands that run a shell or ask the model. */
  slowTimeoutMs?: number;
  /** Longest silence in a run. */
  idleTimeoutMs?: number;
  dialogTimeoutMs?: number;
  stopTimeoutMs?: number;
  /** Events that may wait to be taken before `Lagged` is thrown. */
  maxWaitingEvents?: number;
}

export interface RunOptions {
  images?: Image[];
  /** What to do when a run is under way. Without it such a prompt is refused. */
  streamingBehavior?: "steer" | "followUp";
  /** JSON Schema of `RunResult.result`. */
  outputSchema?: object;
  /** Limits of this run, in addition to those of the session. */
  limits?: protocol.RunLimits;
  /** Models of this run that take over when its model fails for good, as `provider/id`. */
  fallbackModels?: string[];
  /** Longest silence. */
  idleTimeoutMs?: number;
}

/** How a run ended. */
export class RunResult {
  /** Text of the last answer. */
  text: string;
  /** Messages that came into being, in order. */
  messages: Message[];
  stopReason: StopReason | null;
  /** The provider's words for a failure. */
  error: string | null;
  aborted: boolean;
  /** The value that fits the schema of the prompt; undefined if there is none. */
  result: unknown;
  /** Why there is no result although the prompt had a schema. */
  resultError: string | null;
  /** Throws RunFailed when the run gave no result that fits the schema of its prompt. */
  throwIfNoResult(): this;
  /** Throws RunFailed when the last answer failed or was aborted. */
  throwIfFailed(): this;
}

/** What follows a prompt, until nothing more happens by itself. Iterate over it for events, over `text()` for text. */
export class Run implements AsyncIterable<AgentEvent> {
  private constructor();
  /** `queued`: it joined the run under way; `handled`: no model was asked. */
  readonly disposition: Disposition;
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent>;
  /** The answer's text, piece by piece. */
  text(): AsyncIterableIterator<string>;
  /** Waits for the end. Does not throw when the model failed; see `throwIfFailed`. */
  result(): Promise<RunResult>;
  abort(): Promise<void>;
  /** Stops listening. The run itself goes on. */
  close(): void;
}

/** Events as an iterator, until `close`. */
export interface Events extends AsyncIterableIterator<AgentEvent> {
  close(): void;
}

/** A session. Methods that pi's RpcClient has are as there; `Commands` has those of all other commands. */
export class Session extends Commands {
  protected constructor(agent?: Agent, handle?: string);
  /** Undefined for the first session. */
  readonly handle: string | undefined;
  /** Sends any command and gives what it answers. */
  call<T extends CommandName>(type: T, params?: Params<T>, options?: CallOptions): Promise<Data<T>>;
  call(type: string, params?: object, options?: CallOptions): Promise<any>;

  /** Resolves when the prompt is accepted; see `run` for what follows. */
  prompt(message: string, images?: Image[]): Promise<void>;
  /** Prompts and gives what follows. */
  run(message: string, options?: RunOptions): Promise<Run>;
  /** Prompts and gives the text of the last answer; throws RunFailed when the model failed. After `timeoutMs` it aborts. */
  ask(message: string, options?: RunOptions & { timeoutMs?: number }): Promise<string>;
  /**
   * Prompts and gives a value that fits the JSON Schema. Rejects with RunFailed if the run gives none. The type of the value follows
   * from a schema that is written out.
   */
  askJson<const S extends JsonSchema>(
    message: string,
    schema: S,
    options?: RunOptions & { timeoutMs?: number },
  ): Promise<FromSchema<S>>;
  askJson<T = unknown>(message: string, schema: object, options?: RunOptions & { timeoutMs?: number }): Promise<T>;
  steer(message: string, images?: Image[]): Promise<void>;
  followUp(message: string, images?: Image[]): Promise<void>;
  abort(): Promise<void>;
  clearQueue(): Promise<Queues>;

  events(options?: { idleTimeoutMs?: number }): Events;
  /** Calls a function with every event; gives a function that ends it. */
  onEvent(listener: (event: AgentEvent) => void): () => void;
  /** Resolves when nothing more happens by itself. Begin to wait before, or right after, prompting. */
  waitForIdle(timeoutMs?: number): Promise<void>;
  /** Events from now until nothing more happens by itself. */
  collectEvents(timeoutMs?: number): Promise<AgentEvent[]>;
  /** Prompts and gives all events of the run. */
  promptAndWait(message: string, images?: Image[], timeoutMs?: number): Promise<AgentEvent[]>;

  getState(): Promise<SessionState>;
  getMessages(): Promise<Message[]>;
  getEntries(since?: string): Promise<Entries>;
  getTree(): Promise<SessionTree>;
  getLastAssistantText(): Promise<string | null>;
  getSessionStats(): Promise<SessionStats>;
  getContextUsage(): Promise<ContextUsage | undefined>;
  getCommands(): Promise<any[]>;

  setModel(provider: string, modelId: string): Promise<Model>;
  cycleModel(): Promise<CycledModel | null>;
  getAvailableModels(): Promise<Model[]>;
  setThinkingLevel(level: ThinkingLevel): Promise<void>;
  cycleThinkingLevel(): Promise<CycledThinking | null>;
  getAvailableThinkingLevels(): Promise<ThinkingLevel[]>;
  setSteeringMode(mode: QueueMode): Promise<void>;
  setFollowUpMode(mode: QueueMode): Promise<void>;
  setAutoCompaction(enabled: boolean): Promise<void>;
  setAutoRetry(enabled: boolean): Promise<void>;
  abortRetry(): Promise<void>;

  compact(customInstructions?: string): Promise<CompactionResult>;
  bash(command: string, options?: { excludeFromContext?: boolean; timeoutMs?: number }): Promise<BashResult>;
  abortBash(): Promise<void>;
  exportHtml(outputPath?: string): Promise<{ path: string }>;

  newSession(parentSession?: string): Promise<{ cancelled: boolean }>;
  switchSession(sessionPath: string): Promise<{ cancelled: boolean }>;
  fork(entryId: string): Promise<Forked>;
  clone(): Promise<{ cancelled: boolean }>;
  getForkMessages(): Promise<ForkMessage[]>;
  navigateTree(
    targetId: string,
    options?: { summarize?: boolean; customInstructions?: string; replaceInstructions?: boolean; label?: string },
  ): Promise<Navigated>;
  /** Compares the files before and after the changes of a turn, a run or the session. Needs checkpoints. */
  getChanges(options?: { scope?: ChangeScope; entryId?: string }): Promise<Changes>;
  /** Restores files, the conversation or both as they were when an entry was the last one. Needs checkpoints. */
  rewind(entryId: string, options?: { what?: RewindTarget; force?: boolean }): Promise<Rewound>;
  /** Takes the newest rewind back. */
  unrewind(options?: { force?: boolean }): Promise<Rewound>;
  listSessions(scope?: ListScope): Promise<ListedSession[]>;
  setSessionName(name: string): Promise<void>;

  /** Gives the session these tools in place of those it was given before. Needs an agent with host tools. */
  setTools(tools: Tool[]): Promise<string[]>;
  /** Closes the session; the agent goes on. */
  close(): Promise<void>;
}

/** A running agent, and its first session. */
export class Agent extends Session {
  /** Nothing is started yet. */
  constructor(options?: AgentOptions);
  /** Makes an agent and starts it. */
  static start(options?: AgentOptions): Promise<Agent>;
  /** Starts the agent and waits until it answers. */
  start(): Promise<void>;
  /** Ends the agent: closes its stdin, waits, helps with signals. May be called twice. */
  stop(): Promise<void>;
  /** Exit code of the agent, once it has ended. */
  readonly exitCode: number | null;
  /** The end of what the agent wrote to stderr. */
  getStderr(): string;
  /** Opens another session in this process, in a working directory of its own. Needs an agent with many sessions. */
  openSession(options?: { session?: string; sessionPath?: string; cwd?: string }): Promise<Session>;
}

/** The agent under the name and with the options of pi's RpcClient, for hosts that switch. */
export class RpcClient extends Agent {
  constructor(options?: AgentOptions & { cliPath?: string });
}

/** Base of all errors of this package. */
export class PinionError extends Error {}
/** The agent could not be started, or ended before it answered. */
export class StartError extends PinionError {}
/** The agent is gone while somebody waits for it. */
export class AgentExited extends PinionError {
  readonly exitCode: number | null;
  readonly stderr: string;
}
/** The agent refused a command; nothing has changed. `message` is in its words. */
export class CommandError extends PinionError {
  readonly command: string;
  readonly code?: string;
  readonly unknownCommand: boolean;
}
/** A time limit passed. The agent goes on; `abort` ends what it does. */
export class TimedOut extends PinionError {}
/** The other side does not speak the protocol. */
export class ProtocolError extends PinionError {}
/** Events came faster than they were taken, and the buffer is full. */
export class Lagged extends PinionError {}
/** A run ended in an error or was aborted; `result` has what there is of it. */
export class RunFailed extends PinionError {
  readonly result: RunResult;
}
export type { AssistantMessage, Event, ImageContent, Message, Model, SessionState, SessionStats };
