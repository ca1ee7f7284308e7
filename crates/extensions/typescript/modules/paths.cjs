/** The agent's own directory, as the first line of the protocol told it. */
"use strict";
const os = require("node:os");
const path = require("node:path");

let told;

/** The host sets it once, from `hello`. */
function setAgentDir(dir) {
  told = dir || undefined;
}

/** @returns {string} absolute */
function agentDir() {
  if (told) return told;
  const set = process.env.PI_CODING_AGENT_DIR;
  if (set) return set.replace(/^~(?=$|\/)/, os.homedir());
  return path.join(os.homedir(), ".pi", "agent");
}

module.exports = { agentDir, setAgentDir };
