/**
 * Some files are not to be written, whatever the model thinks: secrets, what git keeps, lock files.
 * More of them can be named with --protect "one,two".
 */
import { resolve, relative, sep } from "node:path";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

const PROTECTED = [".env", ".git", "node_modules", "package-lock.json", "Cargo.lock"];

export default function (pi: ExtensionAPI) {
  pi.registerFlag("protect", { type: "string", description: "More names of files and folders that are not written" });

  const names = () => {
    const more = pi.getFlag("protect");
    return typeof more === "string" ? [...PROTECTED, ...more.split(",").map((name) => name.trim())] : PROTECTED;
  };

  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "write" && event.toolName !== "edit") return undefined;
    const path = String(event.input.path ?? "");
    const parts = relative(ctx.cwd, resolve(ctx.cwd, path)).split(sep);
    const name = parts.find((part) => names().includes(part));
    if (name === undefined) return undefined;
    ctx.ui.notify(`${path} was not written`, "warning");
    return { block: true, reason: `${name} is protected. Do not try to write it in another way.` };
  });
}
