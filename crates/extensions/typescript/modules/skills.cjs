/** Skills as extensions find them by themselves: pi-coding-agent's loadSkills and what belongs to it. */
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { parseFrontmatter } = require("./text-files.cjs");
const { agentDir } = require("./paths.cjs");

/** A folder with this file is one skill, whatever else is in it. */
const MAIN = "SKILL.md";

/** @returns {{skills: object[], diagnostics: object[]}} of a folder; direct *.md files count too */
function loadSkillsFromDir({ dir, source = "path" }) {
  const found = { skills: [], diagnostics: [] };
  walk(dir, source, true, found);
  return found;
}

function walk(dir, source, isRoot, found) {
  const names = read(dir);
  if (names.includes(MAIN)) {
    take(path.join(dir, MAIN), source, found);
    return;
  }
  for (const name of names) {
    if (name.startsWith(".") || name === "node_modules") continue;
    const file = path.join(dir, name);
    const stat = fs.statSync(file, { throwIfNoEntry: false });
    if (stat?.isDirectory()) walk(file, source, false, found);
    else if (stat && isRoot && name.endsWith(".md")) take(file, source, found);
  }
}

function read(dir) {
  try {
    return fs.readdirSync(dir).sort();
  } catch {
    return [];
  }
}

/** One skill; without a description it is none. */
function take(filePath, source, { skills, diagnostics }) {
  try {
    const { frontmatter } = parseFrontmatter(fs.readFileSync(filePath, "utf8"));
    const { name, description } = frontmatter;
    const baseDir = path.dirname(filePath);
    if (typeof description !== "string" || description.trim() === "") {
      diagnostics.push({ type: "warning", message: "description is required", path: filePath });
      return;
    }
    const own = path.basename(filePath) === MAIN ? path.basename(baseDir) : path.basename(filePath, ".md");
    const scope = source === "user" || source === "project" ? source : "temporary";
    skills.push({
      name: typeof name === "string" && name ? name : own, description, filePath, baseDir,
      sourceInfo: { path: filePath, source, scope, origin: "top-level", baseDir },
      disableModelInvocation: frontmatter["disable-model-invocation"] === true,
    });
  } catch (error) {
    diagnostics.push({ type: "warning", message: error.message, path: filePath });
  }
}

/** Of the agent's and the project's folders, if wanted, and of those named; of two with one name the first counts. */
function loadSkills({ cwd, agentDir: dir = agentDir(), skillPaths = [], includeDefaults = true } = {}) {
  const all = { skills: [], diagnostics: [] };
  const add = (file, source) => {
    const found = { skills: [], diagnostics: [] };
    if (fs.statSync(file, { throwIfNoEntry: false })?.isFile()) take(file, source, found);
    else walk(file, source, true, found);
    all.diagnostics.push(...found.diagnostics);
    for (const skill of found.skills) {
      const before = all.skills.find(({ name }) => name === skill.name);
      if (!before) all.skills.push(skill);
      else if (before.filePath !== skill.filePath) {
        all.diagnostics.push({ type: "collision", message: `name "${skill.name}" collision`, path: skill.filePath });
      }
    }
  };
  if (includeDefaults) add(path.join(dir, "skills"), "user");
  if (includeDefaults && cwd) add(path.resolve(cwd, ".pi", "skills"), "project");
  for (const file of skillPaths) add(path.resolve(cwd ?? ".", file), "path");
  return all;
}

const escaped = (text) => String(text).replace(/[&<>"']/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" })[sign]);

/** The list a system prompt has of them. */
function formatSkillsForPrompt(skills, fileReadTool = "read") {
  const shown = skills.filter(({ disableModelInvocation }) => !disableModelInvocation);
  if (shown.length === 0) return "";
  const how = fileReadTool === "indirect" ? "" : fileReadTool === "bash" ? " with bash" : " with read";
  const items = shown.map(({ name, description, filePath }) => (
    `  <skill>\n    <name>${escaped(name)}</name>\n    <description>${escaped(description)}</description>\n    <location>${escaped(filePath)}</location>\n  </skill>`));
  return "\n\nThe skills below hold instructions for particular tasks.\n"
    + `When a task fits a description, read the file at its location first${how} and follow it.\n`
    + `Relative paths in a skill start at the directory of its file.\n\n<available_skills>\n${items.join("\n")}\n</available_skills>`;
}

module.exports = { loadSkills, loadSkillsFromDir, formatSkillsForPrompt };
