/**
 * `SessionManager` of pi-coding-agent: reading any session file, listing them, and sessions in memory.
 * It writes nothing: the agent owns the files. The live session's own reader is src/entries.mjs.
 */
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { randomUUID } = require("node:crypto");
const { SessionTree, TreeReader } = require("./session-tree.cjs");
const { SessionFile } = require("./session-file.cjs");
const { agentDir } = require("./paths.cjs");
const { uuidv7 } = require("./uuid.cjs");

class SessionManager extends TreeReader {
  #tree = new SessionTree();
  #file;
  #cwd;
  #dir;
  /** Is it to be a file, which nobody has begun? */
  #draft = false;

  constructor(file, cwd, dir, id) {
    super();
    this.#file = file && new SessionFile(file);
    this.#dir = dir ?? (file ? path.dirname(file) : "");
    this.read();
    if (!this.#tree.header) {
      this.#tree.header = { type: "session", version: 3, id: id ?? uuidv7(), timestamp: new Date().toISOString(), cwd: cwd ?? process.cwd() };
    }
    this.#cwd = cwd ?? this.#tree.header.cwd;
  }

  static open(file, sessionDir, cwdOverride) {
    return new SessionManager(path.resolve(file), cwdOverride, sessionDir);
  }

  static inMemory(cwd, options, entries) {
    const manager = new SessionManager(undefined, cwd, undefined, options?.id);
    for (const entry of entries ?? []) manager.#tree.add(entry);
    return manager;
  }

  /** A new session lives in memory here until the agent has begun its file: see `follow`. */
  static create(cwd, sessionDir, options) {
    const manager = SessionManager.inMemory(cwd, options);
    manager.#draft = true;
    return manager;
  }

  /** From now on it shows what the agent writes to this file, which may not be there yet. */
  follow(file, id) {
    const header = { ...this.#tree.header, id: id ?? this.#tree.header.id };
    this.#file = new SessionFile(file);
    this.#dir = path.dirname(file);
    this.#tree = new SessionTree();
    this.#tree.header = header;
  }

  static continueRecent(cwd, sessionDir) {
    const [newest] = SessionManager.#files(sessionDir ?? defaultSessionDir(cwd))
      .sort((a, b) => fs.statSync(b).mtimeMs - fs.statSync(a).mtimeMs);
    return newest ? SessionManager.open(newest, sessionDir) : SessionManager.create(cwd, sessionDir);
  }

  static async list(cwd, sessionDir, onProgress) {
    return SessionManager.#infos(SessionManager.#files(sessionDir ?? defaultSessionDir(cwd)), onProgress);
  }

  static async listAll(first, second) {
    const root = typeof first === "string" ? first : path.join(agentDir(), "sessions");
    const onProgress = typeof first === "function" ? first : second;
    const folders = read(root).filter((entry) => entry.isDirectory()).map(({ name }) => path.join(root, name));
    return SessionManager.#infos([root, ...folders].flatMap(SessionManager.#files), onProgress);
  }

  static findById(cwd, id, sessionDir) {
    return SessionManager.#files(sessionDir ?? defaultSessionDir(cwd)).find((file) => path.basename(file).includes(id));
  }

  static #files(dir) {
    return read(dir).filter(({ name }) => name.endsWith(".jsonl")).map(({ name }) => path.join(dir, name));
  }

  static async #infos(files, onProgress) {
    const infos = [];
    for (const [at, file] of files.entries()) {
      try {
        const manager = SessionManager.open(file);
        if (manager.#tree.entries.length > 0) infos.push(manager.#info(file));
      } catch {
        // A file that cannot be read is no reason to list none.
      }
      onProgress?.(at + 1, files.length);
      // The agent ends a process that does not answer while it reads many files.
      await new Promise(setImmediate);
    }
    return infos.sort((a, b) => b.modified - a.modified);
  }

