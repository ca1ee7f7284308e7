/** What extensions take from `@oh-my-pi/pi-utils`: the log, errors of files, small helpers; and its `chalk`, without colours. */
"use strict";
const { agentDir } = require("./paths.cjs");

const isFsError = (error) => error instanceof Error && typeof error.code === "string";
const hasFsCode = (error, code) => isFsError(error) && error.code === code;
const isRecord = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const inspect = (part) => {
  if (typeof part === "string") return part;
  if (part instanceof Error) return part.message;
  try {
    return JSON.stringify(part) ?? String(part);
  } catch {
    // Circular values and big integers.
    return String(part);
  }
};

/** @returns {object} functions that write to the log of the agent */
function logger(session, path) {
  const say = (level) => (...parts) => session.host.log(level, parts.map(inspect).join(" "), path);
  return { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
}

/** Every style is the text itself, however styles are chained. */
function chalk() {
  const style = new Proxy((...parts) => parts.map(String).join(" "), {
    get(target, name) {
      if (name === "level") return 0;
      if (typeof name === "symbol" || ["then", "default", "__esModule"].includes(name) || name in target) return target[name];
      return ["rgb", "hex", "bgRgb", "bgHex", "ansi256", "bgAnsi256"].includes(name) ? () => style : style;
    },
  });
  return style;
}

function create(session) {
  return {
    APP_NAME: "omp",
    CONFIG_DIR_NAME: ".omp",
    logger: logger(session),
    isFsError,
    hasFsCode,
    isEnoent: (error) => hasFsCode(error, "ENOENT"),
    isEacces: (error) => hasFsCode(error, "EACCES"),
    isEisdir: (error) => hasFsCode(error, "EISDIR"),
    isEnotdir: (error) => hasFsCode(error, "ENOTDIR"),
    isEexist: (error) => hasFsCode(error, "EEXIST"),
    isEnotempty: (error) => hasFsCode(error, "ENOTEMPTY"),
    isRecord,
    asRecord: (value) => (isRecord(value) ? value : null),
    toError: (value) => (value instanceof Error ? value : new Error(String(value))),
    truncate: (text, length, ellipsis = "…") => (text.length <= length ? text : text.slice(0, Math.max(0, length - ellipsis.length)) + ellipsis),
    pluralize: (label, count) => (count === 1 ? label : `${label}s`),
    structuredCloneJSON: (value) => (value && typeof value === "object" ? structuredClone(value) : value),
    getAgentDir: agentDir,
    getProjectDir: () => session.state.cwd,
  };
}

module.exports = { create, logger, chalk };
