/**
 * Runs the agent with the arguments given: what `process.argv[1]` names inside the extension host, for extensions that
 * start the agent a second time as they were started. The program comes from PINION_PROGRAM, set by the host.
 */
import { spawn } from "node:child_process";

const child = spawn(process.env.PINION_PROGRAM || "pi", process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`the agent cannot be started: ${error.message}`);
  process.exitCode = 127;
});
child.on("exit", (code, signal) => {
  if (!signal) process.exitCode = code;
  else {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
});