  #info(file) {
    const { header, entries } = this.#tree;
    const messages = entries.filter(({ type }) => type === "message").map(({ message }) => message);
    const times = messages.filter(({ role }) => role === "user" || role === "assistant").map(({ timestamp }) => timestamp || 0);
    const texts = messages.map(messageText);
    const first = messages.findIndex(({ role }) => role === "user");
    return {
      path: file,
      id: header.id,
      cwd: header.cwd ?? "",
      name: this.getSessionName(),
      parentSessionPath: header.parentSession,
      created: new Date(header.timestamp),
      modified: new Date(times.length > 0 ? times.reduce((a, b) => Math.max(a, b)) : Date.parse(header.timestamp)),
      messageCount: messages.length,
      firstMessage: first >= 0 ? texts[first] : "(no messages)",
      allMessagesText: texts.join(" "),
    };
  }

  read() {
    this.#file?.read((entry) => this.#tree.add(entry), () => this.#tree.reset());
    return this.#tree;
  }

  isPersisted() { return this.#draft || this.#file !== undefined; }
  getCwd() { return this.#cwd; }
  getSessionDir() { return this.#dir; }
  getSessionId() { return this.read().header.id; }
  getSessionFile() { return this.#file?.path; }
  usesDefaultSessionDir() { return false; }

  /** Moves the leaf; only for sessions in memory does anything follow it. */
  branch(id) {
    if (!this.#tree.byId.has(id)) throw new Error(`Entry ${id} not found`);
    this.#tree.leaf = id;
  }

  resetLeaf() { this.#tree.leaf = null; }

  #append(entry) {
    if (this.#file) throw new Error("session files are written by the agent: not available headless");
    const full = { ...entry, id: randomUUID().slice(0, 8), parentId: this.#tree.leaf, timestamp: new Date().toISOString() };
    this.#tree.add(full);
    return full.id;
  }

  appendMessage(message) { return this.#append({ type: "message", message }); }
  appendThinkingLevelChange(thinkingLevel) { return this.#append({ type: "thinking_level_change", thinkingLevel }); }
  appendModelChange(provider, modelId) { return this.#append({ type: "model_change", provider, modelId }); }
  appendCustomEntry(customType, data) { return this.#append({ type: "custom", customType, data }); }
  appendSessionInfo(name) { return this.#append({ type: "session_info", name: name.replace(/[\r\n]+/g, " ").trim() }); }
  appendLabelChange(targetId, label) { return this.#append({ type: "label", targetId, label }); }
  appendContextEdit(targetId, replacement) { return this.#append({ type: "context_edit", targetId, replacement }); }
  appendCustomMessageEntry(customType, content, display, details) {
    return this.#append({ type: "custom_message", customType, content, display, details });
  }
  appendCompaction(summary, firstKeptEntryId, tokensBefore, details, fromHook, usage) {
    return this.#append({ type: "compaction", summary, firstKeptEntryId, tokensBefore, details, fromHook, usage });
  }
  branchWithSummary(fromId, summary, details, fromHook, usage) {
    this.#tree.leaf = fromId;
    return this.#append({ type: "branch_summary", fromId: fromId ?? "root", summary, details, fromHook, usage });
  }
  appendUsage(kind, provider, model, usage, note) {
    return this.#tree.byId.get(this.#append({ type: "usage", kind, provider, model, usage, ...(note ? { note } : {}) }));
  }
}

function read(dir) {
  try {
    return fs.readdirSync(dir, { withFileTypes: true });
  } catch {
    return [];
  }
}

function messageText({ content }) {
  if (typeof content === "string") return content;
  return (Array.isArray(content) ? content : []).filter(({ type }) => type === "text").map(({ text }) => text).join(" ");
}

/** Where the sessions of a directory lie (pi-core.md 2.1). */
function defaultSessionDir(cwd = process.cwd()) {
  const encoded = cwd.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-");
  return path.join(agentDir(), "sessions", `--${encoded}--`);
}

module.exports = { SessionManager };
