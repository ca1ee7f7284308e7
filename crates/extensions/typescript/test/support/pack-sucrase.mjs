/**
 * Not a test: makes vendor/sucrase/sucrase.cjs.gz of the published package. Usage: node pack-sucrase.mjs node_modules/sucrase
 *
 * The package's files are put into one, unchanged but for what an import becomes: `await jitiImport(..)` instead of
 * `require(..)`, `__dynamic(..)` instead of `import(..)`, `__import.meta` instead of `import.meta` (see src/quick.mjs).
 */
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { fileURLToPath } from "node:url";

const dist = path.join(process.argv[2], "dist");
const target = fileURLToPath(new URL("../../vendor/sucrase/", import.meta.url));

/** What only other ways to use the package need: checks of options, maps, its own tables for people. */
const EMPTY = { "./Options": "exports.validateOptions = () => {};", "./computeSourceMap": "", "./util/formatTokens": "" };

const CHANGES = {
  "./CJSImportProcessor": [
    ["`require('${path}');`", "`await jitiImport('${path}');`"],
    ["= require('${path}');`", "= await jitiImport('${path}');`"],
  ],
  "./transformers/CJSImportTransformer": [
    ["this.tokens.copyToken();\n        return;", "this.tokens.replaceToken('__dynamic');\n        return;"],
    ["process() {\n    // TypeScript `import foo", "process() {\n    if (this.tokens.matches3(_types.TokenType.name, _types.TokenType.dot, _types.TokenType.name)\n"
      + "        && this.tokens.currentTokenCode() === 'import' && this.tokens.identifierNameAtIndex(this.tokens.currentIndex() + 2) === 'meta'\n"
      + "        && !/\\.\\s*$/.test(this.tokens.code.slice(Math.max(0, this.tokens.currentToken().start - 40), this.tokens.currentToken().start))) {\n"
      + "      this.tokens.replaceToken('__import');\n      return true;\n    }\n    // TypeScript `import foo"],
  ],
};

const modules = new Map();

function take(name) {
  if (modules.has(name)) return;
  modules.set(name, "");
  let source = EMPTY[name] ?? fs.readFileSync(path.join(dist, `${name}.js`), "utf8");
  for (const [from, to] of CHANGES[name] ?? []) {
    if (source.split(from).length !== 2) throw new Error(`${name} does not have once: ${from}`);
    source = source.replace(from, () => to);
  }
  source = source.replace(/\brequire\('(\.[^']*)'\)/g, (_, id) => {
    const file = path.join(path.dirname(name), id);
    const folder = fs.existsSync(path.join(dist, `${file}.js`)) ? file : path.join(file, "index");
    take(`./${folder}`);
    return `require(${JSON.stringify(`./${folder}`)})`;
  });
  modules.set(name, source);
}

take("./index");
const parts = [...modules].map(([name, source]) => `${JSON.stringify(name)}(module, exports, require) {${source}\n}`);
const whole = `// Sucrase ${JSON.parse(fs.readFileSync(path.join(dist, "../package.json"), "utf8")).version}, MIT licence: see LICENSE.
const files = {${parts.join(",\n")}};
const made = new Map();
function load(name) {
  if (!made.has(name)) {
    const module = { exports: {} };
    made.set(name, module);
    files[name](module, module.exports, load);
  }
  return made.get(name).exports;
}
module.exports = load("./index");
`;
fs.mkdirSync(target, { recursive: true });
fs.writeFileSync(path.join(target, "sucrase.cjs.gz"), zlib.gzipSync(whole, { level: 9 }));
fs.copyFileSync(path.join(dist, "../LICENSE"), path.join(target, "LICENSE"));
console.log(modules.size, "files", whole.length, "bytes");
