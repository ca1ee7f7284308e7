/** Directories of a test process, removed when it ends. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const made = [];

process.on("exit", () => {
  for (const dir of made) fs.rmSync(dir, { recursive: true, force: true });
});

/** A new directory below the system's one for temporary files. */
export function temporary(prefix) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), prefix));
  made.push(dir);
  return dir;
}
