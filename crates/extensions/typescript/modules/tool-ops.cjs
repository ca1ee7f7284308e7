/**
 * Built-in tools over an extension's own operations (a remote machine, a sandbox): the functions cannot leave this
 * process, so the tools are done here, in a plain form of pi-core.md 5. Without operations the agent's own tools run.
 */
"use strict";
const path = require("node:path");
const { StringDecoder } = require("node:string_decoder");
const { spawn } = require("node:child_process");
const { truncateHead, truncateTail, formatSize, DEFAULT_MAX_BYTES } = require("./truncate.cjs");

const text = (value, details) => ({ content: [{ type: "text", text: value }], details });
const absolute = (cwd, file) => path.resolve(cwd, file.replace(/^@/, ""));
/** Milliseconds between two updates of a running command. */
const UPDATE_EVERY = 100;

async function read({ operations }, cwd, { path: file, offset = 1, limit }) {
  const target = absolute(cwd, file);
  await operations.access?.(target);
  const mime = await operations.detectImageMimeType?.(target);
  const buffer = Buffer.from(await operations.readFile(target));
  if (mime) {
    return { content: [{ type: "text", text: `Read image file [${mime}]` }, { type: "image", data: buffer.toString("base64"), mimeType: mime }] };
  }
  const lines = buffer.toString("utf8").split("\n");
  const first = Math.max(1, offset);
  if (first > lines.length) throw new Error(`Offset ${first} is beyond end of file (${lines.length} lines total)`);
  const chosen = lines.slice(first - 1, limit ? first - 1 + limit : undefined);
  const cut = truncateHead(chosen.join("\n"));
  if (cut.firstLineExceedsLimit) {
    return text(`[Line ${first} is ${formatSize(Buffer.byteLength(chosen[0]))}, exceeds ${formatSize(DEFAULT_MAX_BYTES)} limit.]`, { truncation: cut });
  }
  if (cut.truncated) {
    const end = first + cut.outputLines - 1;
    const why = cut.truncatedBy === "bytes" ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : "";
    return text(`${cut.content}\n\n[Showing lines ${first}-${end} of ${lines.length}${why}. Use offset=${end + 1} to continue.]`, { truncation: cut });
  }
  const rest = lines.length - (first - 1 + chosen.length);
  return text(rest > 0 ? `${cut.content}\n\n[${rest} more lines in file. Use offset=${first + chosen.length} to continue.]` : cut.content);
}

async function write({ operations }, cwd, { path: file, content }) {
  const target = absolute(cwd, file);
  await operations.mkdir(path.dirname(target));
  await operations.writeFile(target, content);
  return text(`Successfully wrote ${content.length} bytes to ${file}`);
}

async function edit({ operations }, cwd, { path: file, edits }) {
  const target = absolute(cwd, file);
  await operations.access?.(target);
  const before = Buffer.from(await operations.readFile(target)).toString("utf8");
  const base = before.replace(/\r\n/g, "\n");
  const places = edits.map(({ oldText, newText }, at) => {
    const wanted = oldText.replace(/\r\n/g, "\n");
    const found = wanted ? base.split(wanted).length - 1 : 0;
    if (found === 0) throw new Error(`Could not find edits[${at}] in ${file}. The oldText must match exactly.`);
    if (found > 1) throw new Error(`Found ${found} occurrences of edits[${at}] in ${file}. Each oldText must be unique.`);
    return { at, from: base.indexOf(wanted), wanted, given: newText.replace(/\r\n/g, "\n") };
  }).sort((a, b) => b.from - a.from);
  if (places.every(({ wanted, given }) => wanted === given)) throw new Error(`No changes made to ${file}.`);
  const original = originalIndex(before);
  let after = before;
  let behind;
  for (const place of places) {
    const { from, wanted, given } = place;
    if (behind && from + wanted.length > behind.from) {
      throw new Error(`edits[${place.at}] and edits[${behind.at}] overlap in ${file}. Merge them into one edit or target disjoint regions.`);
    }
    behind = place;
    const [start, end] = [original(from), original(from + wanted.length)];
    // Lines that are not edited keep their ends, which need not all be the same.
    const [lineEnd] = LINE_END.exec(before.slice(start, end)) ?? LINE_END.exec(before) ?? ["\n"];
    after = after.slice(0, start) + given.replace(/\n/g, lineEnd) + after.slice(end);
  }
  await operations.writeFile(target, after);
  return text(`Successfully replaced ${edits.length} block(s) in ${file}.`, { diff: "", patch: "" });
}

