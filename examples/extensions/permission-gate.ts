/**
 * Asks before the shell does something that is hard to undo. Whoever does not answer, or cannot be asked, has said no.
 *
 * Put it into ~/.pi/agent/extensions/, or name it with -e.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

const RISKY: [RegExp, string][] = [
  [/\brm\s+(-\w*[rf]\w*\s+)+/, "removes files without asking"],
  [/\bsudo\b/, "runs as root"],
  [/\b(chmod|chown)\b.*\b777\b/, "lets everybody write"],
  [/\bgit\s+push\b.*(--force|-f)\b/, "rewrites a branch that others may have"],
];

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return undefined;
    const command = String(event.input.command ?? "");
    const risk = RISKY.find(([pattern]) => pattern.test(command));
    if (!risk) return undefined;
    const allowed = ctx.hasUI && (await ctx.ui.confirm(`This ${risk[1]}. Run it?`, command, { timeout: 60_000 }));
    return allowed ? undefined : { block: true, reason: `The user did not allow this command: it ${risk[1]}.` };
  });
}
