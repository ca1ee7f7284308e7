/**
 * The entries of one session as a tree, for reading: branches, labels, names, and the context for the model
 * (pi-core.md 2.3, 2.5; pi-1.5-delta.md 3). Where the entries come from is entries.mjs and session-manager.cjs.
 */
"use strict";

class SessionTree {
  constructor() {
    this.reset();
  }

  /** Forgets everything. */
  reset() {
    this.header = null;
    this.entries = [];
    this.byId = new Map();
    this.labels = new Map();
    this.leaf = null;
  }

  /** Takes one line of a session file; one that is known already is left out. */
  add(entry) {
    if (!entry || typeof entry !== "object") return;
    if (entry.type === "session") {
      this.header ??= entry;
      return;
    }
    if (typeof entry.id !== "string" || this.byId.has(entry.id)) return;
    this.entries.push(entry);
    this.byId.set(entry.id, entry);
    this.leaf = entry.id;
    if (entry.type === "label") {
      if (entry.label) this.labels.set(entry.targetId, { label: entry.label, timestamp: entry.timestamp });
      else this.labels.delete(entry.targetId);
    }
  }

  /** @returns {object[]} from a root to the entry, which is the leaf when not given */
  branch(fromId = this.leaf) {
    const path = [];
    const seen = new Set();
    for (let entry = this.byId.get(fromId); entry && !seen.has(entry.id); entry = this.byId.get(entry.parentId)) {
      seen.add(entry.id);
      path.push(entry);
    }
    return path.reverse();
  }

  /** @returns {object[]} roots with their children, oldest first */
  tree() {
    const nodes = new Map();
    for (const entry of this.entries) {
      const label = this.labels.get(entry.id);
      nodes.set(entry.id, { entry, children: [], ...(label ? { label: label.label, labelTimestamp: label.timestamp } : {}) });
    }
    const roots = [];
    for (const node of nodes.values()) {
      const { id, parentId } = node.entry;
      const parent = parentId && parentId !== id ? nodes.get(parentId) : undefined;
      (parent ? parent.children : roots).push(node);
    }
    for (const { children } of nodes.values()) {
      children.sort((a, b) => String(a.entry.timestamp).localeCompare(String(b.entry.timestamp)));
    }
    return roots;
  }

  /** The last name given, none when it was cleared. */
  name() {
    const info = this.entries.findLast(({ type }) => type === "session_info");
    return info?.name || undefined;
  }
}

/** The messages one entry adds to the model's context. */
function entryMessages(entry) {
  const at = Date.parse(entry.timestamp) || 0;
  switch (entry.type) {
    case "message": return [entry.message];
    case "custom_message": {
      const { customType, content, display, details } = entry;
      return [{ role: "custom", customType, content, display, details, timestamp: at }];
    }
    case "branch_summary":
      return entry.summary ? [{ role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp: at }] : [];
    case "compaction": {
      const summary = { role: "compactionSummary", summary: entry.summary, tokensBefore: entry.tokensBefore, timestamp: at };
      return entry.systemMessage ? [entry.systemMessage, summary] : [summary];
    }
    default: return [];
  }
}

/** The entries of a path that count after its last compaction, that compaction first. */
function contextEntries(path) {
  const at = path.findLastIndex(({ type }) => type === "compaction");
  if (at < 0) return path;
  const compaction = path[at];
  const kept = path.findIndex(({ id }) => id === compaction.firstKeptEntryId);
  const before = kept >= 0 && kept < at ? path.slice(kept, at) : [];
  // The compaction has the prompt and the tools as they were then.
  return [compaction, ...before.filter(({ message }) => message?.role !== "system"), ...path.slice(at + 1)];
}

/** Roles of messages whose content an edit replaces. */
const EDITED = ["user", "assistant", "toolResult", "custom"];

/** The messages of an entry after its last edit, if it has one. */
function editedMessages(entry, edit) {
  if (edit === null) return [];
  const messages = entryMessages(entry);
  if (edit === undefined) return messages;
  const content = typeof edit === "string" ? edit : edit.content;
  return messages.map((message) => {
    if (!EDITED.includes(message.role)) return message;
    const isBlocks = message.role === "assistant" || message.role === "toolResult";
    return { ...message, content: isBlocks && typeof content === "string" ? [{ type: "text", text: content }] : content };
  });
}

/** The context of a path with its origin: one item per entry, edits of earlier entries applied. */
function projection(path) {
  const edits = new Map();
  let thinkingLevel = "off";
  let model = null;
  for (const entry of path) {
    if (entry.type === "context_edit") edits.set(entry.targetId, entry.replacement);
    if (entry.type === "thinking_level_change") thinkingLevel = entry.thinkingLevel;
    if (entry.type === "model_change") model = { provider: entry.provider, modelId: entry.modelId };
    if (entry.type === "message" && entry.message?.role === "assistant") {
      model = { provider: entry.message.provider, modelId: entry.message.model };
    }
  }
  const entries = contextEntries(path).map((sourceEntry, at) => {
    // What an older compaction summarised is in the newest one.
    const isOld = sourceEntry.type === "compaction" && at > 0;
    return { sourceEntry, messages: isOld ? [] : editedMessages(sourceEntry, edits.get(sourceEntry.id)) };
  });
  return { entries, messages: entries.flatMap(({ messages }) => messages), thinkingLevel, model };
}

/** @returns {{messages: object[], thinkingLevel: string, model: object|null}} */
function buildSessionContext(entries, leafId, byId) {
  const { messages, thinkingLevel, model } = buildSessionProjection(entries, leafId, byId);
  return { messages, thinkingLevel, model };
}

function buildSessionProjection(entries, leafId, byId) {
  return projection(pathOf(entries, leafId, byId));
}

function buildContextEntries(entries, leafId, byId) {
  return contextEntries(pathOf(entries, leafId, byId));
}

function pathOf(entries, leafId, byId) {
  if (leafId === null) return [];
  const tree = new SessionTree();
  for (const entry of entries) tree.add(entry);
  if (byId) tree.byId = byId;
  return tree.branch(leafId ?? tree.leaf);
}

/** Reading methods shared by the live session and by session files (pi's names). A class with `read()` that gives a tree. */
class TreeReader {
  getHeader() { return this.read().header; }
  getEntries() { return [...this.read().entries]; }
  getEntryCount() { return this.read().entries.length; }
  getEntry(id) { return this.read().byId.get(id); }
  getLeafId() { return this.read().leaf; }
  getLeafEntry() {
    const tree = this.read();
    return tree.byId.get(tree.leaf);
  }
  getLabel(id) { return this.read().labels.get(id)?.label; }
  getBranch(fromId) { return this.read().branch(fromId); }
  getPath(fromId) { return this.getBranch(fromId); }
  getChildren(parentId) { return this.read().entries.filter((entry) => entry.parentId === parentId); }
  getTree() { return this.read().tree(); }
  getSessionName() { return this.read().name(); }
  buildContextEntries() { return contextEntries(this.getBranch()); }
  buildSessionProjection() { return projection(this.getBranch()); }
  buildSessionContext() {
    const { messages, thinkingLevel, model } = this.buildSessionProjection();
    return { messages, thinkingLevel, model };
  }
  loadEntries() { return this.getEntries(); }
}

module.exports = { SessionTree, TreeReader, buildContextEntries, buildSessionContext, buildSessionProjection, entryMessages };
