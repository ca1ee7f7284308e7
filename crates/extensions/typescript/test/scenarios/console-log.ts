export default function (pi) {
  pi.registerCommand("log", { description: "l", handler: async () => { console.log("stray output"); process.stdout.write("raw write\n"); console.error("stray error"); } });
}
