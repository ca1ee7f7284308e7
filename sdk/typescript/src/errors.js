// What can go wrong. Everything derives from PinionError.

export class PinionError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The agent could not be started, or ended before it answered. */
export class StartError extends PinionError {}

/** The agent is gone while somebody waits for it. */
export class AgentExited extends PinionError {
  constructor(exitCode, stderr) {
    const tail = stderr.trim().split("\n").slice(-3).filter(Boolean);
    super(["the agent ended" + (exitCode === null ? "" : ` with code ${exitCode}`), ...tail].join("\n  "));
    this.exitCode = exitCode;
    this.stderr = stderr;
  }
}

/** The agent refused a command; nothing has changed. `message` is in its words. */
export class CommandError extends PinionError {
  constructor(command, message, code) {
    super(message);
    this.command = command;
    this.code = code;
  }

  /** Does this agent not know the command? */
  get unknownCommand() {
    return this.message.startsWith("Unknown command");
  }
}

/** A time limit passed. The agent goes on; `abort` ends what it does. */
export class TimedOut extends PinionError {}

/** The other side does not speak the protocol. */
export class ProtocolError extends PinionError {}

/** Events came faster than they were taken, and the buffer is full. */
export class Lagged extends PinionError {}

/** A run ended in an error or was aborted; `result` has what there is of it. */
export class RunFailed extends PinionError {
  constructor(result) {
    const aborted = result.aborted ? "the run was aborted" : "the run gave no result";
    super(result.error ?? result.resultError ?? aborted);
    this.result = result;
  }
}

/** Waits for a promise, but not longer than that. */
export async function within(promise, milliseconds, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new TimedOut(`${what} after ${milliseconds / 1000} s`)), Math.min(milliseconds, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
