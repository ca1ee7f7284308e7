/** JSON that is not finished or not quite right, as models stream it. */
"use strict";

/** @returns {any} the value as far as the text goes; an empty object when nothing can be read */
function parseStreamingJson(text) {
  if (!text || !text.trim()) return {};
  try {
    return JSON.parse(text);
  } catch {
    return finished(text);
  }
}

/** Closes what is open, and gives up the last piece until the rest can be read. */
function finished(text) {
  for (let end = text.length; end > 0; end -= 1) {
    const { closing, inString } = open(text, end);
    const head = text.slice(0, end).replace(/[,:\s]+$/, "");
    try {
      return JSON.parse((inString ? text.slice(0, end) + '"' : head) + closing);
    } catch {
      // One character less.
    }
    if (text.length - end > 200) break;
  }
  return {};
}

function open(text, end) {
  const stack = [];
  let inString = false;
  for (let at = 0; at < end; at += 1) {
    const c = text[at];
    if (inString) {
      if (c === "\\") at += 1;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === "{" || c === "[") stack.push(c === "{" ? "}" : "]");
    else if (c === "}" || c === "]") stack.pop();
  }
  return { closing: stack.reverse().join(""), inString };
}

/** Escapes raw control characters and stray backslashes inside strings. */
function repairJson(text) {
  return text.replace(/"(?:[^"\\]|\\[\s\S])*"/g, (string) => string
    .replace(/[\x00-\x1f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replace(/\\(?!["\\/bfnrtu])/g, "\\\\"));
}

function parseJsonWithRepair(text) {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(repairJson(text));
  }
}

module.exports = { parseStreamingJson, repairJson, parseJsonWithRepair };
