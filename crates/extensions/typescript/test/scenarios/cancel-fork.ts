export default function (pi) {
  pi.on("session_before_fork", async (event, ctx) => { ctx.ui.notify("fork " + event.position); return { cancel: true }; });
}
