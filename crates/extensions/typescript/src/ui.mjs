/**
 * `ctx.ui`: dialogs and notices go to the agent, which shows them to whoever speaks its protocol (dialects.md 10.4).
 * What needs a terminal is logged once and answers as nothing.
 */

/** How long after the agent's own time limit the host stops waiting, in ms: only for an agent that lost the question. */
const LATE = 2000;

/** A theme whose colours are none. Extensions get copies that are theirs: some wrap what they find on `ui` in proxies. */
export const THEME = Object.freeze({
  name: "none",
  appearance: "dark",
  colors: Object.freeze({}),
  fg: (_color, text) => text,
  bg: (_color, text) => text,
  bold: (text) => text,
  dim: (text) => text,
  italic: (text) => text,
  underline: (text) => text,
  inverse: (text) => text,
  strikethrough: (text) => text,
  style: (text) => text,
  getFgAnsi: () => "",
  getBgAnsi: () => "",
  getColorMode: () => "truecolor",
  getThinkingBorderColor: () => (text) => text,
  getBashModeBorderColor: () => (text) => text,
});

/**
 * Methods that only a terminal could serve: [name, how the refusal is called, what they answer].
 * @type {[string, string|undefined, () => any][]}
 */
const TERMINAL_ONLY = [
  ["custom", "custom UI", async () => undefined],
  ["setFooter", "custom footer", () => {}],
  ["setHeader", "custom header", () => {}],
  ["setEditorComponent", "custom editor", () => {}],
  ["getEditorComponent", null, () => undefined],
  ["addAutocompleteProvider", "autocomplete", () => {}],
  ["onTerminalInput", "terminal input", () => () => {}],
  ["setWorkingMessage", null, () => {}],
  ["setWorkingVisible", null, () => {}],
  ["setWorkingIndicator", null, () => {}],
  ["setHiddenThinkingLabel", null, () => {}],
  ["setToolsExpanded", null, () => {}],
  ["getToolsExpanded", null, () => false],
  ["getEditorText", null, () => ""],
  ["getAllThemes", null, () => []],
  ["getTheme", null, () => undefined],
  ["setTheme", null, () => ({ success: false, error: "Theme switching not supported in RPC mode" })],
];

/**
 * @param {import("./session.mjs").Session} session
 * @param {import("./extension.mjs").Extension} extension
 */
export function createUi(session, extension) {
  if (hasNoUi(session, extension)) return silentUi();
  const tell = (method, params) => {
    session.assertLive();
    session.tell(method, params);
  };
  const ask = (method, params, options) => dialog(session, method, params, options);
  // The first hooks got null for "nothing chosen".
  const nothing = session.generation === "hooks" ? null : undefined;
  const text = (value) => (typeof value === "string" ? value : nothing);
  const ui = {
    theme: { ...THEME },
    async select(title, options, opts) {
      const labels = options.map((option) => (typeof option === "string" ? option : option?.label ?? String(option)));
      const details = options.map((option) => (typeof option?.description === "string" ? { description: option.description } : {}));
      const optionDetails = details.some((detail) => "description" in detail) ? details : undefined;
      return text(await ask("ui.select", { title, options: labels, optionDetails }, opts));
    },
    confirm: async (title, message, opts) => (await ask("ui.confirm", { title, message }, opts)) === true,
    input: async (title, placeholder, opts) => text(await ask("ui.input", { title, placeholder }, opts)),
    editor: async (title, prefill, opts) => text(await ask("ui.editor", { title, prefill }, { signal: opts?.signal })),
    notify: (message, type) => tell("ui.notify", { message: String(message), notifyType: type }),
    setStatus: (key, value) => tell("ui.setStatus", { statusKey: key, statusText: value ?? undefined }),
    setTitle: (title) => tell("ui.setTitle", { title }),
    setEditorText: (value) => tell("ui.setEditorText", { text: value }),
    pasteToEditor: (value) => tell("ui.setEditorText", { text: value }),
    openUrl: (url, options) => tell("ui.openUrl", { url, ...options }),
    setWidget(key, content, options) {
      if (Array.isArray(content ?? [])) {
        tell("ui.setWidget", { widgetKey: key, widgetLines: content?.map(String), widgetPlacement: options?.placement });
      } else session.refuse(extension.path, "custom widget");
    },
  };
  for (const [name, refusal, answer] of TERMINAL_ONLY) {
    ui[name] = () => {
      session.assertLive();
      if (refusal) session.refuse(extension.path, refusal);
      return answer();
    };
  }
  return ui;
}

/** Custom tools of the first generation had a user interface only in a terminal (dialects.md 10.3). */
export function hasNoUi(session, extension) {
  return session.generation === "hooks" && extension.kind === "tool";
}

/** Answers everything as nobody would. */
function silentUi() {
  const silent = { theme: { ...THEME }, select: async () => null, confirm: async () => false, input: async () => null, editor: async () => undefined };
  for (const name of ["notify", "setStatus", "setTitle", "setWidget", "setEditorText", "pasteToEditor", "openUrl"]) silent[name] = () => {};
  for (const [name, , answer] of TERMINAL_ONLY) silent[name] = answer;
  return silent;
}

/**
 * @param {any} session
 * @param {string} method
 * @param {any} params
 * @param {{ signal?: AbortSignal, timeout?: number }} [options]
 * @returns {Promise<any>} the answer; undefined without one
 */
async function dialog(session, method, params, { signal, timeout } = {}) {
  session.assertLive();
  if (signal?.aborted) return undefined;
  const limit = timeout > 0 ? timeout : undefined;
  const gone = new AbortController();
  const withdraw = () => gone.abort();
  signal?.addEventListener("abort", withdraw, { once: true });
  const timer = limit && setTimeout(withdraw, limit + LATE);
  try {
    return await session.call(method, { ...params, timeout: limit }, { signal: gone.signal });
  } catch (error) {
    if (!gone.signal.aborted) session.host.log("warn", `${method}: ${error.message}`);
    return undefined;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", withdraw);
  }
}
