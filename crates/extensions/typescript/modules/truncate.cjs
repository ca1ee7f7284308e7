/** Cutting tool output to lines and bytes (pi-core.md 5.1). */
"use strict";

const DEFAULT_MAX_LINES = 2000;
const DEFAULT_MAX_BYTES = 50 * 1024;
const GREP_MAX_LINE_LENGTH = 500;

/** @returns {string} "12B", "3.4KB", "5.6MB" */
function formatSize(bytes) {
  if (bytes < 1024) return `${bytes}B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)}KB`;
  return `${(bytes / (1024 * 1024)).toFixed(1)}MB`;
}

const size = (text) => Buffer.byteLength(text, "utf8");

function result(content, kept, cut, by, { maxLines, maxBytes, all, totalBytes }, flags = {}) {
  return {
    content,
    truncated: cut,
    truncatedBy: cut ? by : null,
    totalLines: all.length,
    totalBytes,
    outputLines: kept,
    outputBytes: size(content),
    lastLinePartial: false,
    firstLineExceedsLimit: false,
    maxLines,
    maxBytes,
    ...flags,
  };
}

function settings(content, { maxLines = DEFAULT_MAX_LINES, maxBytes = DEFAULT_MAX_BYTES } = {}) {
  // The last line feed ends a line and begins none.
  const all = content === "" ? [] : content.replace(/\n$/, "").split("\n");
  return { maxLines, maxBytes, all, totalBytes: size(content) };
}

/** Keeps whole lines from the beginning. */
function truncateHead(content, options) {
  const given = settings(content, options);
  const { maxLines, maxBytes, all, totalBytes } = given;
  if (all.length <= maxLines && totalBytes <= maxBytes) return result(content, all.length, false, null, given);
  if (size(all[0]) > maxBytes) return result("", 0, true, "bytes", given, { firstLineExceedsLimit: true });
  const kept = [];
  let bytes = 0;
  let by = "lines";
  for (const line of all) {
    const cost = size(line) + (kept.length > 0 ? 1 : 0);
    if (kept.length >= maxLines) break;
    if (bytes + cost > maxBytes) {
      by = "bytes";
      break;
    }
    bytes += cost;
    kept.push(line);
  }
  return result(kept.join("\n"), kept.length, true, by, given);
}

/** Keeps whole lines from the end; a last line that is too long by itself is cut at its beginning. */
function truncateTail(content, options) {
  const given = settings(content, options);
  const { maxLines, maxBytes, all, totalBytes } = given;
  if (all.length <= maxLines && totalBytes <= maxBytes) return result(content, all.length, false, null, given);
  const kept = [];
  let bytes = 0;
  let by = "lines";
  for (let at = all.length - 1; at >= 0 && kept.length < maxLines; at -= 1) {
    const cost = size(all[at]) + (kept.length > 0 ? 1 : 0);
    if (bytes + cost > maxBytes) {
      by = "bytes";
      if (kept.length === 0) return result(endOf(all[at], maxBytes), 1, true, by, given, { lastLinePartial: true });
      break;
    }
    bytes += cost;
    kept.unshift(all[at]);
  }
  return result(kept.join("\n"), kept.length, true, by, given);
}

/** The last bytes of a text, beginning with a whole character. */
function endOf(text, maxBytes) {
  const buffer = Buffer.from(text, "utf8");
  let from = buffer.length - maxBytes;
  while (from < buffer.length && (buffer[from] & 0xc0) === 0x80) from += 1;
  return buffer.subarray(from).toString("utf8");
}

function truncateLine(line, maxChars = GREP_MAX_LINE_LENGTH) {
  if (line.length <= maxChars) return { text: line, wasTruncated: false };
  return { text: `${line.slice(0, maxChars)}... [truncated]`, wasTruncated: true };
}

module.exports = { DEFAULT_MAX_LINES, DEFAULT_MAX_BYTES, GREP_MAX_LINE_LENGTH, formatSize, truncateHead, truncateTail, truncateLine };
