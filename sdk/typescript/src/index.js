// Client for the coding agent pinion, and for other agents that speak its protocol (`--mode rpc`).
export { Agent, RpcClient } from "./agent.js";
export {
  AgentExited,
  CommandError,
  Lagged,
  PinionError,
  ProtocolError,
  RunFailed,
  StartError,
  TimedOut,
} from "./errors.js";
export { Run, RunResult } from "./run.js";
export { failure, reply, toolCall, toolCalls, when } from "./script.js";
export { Session } from "./session.js";
