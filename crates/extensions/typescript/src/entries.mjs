/**
 * `ctx.sessionManager`: the entries of the live session, for reading. They come from the session's file, read on as far
 * as it has grown whenever somebody asks, and from `entries` lines for what is not on disk.
 */
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { SessionTree, TreeReader } = require("../modules/session-tree.cjs");
const { SessionFile } = require("../modules/session-file.cjs");

export class LiveEntries extends TreeReader {
  #state;
  #tree = new SessionTree();
  #pushed = [];
  #file;

  /** @param {object} state the session's state, which names the file and the leaf */
  constructor(state) {
    super();
    this.#state = state;
  }

  /** An `entries` line: entries from the K-th on, that are not (yet) on disk. */
  push({ from, header, entries }) {
    if (from === 0 && this.#tree.entries.length === 0) this.#tree.reset();
    if (header) this.#tree.header = header;
    this.#pushed.push(...(entries ?? []));
    for (const entry of entries ?? []) this.#tree.add(entry);
  }

  /** A label that the agent has been told: it counts at once, and its entry follows. */
  noteLabel(id, label) {
    const { labels } = this.read();
    if (label) labels.set(id, { label, timestamp: new Date().toISOString() });
    else labels.delete(id);
  }

  /** @returns {InstanceType<typeof SessionTree>} as it is now */
  read() {
    const path = this.#state.sessionFile;
    if (path !== this.#file?.path) {
      if (this.#file) this.#restart();
      this.#file = path ? new SessionFile(path) : undefined;
    }
    this.#file?.read((entry) => this.#tree.add(entry), () => this.#restart());
    const { leafId } = this.#state;
    if (leafId === null || this.#tree.byId.has(leafId)) this.#tree.leaf = leafId;
    return this.#tree;
  }

  /** The file was replaced: what it holds now counts, and what was only told. */
  #restart() {
    this.#tree.reset();
    for (const entry of this.#pushed) this.#tree.add(entry);
  }

  getCwd() { return this.#state.cwd; }
  getSessionDir() { return this.#state.sessionDir ?? ""; }
  getSessionId() { return this.#state.sessionId; }
  getSessionFile() { return this.#state.sessionFile ?? undefined; }
  getSessionName() { return this.#state.sessionName === undefined ? super.getSessionName() : this.#state.sessionName ?? undefined; }
  isPersisted() { return Boolean(this.#state.sessionFile); }
}

/** Writing goes through `pi`: the agent owns the session. */
for (const name of ["appendMessage", "appendThinkingLevelChange", "appendModelChange", "appendCompaction", "appendCustomEntry",
  "appendSessionInfo", "appendCustomMessageEntry", "appendLabelChange", "branch", "branchWithSummary", "resetLeaf",
  "createBranchedSession", "newSession", "setSessionFile"]) {
  LiveEntries.prototype[name] = () => {
    throw new Error(`sessionManager.${name} is not available headless: the session is for reading; write with pi.*`);
  };
}
