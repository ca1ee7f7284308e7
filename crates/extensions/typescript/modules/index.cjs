/**
 * The packages extensions import without having them installed: pi's own and typebox. Each session has its own set,
 * made when first imported. Names that need a terminal or the agent's insides are stubs (stub.cjs).
 */
"use strict";
const { withStubs } = require("./stub.cjs");

/** Scopes under which pi's packages were and are published. */
const SCOPES = ["@mariozechner", "@earendil-works", "@oh-my-pi"];

/** Package name without its scope: the file that makes it. */
const MAKERS = {
  "pi-coding-agent": (session) => require("./agent.cjs").create(session),
  "pi-ai": (session) => require("./ai.cjs").create(session),
  "pi-tui": () => require("./tui.cjs").create(),
  "pi-agent-core": (session) => require("./core.cjs").create(session),
  "pi-utils": (session) => require("./utils.cjs").create(session),
};

/** Other modules under the name of oh-my-pi: the file that makes them. They have no stubs, since few of their names are known here. */
const OWN = {
  zod: () => require("./zod.cjs").create(),
  omptype: (_, get) => {
    const type = require("./arktype.cjs").create(get("@oh-my-pi/omptype/zod"));
    return { type, default: type };
  },
  chalk: () => {
    const chalk = require("./utils.cjs").chalk();
    return { chalk, default: chalk, __esModule: true };
  },
};

/** Subpaths of packages of oh-my-pi that are modules of their own. */
const OMP_SUBPATHS = { "omptype": "omptype", "omptype/zod": "zod", "omptype/typebox": "typebox", "pi-utils/chalk": "chalk" };

/** @returns {string|undefined} what a module name stands for; subpaths of pi's packages stand for the whole */
function canonical(name) {
  if (typeof name !== "string") return undefined;
  const [scope, base] = name.split("/");
  const own = scope === "@oh-my-pi" && OMP_SUBPATHS[name.slice(scope.length + 1)];
  if (own) return own;
  // Only oh-my-pi has this package.
  if (base === "pi-utils" && scope !== "@oh-my-pi") return undefined;
  if (SCOPES.includes(scope)) return MAKERS[base] ? base : undefined;
  const typebox = /^(?:@sinclair\/)?typebox(?:\/(.*))?$/.exec(name);
  if (typebox) return /^(value|compile|compiler|error|errors|schema|system)\b/.test(typebox[1] ?? "") ? "typebox/value" : "typebox";
  return undefined;
}

/**
 * @param {object} session see src/session.mjs
 * @returns {{get: (name: string) => any, virtual: object}} `virtual` answers `in` and property access by module name
 */
function createModules(session) {
  const made = new Map();
  const get = (name) => {
    const which = canonical(name);
    if (!which) return undefined;
    if (!made.has(which)) made.set(which, make(which, session, get));
    return made.get(which);
  };
  const virtual = new Proxy({}, {
    has: (_, name) => canonical(name) !== undefined,
    get: (_, name) => get(name),
    getOwnPropertyDescriptor: (_, name) => (canonical(name) ? { value: get(name), configurable: true, enumerable: true } : undefined),
  });
  return { get, virtual };
}

function make(which, session, get) {
  if (OWN[which]) return OWN[which](session, get);
  if (which === "typebox") return require("./typebox.cjs").create();
  if (which === "typebox/value") return require("./typebox-value.cjs").create();
  return withStubs(which, MAKERS[which](session));
}

module.exports = { createModules, canonical };
