/** Frontmatter, skill blocks, file types: small readers of text that pi-coding-agent exports. */
"use strict";
const path = require("node:path");

const FENCE = /^---\n([\s\S]*?)\n?---(?:\n|$)/;

/** @returns {{frontmatter: object, body: string}} */
function parseFrontmatter(content) {
  const text = content.replace(/\r\n?/g, "\n");
  const found = FENCE.exec(text);
  if (!found) return { frontmatter: {}, body: text };
  return { frontmatter: parseYaml(found[1]), body: text.slice(found[0].length).trim() };
}

/** The YAML that stands in frontmatter: scalars, lists, nested maps, folded and literal text. */
function parseYaml(text) {
  const lines = text.split("\n").filter((line) => line.trim() && !line.trim().startsWith("#"));
  return block(lines, 0, 0)[0] ?? {};
}

const indentOf = (line) => line.length - line.trimStart().length;

function block(lines, from, indent) {
  if (lines[from]?.trimStart().startsWith("- ")) return list(lines, from, indentOf(lines[from]));
  const made = {};
  let at = from;
  while (at < lines.length && indentOf(lines[at]) >= indent) {
    const found = /^\s*("[^"]*"|'[^']*'|[^:]+):(?:\s+(.*))?$/.exec(lines[at]);
    if (!found) {
      at += 1;
      continue;
    }
    const own = indentOf(lines[at]);
    const key = scalar(found[1].trim());
    const value = (found[2] ?? "").trim();
    at += 1;
    if (/^[|>][+-]?$/.test(value)) {
      const start = at;
      while (at < lines.length && indentOf(lines[at]) > own) at += 1;
      made[key] = lines.slice(start, at).map((line) => line.trim()).join(value[0] === ">" ? " " : "\n");
    } else if (value === "" && at < lines.length && (indentOf(lines[at]) > own || lines[at].trimStart().startsWith("- "))) {
      [made[key], at] = block(lines, at, indentOf(lines[at]));
    } else made[key] = value === "" ? null : scalar(value);
  }
  return [made, at];
}

function list(lines, from, indent) {
  const made = [];
  let at = from;
  while (at < lines.length && indentOf(lines[at]) === indent && lines[at].trimStart().startsWith("- ")) {
    made.push(scalar(lines[at].trimStart().slice(2).trim()));
    at += 1;
  }
  return [made, at];
}

function scalar(text) {
  const quoted = /^"((?:[^"\\]|\\.)*)"$|^'((?:[^']|'')*)'$/.exec(text);
  if (quoted) return quoted[1] !== undefined ? quoted[1].replace(/\\n/g, "\n").replace(/\\(.)/g, "$1") : quoted[2].replace(/''/g, "'");
  if (/^\[.*\]$/.test(text)) return text.slice(1, -1).split(",").map((item) => item.trim()).filter(Boolean).map(scalar);
  const plain = text.replace(/\s+#.*$/, "");
  if (plain === "true" || plain === "false") return plain === "true";
  if (plain === "null" || plain === "~") return null;
  return /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : plain;
}

const LANGUAGES = {
  ts: "typescript", tsx: "typescript", js: "javascript", jsx: "javascript", mjs: "javascript", cjs: "javascript", py: "python", rb: "ruby",
  rs: "rust", go: "go", java: "java", kt: "kotlin", swift: "swift", c: "c", h: "c", cpp: "cpp", cc: "cpp", hpp: "cpp", cs: "csharp",
  php: "php", sh: "bash", bash: "bash", zsh: "bash", fish: "fish", ps1: "powershell", sql: "sql", html: "html", css: "css", scss: "scss",
  json: "json", yaml: "yaml", yml: "yaml", toml: "toml", xml: "xml", md: "markdown", lua: "lua", r: "r", dockerfile: "dockerfile",
};

module.exports = {
  parseFrontmatter,
  stripFrontmatter: (content) => parseFrontmatter(content).body,
  getLanguageFromPath: (file) => LANGUAGES[path.extname(file).slice(1).toLowerCase() || path.basename(file).toLowerCase()],
  /** @returns the parts of an expanded `/skill:name`, or null */
  parseSkillBlock(text) {
    const found = /^<skill name="([^"]*)" location="([^"]*)">\n([\s\S]*?)\n<\/skill>(?:\n\n([\s\S]*))?$/.exec(text);
    return found ? { name: found[1], location: found[2], content: found[3], userMessage: found[4]?.trim() || undefined } : null;
  },
};
