export default function (pi) {

  pi.registerTool({ name: "greet", label: "Greet", description: "Greets someone", parameters: { type: "object", properties: { name: { type: "string", description: "Who" } }, required: ["name"] },
    async execute(id, params, signal, onUpdate, ctx) {
      onUpdate?.({ content: [{ type: "text", text: "working" }], details: { step: 1 } });
      const ok = await ctx.ui.confirm("Greet?", "Greet " + params.name + "?");
      if (!ok) throw new Error("refused by user");
      return { content: [{ type: "text", text: "Hello " + params.name }], details: { greeted: params.name } };
    } });

}