const LINE_END = /\r?\n/;

/** @returns {(index: number) => number} where in the text a character is whose place is counted with LF for CR LF */
function originalIndex(before) {
  const pairs = [...before.matchAll(/\r\n/g)].map(({ index }, at) => index - at);
  return (index) => index + pairs.filter((pair) => pair < index).length;
}

async function bash({ operations, commandPrefix, spawnHook }, cwd, { command, timeout }, signal, onUpdate) {
  let context = { command: commandPrefix ? `${commandPrefix}\n${command}` : command, cwd, env: { ...process.env } };
  if (spawnHook) context = spawnHook(context) ?? context;
  const { code, cut } = await run(operations, context, { timeout, signal, onUpdate });
  const shown = cut.truncated ? `${cut.content}\n\n[Showing the last ${cut.outputLines} of ${cut.totalLines} lines]` : cut.content || "(no output)";
  if (code !== 0) throw new Error(`${shown}\n\nCommand exited with code ${code}`);
  return text(shown, cut.truncated ? { truncation: cut } : undefined);
}

/** Lists a directory, as the tool of the agent does. */
async function ls({ operations }, cwd, { path: place, limit = 500 }, signal) {
  const dir = absolute(cwd, place || ".");
  if (!(await operations.exists(dir))) throw new Error(`Path not found: ${dir}`);
  if (!(await operations.stat(dir)).isDirectory()) throw new Error(`Not a directory: ${dir}`);
  const names = [...(await operations.readdir(dir))].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase()));
  const most = Math.max(1, Math.floor(limit));
  const shown = [];
  let isCut = false;
  for (const name of names) {
    if (signal?.aborted) throw new Error("Operation aborted");
    isCut = shown.length >= most;
    if (isCut) break;
    try {
      shown.push((await operations.stat(path.join(dir, name))).isDirectory() ? `${name}/` : name);
    } catch {
      // An entry that cannot be read, such as a broken link, is left out.
    }
  }
  if (shown.length === 0) return text("(empty directory)");
  return listed(shown, isCut && { entryLimitReached: most }, `${most} entries limit reached. Use limit=${most * 2} for more`);
}

/** Finds files through the search of the extension. Operations without one leave the search to the agent (agent-tools.cjs). */
async function find({ operations }, cwd, { pattern, path: place, limit = 1000 }, signal) {
  const root = absolute(cwd, place || ".");
  if (!(await operations.exists(root))) throw new Error(`Path not found: ${root}`);
  const most = Math.max(1, Math.floor(limit));
  // One more than is shown, since only that tells whether the limit left something out.
  const found = await operations.glob(pattern, root, { ignore: ["**/node_modules/**", "**/.git/**"], limit: most + 1 });
  if (signal?.aborted) throw new Error("Operation aborted");
  if (found.length === 0) return text("No files found matching pattern");
  const shown = found.slice(0, most).map((file) => below(root, file));
  return listed(shown, found.length > most && { resultLimitReached: most }, `${most} results limit reached`);
}

/** A found path from the root of the search on. A folder keeps the slash at its end. */
function below(root, file) {
  const relative = (path.isAbsolute(file) ? path.relative(root, file) : file).split(path.sep).join("/");
  return file.endsWith("/") && !relative.endsWith("/") ? `${relative}/` : relative;
}

/** Names one below the other. `limit` has the details of a limit that left some out, and `notice` says so. */
function listed(names, limit, notice) {
  const cut = truncateHead(names.join("\n"), { maxLines: Number.MAX_SAFE_INTEGER });
  const notices = [...(limit ? [notice] : []), ...(cut.truncated ? [`${formatSize(DEFAULT_MAX_BYTES)} limit reached`] : [])];
  const details = { ...(limit || {}), ...(cut.truncated ? { truncation: cut } : {}) };
  return text(notices.length > 0 ? `${cut.content}\n\n[${notices.join(". ")}]` : cut.content, notices.length > 0 ? details : undefined);
}

/** Bytes of the end of an output that are kept. Far more than is shown, so that the cut is never seen. */
const KEPT = 1024 * 1024;

