export default function (pi) {

  pi.on("tool_call", async (event) => { if (event.toolName === "bash" && event.input.command.includes("rm -rf")) return { block: true, reason: "Dangerous" }; });

}
