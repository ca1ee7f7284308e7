export default function (pi) {

  pi.registerCommand("boom", { description: "Throws", handler: async () => { throw new Error("command exploded"); } });
  pi.on("turn_start", async () => { throw new Error("turn_start exploded"); });

}
