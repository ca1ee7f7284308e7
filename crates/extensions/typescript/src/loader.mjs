/**
 * Loads extension files: TypeScript and JavaScript through jiti, with the packages of pi answered by modules/.
 * One instance of every file per session, so sessions share nothing; a reload is a new session and reads anew.
 */
import fs from "node:fs";
import path from "node:path";
import childProcess from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL, fileURLToPath } from "node:url";
import { createApi } from "./api.mjs";
import { Extension } from "./extension.mjs";
import { registerCustomTools } from "./legacy.mjs";
import { registerCustomCommands } from "./omp.mjs";
import { transformer, translatedDir } from "./transform.mjs";

const require = createRequire(import.meta.url);

/** Own JavaScript larger than this is first tried as it is: transforming it would take seconds. */
const LARGE = 512 * 1024;

/**
 * Loads the extensions of a session in order; one that fails is reported and the others go on.
 * @param {import("./session.mjs").Session} session
 * @param {{path: string, scope?: string, kind?: string}[]} specs
 * @returns {Promise<object[]>} descriptions, for those that failed with `error`
 */
export async function loadAll(session, specs) {
  session.modules ??= require("../modules/index.cjs").createModules(session);
  const told = [];
  for (const spec of specs) {
    let entries;
    try {
      entries = entriesOf(spec.path);
    } catch (error) {
      told.push({ path: spec.path, error: `Failed to load extension: ${error.message}` });
      continue;
    }
    for (const entry of entries) {
      const extension = new Extension({ ...spec, path: entry, given: entry === spec.path ? undefined : spec.path });
      told.push(await loadOne(session, extension));
    }
  }
  return told.map((item) => (item instanceof Extension ? item.describe(session.state.builtinTools) : item));
}

/** @returns {Promise<Extension|object>} the extension, or what to tell of its failure */
async function loadOne(session, extension) {
  const where = { path: extension.path, ...(extension.given ? { given: extension.given } : {}), kind: extension.kind };
  try {
    const factory = await importFactory(session, extension.path);
    if (typeof factory !== "function") {
      return { ...where, error: `Extension does not export a valid factory function: ${extension.path}` };
    }
    extension.api = createApi(session, extension);
    session.extensions.push(extension);
    const made = await factory(extension.api);
    if (extension.kind === "tool") registerCustomTools(extension, extension.api, made);
    if (extension.kind === "command") registerCustomCommands(session, extension, extension.api, made);
    return extension;
  } catch (error) {
    session.extensions = session.extensions.filter((other) => other !== extension);
    return { ...where, error: `Failed to load extension: ${reason(error)}`, stack: error?.stack };
  }
}

function reason(error) {
  const text = error instanceof Error ? `${error.name === "Error" ? "" : `${error.name}: `}${error.message}` : String(error);
  return text.split("\nRequire stack:")[0];
}

/** The files to load for a path: itself, or what a folder's package.json or index file names. */
function entriesOf(given) {
  if (!fs.statSync(given).isDirectory()) return [given];
  const manifest = readJson(path.join(given, "package.json"));
  const listed = manifest?.pi?.extensions ?? manifest?.omp?.extensions ?? manifest?.xcsh?.extensions;
  if (Array.isArray(listed) && listed.length > 0) {
    return listed.flatMap((item) => {
      const target = path.resolve(given, item);
      return fs.statSync(target).isDirectory() ? folder(target) : [target];
    });
  }
  return folder(given);
}

function folder(dir) {
  const index = ["index.ts", "index.js", "index.mjs", "index.cjs"].map((name) => path.join(dir, name)).find((file) => fs.existsSync(file));
  if (index) return [index];
  const files = fs.readdirSync(dir).filter((name) => /\.(ts|js|mjs)$/.test(name) && !name.endsWith(".d.ts")).sort();
  if (files.length === 0) throw new Error(`no extension in ${dir}`);
  return files.map((name) => path.join(dir, name));
}

function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** @returns {Promise<any>} the default export */
async function importFactory(session, file) {
  const createJiti = require("../vendor/jiti/jiti.cjs");
  const own = ownFiles(file);
  const jiti = createJiti(file, {
    moduleCache: false,
    tryNative: false,
    fsCache: translatedDir(session.host.hello) ?? false,
    virtualModules: session.modules.virtual,
    transform: transformer(session.host.hello),
  }, {
    onError(error) { throw error; },
    createRequire,
    nativeImport: (id) => nativeImport(own, id),
  });
  const module = own(file) && isScript(file) && fs.statSync(file).size <= LARGE
    ? await jiti.evalModule(fs.readFileSync(file, "utf8"), { id: file, filename: file, ext: path.extname(file), async: true, forceTranspile: true })
    : await jiti.import(file);
  return module?.default ?? module;
}

function isScript(file) {
  return /\.m?js$/.test(file);
}

/**
 * An extension's own files are transformed even where Node could read them: only so each session has its own.
 * Packages it depends on are imported as they are, and shared, unless that fails because they want pi's packages.
 */
async function nativeImport(own, id) {
  // Bun's own copy of the exports does not follow changes: see pipes.mjs, which shields children.
  if (process.versions.bun && /^(node:)?child_process$/.test(id)) return { ...childProcess, default: childProcess };
  const file = String(id).startsWith("file:") ? fileURLToPath(id) : String(id);
  const isFile = path.isAbsolute(file);
  if (isFile && own(file) && isScript(file)) {
    if (fs.statSync(file).size <= LARGE) throw new Error("own file: transformed");
    return import(`${pathToFileURL(file).href}?instance=${(instances += 1)}`);
  }
  return import(isFile ? pathToFileURL(file).href : id);
}

let instances = 0;

/** @returns {(file: string) => boolean} whether a file belongs to the extension itself rather than to its dependencies */
function ownFiles(entry) {
  let root = path.dirname(entry);
  for (let dir = root; path.dirname(dir) !== dir; dir = path.dirname(dir)) {
    if (path.basename(dir) === "node_modules") break;
    if (fs.existsSync(path.join(dir, "package.json"))) {
      root = dir;
      break;
    }
  }
  return (file) => {
    const relative = path.relative(root, file);
    return !relative.startsWith("..") && !relative.split(path.sep).includes("node_modules");
  };
}
