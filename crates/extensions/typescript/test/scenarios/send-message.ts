export default function (pi) {

  pi.registerCommand("note", { description: "n", handler: async () => { pi.sendMessage({ customType: "kit", content: "a note", display: true, details: { n: 1 } }); pi.appendEntry("kit-state", { count: 1 }); pi.setSessionName("named by ext"); } });
  pi.registerCommand("trigger", { description: "t", handler: async () => { pi.sendMessage({ customType: "kit", content: "trigger", display: false }, { triggerTurn: true }); } });
  pi.registerCommand("user", { description: "u", handler: async () => { pi.sendUserMessage("typed by extension"); } });

}
