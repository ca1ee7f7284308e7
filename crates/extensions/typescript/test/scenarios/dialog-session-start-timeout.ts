export default function (pi) {
  pi.on("session_start", async (_e, ctx) => { const ok = await ctx.ui.confirm("Start?", "Go?", { timeout: 1500 }); ctx.ui.notify("answer " + ok); });
}
