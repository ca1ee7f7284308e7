export default function (pi) {

  pi.registerCommand("t", { description: "Timeouts", handler: async (_args, ctx) => {
    const a = await ctx.ui.select("S", ["a"], { timeout: 100 }); const b = await ctx.ui.confirm("C", "m", { timeout: 100 }); const c = await ctx.ui.input("I", "p", { timeout: 100 });
    ctx.ui.notify(JSON.stringify([a ?? null, b, c ?? null]));
  }});
}
