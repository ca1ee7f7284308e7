/** Reading a session file that grows: only whole lines, only what is new since the last time. */
"use strict";
const fs = require("node:fs");

/** Bytes read at a time. */
const CHUNK = 1024 * 1024;

class SessionFile {
  #path;
  #offset = 0;
  #inode = 0;
  #mtime = 0;

  constructor(path) {
    this.#path = path;
  }

  get path() { return this.#path; }

  /**
   * @param {(entry: object) => void} add told of every new line
   * @param {() => void} restart told when the file was replaced and begins anew
   * @returns {boolean} whether the file exists
   */
  read(add, restart) {
    let stat;
    try {
      stat = fs.statSync(this.#path);
    } catch {
      return false;
    }
    if (stat.size < this.#offset || (this.#inode && stat.ino !== this.#inode)) {
      this.#offset = 0;
      restart();
    }
    this.#inode = stat.ino;
    if (stat.size > this.#offset && (stat.mtimeMs !== this.#mtime || stat.size > this.#offset)) this.#take(stat.size, add);
    this.#mtime = stat.mtimeMs;
    return true;
  }

  #take(size, add) {
    const fd = fs.openSync(this.#path, "r");
    try {
      let rest = Buffer.alloc(0);
      let at = this.#offset;
      while (at < size) {
        const chunk = Buffer.alloc(Math.min(CHUNK, size - at));
        const got = fs.readSync(fd, chunk, 0, chunk.length, at);
        if (got === 0) break;
        at += got;
        rest = lines(Buffer.concat([rest, chunk.subarray(0, got)]), add);
      }
      this.#offset = at - rest.length;
    } finally {
      fs.closeSync(fd);
    }
  }
}

/** @returns {Buffer} what follows the last line break */
function lines(buffer, add) {
  let from = 0;
  for (let at = buffer.indexOf(10); at >= 0; at = buffer.indexOf(10, from)) {
    const entry = parse(buffer.toString("utf8", from, at));
    if (entry) add(entry);
    from = at + 1;
  }
  return buffer.subarray(from);
}

/** A line that is not JSON is skipped, as pi does (pi-core.md 2.7). */
function parse(text) {
  try {
    return text.trim() ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** @returns {object[]} the entries of a text, the header first */
function parseSessionEntries(content) {
  return content.split("\n").map(parse).filter(Boolean);
}

module.exports = { SessionFile, parseSessionEntries };
