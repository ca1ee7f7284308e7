export default function (pi) {

  pi.registerCommand("ask", { description: "Ask things", handler: async (args, ctx) => {
    const a = await ctx.ui.select("Pick one", ["red", "green"]);
    const b = await ctx.ui.confirm("Sure?", "Really do it?");
    const c = await ctx.ui.input("Name", "type here");
    const d = await ctx.ui.editor("Edit", "prefilled\ntext");
    ctx.ui.notify(JSON.stringify([args, a ?? null, b, c ?? null, d ?? null]), "info");
  }});

}
