export default function (pi) {
  pi.on("session_before_switch", async (event, ctx) => { ctx.ui.notify("switch " + event.reason + " " + (event.targetSessionFile ? "file" : "none")); return { cancel: true }; });
}