/** The end of what a command prints, which may be more than the memory that all extensions have together. */
class Output {
  #parts = [];
  #size = 0;
  #lines = 0;
  #bytes = 0;

  push(data) {
    const part = Buffer.from(data);
    this.#parts.push(part);
    this.#size += part.length;
    while (this.#size - this.#parts[0].length >= KEPT) this.#drop(this.#parts.shift());
  }

  #drop(part) {
    this.#size -= part.length;
    this.#bytes += part.length;
    for (let at = part.indexOf(10); at >= 0; at = part.indexOf(10, at + 1)) this.#lines += 1;
  }

  get text() { return Buffer.concat(this.#parts).toString("utf8"); }

  /** What is shown of it, with the counts of all of it. */
  get cut() {
    const cut = truncateTail(this.text);
    return { ...cut, totalLines: cut.totalLines + this.#lines, totalBytes: cut.totalBytes + this.#bytes };
  }
}

/** Runs a command through operations, keeping the end of what it prints. */
async function run(operations, { command, cwd, env }, { timeout, signal, onUpdate }) {
  const output = new Output();
  let last = 0;
  const onData = (data) => {
    output.push(data);
    const now = Date.now();
    if (!onUpdate || now - last < UPDATE_EVERY) return;
    last = now;
    onUpdate(text(output.cut.content));
  };
  try {
    const { exitCode } = await operations.exec(command, cwd, { onData, signal, timeout, env });
    return { code: exitCode, cut: output.cut };
  } catch (error) {
    const { content } = output.cut;
    const before = content ? `${content}\n\n` : "";
    if (signal?.aborted) throw new Error(`${before}Command aborted`, { cause: error });
    const late = /^timeout:(.*)$/.exec(error.message);
    throw new Error(late ? `${before}Command timed out after ${late[1]} seconds` : before + error.message, { cause: error });
  }
}

/** Bytes of output that become one text. */
const PIECE = 64 * 1024;
/** Characters of output that may wait for the agent. With more, the oldest are left out: operations of extensions know no backpressure. */
const WAITING = 8 * 1024 * 1024;
/** Characters that wait for the agent above which `onData` returns a promise. Operations that await it print no more meanwhile. */
const SLOW_ABOVE = 1024 * 1024;
/** Milliseconds between two pieces, times the commands that run: the agent ends a process that sends very many messages. */
const PIECE_EVERY = 5;

/** The output of a user's command on its way to the agent, one piece at a time. */
class Pieces {
  /** Commands that run. */
  static #open = 0;
  #send;
  #decoder = new StringDecoder("utf8");
  #waiting = [];
  #size = 0;
  #omitted = 0;
  #sending;
  /** What waits for room: a promise for all, since operations need not wait for it. */
  #room;
  #pauses = true;
  #ended = false;
  /** Whether a part was left out. */
  isCut = false;

  /** @param {(text: string) => Promise<void>} send resolves when the agent takes more */
  constructor(send) {
    this.#send = send;
    Pieces.#open += 1;
  }

  /** @returns {Promise<void>|undefined} resolves when there is room again */
  push(data) {
    if (this.#ended) return undefined;
    const bytes = Buffer.isBuffer(data) ? data : Buffer.from(data);
    // Cut as bytes, since the decoder keeps characters whole.
    for (let at = 0; at < bytes.length; at += PIECE) this.#add(this.#decoder.write(bytes.subarray(at, at + PIECE)));
    if (!this.#pauses || this.#size <= SLOW_ABOVE) return undefined;
    if (!this.#room) {
      let go;
      const promise = new Promise((done) => { go = done; });
      this.#room = { promise, go };
    }
    return this.#room.promise;
  }

  /** The command was aborted: it prints little more, and must not wait for the agent to end. */
  release() {
    this.#pauses = false;
    this.#resume();
  }

  #resume() {
    this.#room?.go();
    this.#room = undefined;
  }

  #add(text) {
    if (!text || this.#ended) return;
    const last = this.#waiting.length - 1;
    if (last >= 0 && this.#waiting[last].length < PIECE) this.#waiting[last] += text;
    else this.#waiting.push(text);
    this.#size += text.length;
    while (this.#size > WAITING) this.#omitted += this.#take().length;
    this.#sending ??= this.#sendAll();
  }

  #take() {
    const text = this.#waiting.shift();
    this.#size -= text.length;
    return text;
  }

  async #sendAll() {
    while (this.#waiting.length > 0) {
      let text = this.#take();
      if (this.#omitted > 0) {
        text = `\n[... ${this.#omitted} characters omitted ...]\n${text}`;
        this.#omitted = 0;
        this.isCut = true;
      }
      try {
        await this.#send(text);
      } catch {
        // The agent knows the command no more, or has closed its session.
        this.#ended = true;
        this.isCut = true;
        this.#waiting = [];
        this.#size = 0;
      }
      if (this.#size <= SLOW_ABOVE) this.#resume();
      await new Promise((go) => setTimeout(go, PIECE_EVERY * Pieces.#open));
    }
    this.#sending = undefined;
  }

  /** Sends the rest. */
  async end() {
    this.#add(this.#decoder.end());
    this.#ended = true;
    await this.#sending;
    Pieces.#open -= 1;
  }
}

/**
 * The answer to a `user_bash` event whose handler gave operations. The output goes to `send`.
 * @param {(text: string) => Promise<void>} send resolves when the agent takes more
 */
async function operationsToolBash(operations, { command, cwd }, signal, send) {
  const pieces = new Pieces(send);
  signal?.addEventListener("abort", () => pieces.release(), { once: true });
  let code;
  let failure;
  try {
    ({ exitCode: code } = await operations.exec(command, cwd, { onData: (data) => pieces.push(data), signal }));
  } catch (error) {
    failure = { error };
  }
  const cancelled = signal?.aborted === true;
  await pieces.end();
  // An aborted command still has the output that it printed before.
  if (failure && !cancelled) throw failure.error;
  return { exitCode: cancelled ? undefined : code ?? undefined, cancelled, truncated: pieces.isCut };
}

/** Silence of the outputs after a shell's end, in ms. Its descendants may keep the pipes open for any time. */
const IDLE = 100;

/** A local shell as operations. */
function createLocalBashOperations({ shellPath } = {}) {
  return {
    async exec(command, cwd, { onData, signal, timeout, env }) {
      if (signal?.aborted) throw new Error("aborted");
      const child = spawn(shellPath ?? "/bin/bash", ["-c", command], { cwd, env: env ?? process.env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
      let late = false;
      const kill = () => {
        try {
          process.kill(-child.pid, "SIGKILL");
        } catch {
          child.kill("SIGKILL");
        }
      };
      const timer = timeout > 0 ? setTimeout(() => { late = true; kill(); }, timeout * 1000) : undefined;
      signal?.addEventListener("abort", kill, { once: true });
      try {
        const exitCode = await exited(child, onData);
        if (signal?.aborted) throw new Error("aborted");
        if (late) throw new Error(`timeout:${timeout}`);
        return { exitCode };
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", kill);
      }
    },
  };
}

/**
 * Output that `onData` answers with a promise pauses the pipe until it is settled.
 * @returns {Promise<number|null>} the exit code, once the outputs are closed or nothing comes from them any more
 */
function exited(child, onData) {
  return new Promise((resolve, reject) => {
    let code;
    let idle;
    let paused = 0;
    const end = () => {
      clearTimeout(idle);
      for (const pipe of [child.stdout, child.stderr]) pipe.destroy();
      resolve(code);
    };
    const endWhenIdle = () => {
      clearTimeout(idle);
      idle = undefined;
      // What waits in a paused pipe still counts.
      if (paused > 0) return;
      // When the event loop was busy, timers run before the pipes are read: what waits in them comes first.
      const own = setTimeout(() => setImmediate(() => { if (own === idle) end(); }), IDLE);
      idle = own;
    };
    const listen = (pipe) => pipe.on("data", (data) => {
      const room = onData(data);
      if (typeof room?.then === "function") {
        paused += 1;
        pipe.pause();
        const go = () => {
          paused -= 1;
          pipe.resume();
          if (code !== undefined) endWhenIdle();
        };
        room.then(go, go);
      }
      if (code !== undefined) endWhenIdle();
    });
    listen(child.stdout);
    listen(child.stderr);
    child.on("error", reject);
    child.on("exit", (status, name) => {
      code = status ?? (name ? 137 : null);
      endWhenIdle();
    });
    child.on("close", end);
  });
}

module.exports = { OPERATED: { read, write, edit, bash, ls, find }, Output, operationsToolBash, createLocalBashOperations };
