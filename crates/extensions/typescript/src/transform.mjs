/**
 * jiti's transform (Babel), which is large: it is unpacked once into the cache folder and loaded only when a file is
 * met whose result is not cached yet.
 */
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import Module, { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const PACKED = fileURLToPath(new URL("../vendor/jiti/babel.cjs.gz", import.meta.url));
const UNPACKED = fileURLToPath(new URL("../vendor/jiti/babel.cjs", import.meta.url));

let found;

/**
 * @param {{cacheDir?: string, agentDir?: string}} hello
 * @returns {string|undefined} a folder of our own that can be written
 */
export function cacheDir({ cacheDir: told, agentDir }) {
  if (found !== undefined) return found || undefined;
  found = told ?? (agentDir ? path.join(agentDir, "cache", "extensions") : "");
  try {
    if (found) fs.mkdirSync(found, { recursive: true, mode: 0o700 });
    if (found) fs.accessSync(found, fs.constants.W_OK);
  } catch {
    found = "";
  }
  return found || undefined;
}

let loaded;

/** @returns {(options: object) => object} jiti's transform, loaded at the first call */
export function transformer(hello) {
  return (options) => {
    loaded ??= load(cacheDir(hello));
    return loaded(options);
  };
}

function load(cache) {
  const require = createRequire(import.meta.url);
  if (fs.existsSync(UNPACKED)) return require(UNPACKED);
  const packed = fs.readFileSync(PACKED);
  const file = cache && path.join(cache, `babel-${packed.length}.cjs`);
  if (file && fs.existsSync(file)) return require(file);
  const source = zlib.gunzipSync(packed);
  if (!file) return evaluate(source.toString("utf8"));
  const own = `${file}.${process.pid}`;
  fs.writeFileSync(own, source, { mode: 0o600 });
  fs.renameSync(own, file);
  return require(file);
}

/** Nowhere to put it: it is read each time. */
function evaluate(source) {
  const module = new Module(UNPACKED);
  module.filename = UNPACKED;
  module.paths = [];
  module._compile(source, UNPACKED);
  return module.exports;
}
