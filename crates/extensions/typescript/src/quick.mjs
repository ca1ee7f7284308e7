/**
 * The quick way from TypeScript to what jiti runs: Sucrase, eleven times as fast as Babel. It does not know all of the
 * language, so whatever it could get wrong is left to Babel: `translate` then answers undefined.
 */
import path from "node:path";
import vm from "node:vm";
import { pathToFileURL } from "node:url";

/**
 * What Sucrase drops or mistakes: namespaces, `import x = `, `export =`; decorators, which only Babel makes something of. A match
 * in a comment or a string only costs time.
 */
const UNKNOWN = /(?<!\bdeclare\s+)\b(?:namespace|module)\s+[\w$.]+\s*\{|\bimport\s+[\w$]+\s*=[^=]|\bexport\s*=[^=]|^[ \t]*@[A-Za-z_$]/m;

/** `export const a = 1, b = 2` comes out as an assignment to an undeclared `b`. */
const LOST = /exports\.([\w$]+) = \1,/;

/** Where a name is exported. */
const EXPORTED = /\bexports\.([\w$]+) = ([\w$]+);/g;

/**
 * Sucrase's helpers; jiti's own way of looking at modules does their work, and lets lazy members be lazy.
 * @type {[string|RegExp, string][]}
 */
const HELPERS = [
  ["function _interopRequireDefault(obj) { return obj && obj.__esModule ? obj : { default: obj }; }", "function _interopRequireDefault(obj) { return obj; }"],
  [/function _interopRequireWildcard\(obj\) \{ if [^]*?return newObj; \} \}/, "function _interopRequireWildcard(obj) { return obj; }"],
];

/**
 * @param {(source: string, options: object) => {code: string}} transform Sucrase's
 * @param {{source: string, filename?: string, ts?: boolean, async?: boolean}} options jiti's
 * @returns {string|undefined} the body of an async function as jiti calls it
 */
export function translate(transform, { source, filename, ts, async }) {
  if (!async || !filename || /x$/.test(filename) || UNKNOWN.test(source)) return undefined;
  try {
    const { code } = transform(source, {
      transforms: ts ? ["typescript", "imports"] : ["imports"], filePath: filename, preserveDynamicImport: true, disableESTransforms: true,
    });
    if (LOST.test(code)) return undefined;
    const body = HELPERS.reduce((text, [from, to]) => text.replace(from, to), code);
    // A block of its own: modules may declare `require` or `__dirname` themselves.
    const whole = `${body.replace(/^("use strict";)?/, (strict) => `${strict}{${meta(filename, code)}${hoisted(code)}`)}\n}`;
    new vm.Script(`(async function (exports, require, module, __filename, __dirname, jitiImport, jitiESMResolve) { ${whole}\n});`);
    return whole;
  } catch {
    return undefined;
  }
}

/** What the two words that stand for `import.meta` and `import()` mean. */
function meta(filename, code) {
  const members = [["url", pathToFileURL(filename).href], ["filename", filename], ["dirname", path.dirname(filename)]];
  const object = `{${members.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ")}, resolve: jitiESMResolve}`;
  return (code.includes("__import") ? `const __import = {meta: ${object}};` : "")
    + (code.includes("__dynamic") ? "const __dynamic = async (id) => jitiImport(`${id}`);" : "");
}

/** Functions are exported before anything runs, as modules that import each other expect. */
function hoisted(code) {
  const names = new Map([...code.matchAll(EXPORTED)].map(([, exported, name]) => [exported, name]));
  // A name that is no function yet is skipped, or throws.
  return [...names].filter(([, name]) => new RegExp(`function\\s*\\*?\\s*${name.replaceAll("$", "\\$")}\\b`).test(code))
    .map(([exported, name]) => `try { if (typeof ${name} === "function") exports.${exported} = ${name}; } catch {}`).join("");
}
