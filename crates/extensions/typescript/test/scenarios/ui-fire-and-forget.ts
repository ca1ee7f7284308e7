export default function (pi) {

  pi.registerCommand("show", { description: "Show things", handler: async (_args, ctx) => {
    ctx.ui.notify("plain"); ctx.ui.notify("warn", "warning"); ctx.ui.setStatus("k", "text"); ctx.ui.setStatus("k", undefined);
    ctx.ui.setWidget("w", ["l1", "l2"]); ctx.ui.setWidget("w", ["x"], { placement: "belowEditor" }); ctx.ui.setWidget("w", undefined);
    ctx.ui.setTitle("title"); ctx.ui.setEditorText("text"); ctx.ui.setWorkingMessage("no-op");
    ctx.ui.notify(JSON.stringify([ctx.hasUI, ctx.ui.getEditorText(), ctx.isIdle(), ctx.hasPendingMessages(), ctx.cwd === process.cwd()]), "error");
  }});
}
