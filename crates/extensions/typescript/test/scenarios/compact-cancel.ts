export default function (pi) {
  pi.on("session_before_compact", async () => ({ cancel: true }));
}
