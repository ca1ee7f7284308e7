/**
 * Remembers the state of the working tree with every prompt, and offers to bring it back when the conversation is forked
 * from there. Nothing is committed and no branch changes: `git stash create` only makes an object.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

const ENTRY = "git-checkpoint";

export default function (pi: ExtensionAPI) {
  const git = async (...args: string[]) => {
    const { stdout, code } = await pi.exec("git", args, { timeout: 10_000 });
    return code === 0 ? stdout.trim() : undefined;
  };

  // Before the model has changed anything for this prompt. A clean tree has nothing to stash: it is the commit itself.
  pi.on("before_agent_start", async () => {
    const commit = (await git("stash", "create")) || (await git("rev-parse", "HEAD"));
    if (commit) pi.appendEntry(ENTRY, { commit });
  });

  pi.on("session_before_fork", async (event, ctx) => {
    // The checkpoint of a prompt is written right before it.
    const entries = ctx.sessionManager.getEntries();
    const at = entries.findIndex((entry) => entry.id === event.entryId);
    const checkpoint = entries.slice(0, at).findLast((entry) => entry.type === "custom" && entry.customType === ENTRY);
    if (!checkpoint || !ctx.hasUI) return;
    const choice = await ctx.ui.select("Bring the files back to where they were?", ["Yes, bring them back", "No, keep them"]);
    if (!choice?.startsWith("Yes")) return;
    const restored = await git("checkout", checkpoint.data.commit, "--", ".");
    ctx.ui.notify(restored === undefined ? "The files could not be brought back" : "The files are as they were", restored === undefined ? "error" : "info");
  });
}
