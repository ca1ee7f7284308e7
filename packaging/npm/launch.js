"use strict";
// Runs the program with the arguments, standard streams and exit code of this process.
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { program } = require("./index.js");

/** Runs the program under the name `name`, which tells it whose version to print. */
function launch(name) {
  let path;
  try {
    path = program();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  const words = process.argv.slice(2);
  // Node 22.15 and newer can become the program: no second process, no signals to pass on.
  // Since Node 23.11; its declarations of older versions do not know it.
  const { execve } = /** @type {any} */ (process);
  if (execve) {
    const warn = process.emitWarning;
    process.emitWarning = () => {};
    try {
      execve.call(process, path, [name, ...words], process.env);
    } catch {
      process.emitWarning = warn;
    }
  }
  const child = spawn(path, words, { argv0: name, stdio: "inherit" });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
  for (const signal of /** @type {NodeJS.Signals[]} */ (signals)) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`${path} does not start: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    process.exit(code ?? 128 + (constants.signals[signal] ?? 0));
  });
}

module.exports = { launch };
