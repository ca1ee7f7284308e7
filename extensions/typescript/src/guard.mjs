/**
 * Keeps one extension from ending the process all sessions share, and shows extensions that start the agent again
 * (sub-agents run `process.execPath process.argv[1]`) a script that does so. stdin and stdout are guarded in pipes.mjs.
 */
import { fileURLToPath } from "node:url";

/**
 * @param {(error: Error) => void} told of what an extension tried
 * @returns {(code: number) => never} the real exit
 */
export function guardProcess(told) {
  const exit = process.exit.bind(process);
  process.exit = () => {
    const error = new Error("process.exit is not available in an extension: use ctx.shutdown()");
    told(error);
    throw error;
  };
  process.argv = [process.argv[0], fileURLToPath(new URL("../agent/cli.mjs", import.meta.url))];
  return exit;
}
