/**
 * The TypeScript extension host: one process that holds the extensions of all sessions of one agent process and
 * speaks JSON lines with it (crates/extensions/src/line.rs). This file only takes the pipes and starts the host.
 *
 * The pipes are stdin and stdout, or the two descriptors named in PINION_DOOR_FDS ("3,4"). They are taken before any
 * extension is loaded, so whatever an extension prints goes to stderr.
 */
import { takePipes } from "./src/pipes.mjs";
import { Lines } from "./src/lines.mjs";
import { Host } from "./src/host.mjs";

const { input, output } = takePipes(process.env.PINION_DOOR_FDS);
const lines = new Lines(input, output);
const host = new Host(lines);

process.on("uncaughtException", (error) => host.failure(error));
process.on("unhandledRejection", (error) => host.failure(error));
// A signal that reaches the whole process group is the agent's to handle: it closes our input when it goes.
process.on("SIGINT", () => {});

lines.start({
  line: (message) => host.receive(message),
  end: () => host.end(),
  problem: (message) => host.log("error", message),
});
