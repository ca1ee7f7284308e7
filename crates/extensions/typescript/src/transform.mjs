/**
 * jiti's transform: Sucrase where it will do (quick.mjs), else Babel. Both are large: they are unpacked once into the cache
 * folder, and loaded only when a file is met whose result is not cached yet.
 */
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import Module, { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { translate } from "./quick.mjs";

/** The packed file of each, below this folder. */
const VENDOR = fileURLToPath(new URL("../vendor/", import.meta.url));
const BABEL = path.join(VENDOR, "jiti", "babel.cjs");
const SUCRASE = path.join(VENDOR, "sucrase", "sucrase.cjs");

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

/** Changes whenever files would be translated otherwise than before: what is kept of earlier hosts is not used then. */
const EDITION = "4";

/** @returns {string|undefined} where translated files are kept */
export function translatedDir(hello) {
  const cache = cacheDir(hello);
  return cache && path.join(cache, `translated-${EDITION}`);
}

/** Unpacked file and what it exports. */
const loaded = new Map();

/** @returns {(options: { source: string, filename?: string, ts?: boolean, async?: boolean }) => { code: string, error?: unknown }} */
export function transformer(hello) {
  const get = (file) => {
    if (!loaded.has(file)) loaded.set(file, load(file, cacheDir(hello)));
    return loaded.get(file);
  };
  return (options) => {
    const quick = translate(get(SUCRASE).transform, options);
    const { code, error } = quick === undefined ? get(BABEL)(options) : { code: quick };
    return { error, code: options.async && !error ? code.replace(/^("use strict";)?/, (strict) => `${strict}${BREATHE}`) : code };
  };
}

/** At the beginning of every file: loading many takes long on a busy machine, and the agent must hear from us meanwhile. */
const BREATHE = 'await globalThis[Symbol.for("pinion.breathe")]?.();';

/** How long files are loaded without a pause, in ms. */
const BREATH = 400;

let since;

/** Lets the event loop turn when it has not for a while; as rarely as that, for code that runs meanwhile may see half a module. */
globalThis[Symbol.for("pinion.breathe")] = () => {
  if (since === undefined) {
    since = performance.now();
    setImmediate(() => { since = undefined; });
    return undefined;
  }
  return performance.now() - since > BREATH ? new Promise((resolve) => { setImmediate(resolve); }) : undefined;
};

function load(file, cache) {
  const require = createRequire(import.meta.url);
  if (fs.existsSync(file)) return require(file);
  const packed = fs.readFileSync(`${file}.gz`);
  const target = cache && path.join(cache, `${path.basename(file, ".cjs")}-${packed.length}.cjs`);
  if (target && fs.existsSync(target)) return require(target);
  const source = zlib.gunzipSync(packed);
  if (!target) return evaluate(file, source.toString("utf8"));
  const own = `${target}.${process.pid}`;
  fs.writeFileSync(own, source, { mode: 0o600 });
  fs.renameSync(own, target);
  return require(target);
}

/** Nowhere to put it: it is read each time. */
function evaluate(file, source) {
  const module = /** @type {any} */ (new Module(file));
  module.filename = file;
  module.paths = [];
  module._compile(source, file);
  return module.exports;
}
