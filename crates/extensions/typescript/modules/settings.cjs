/** `SettingsManager`, `AuthStorage` and `ModelRegistry` of pi-coding-agent, as far as extensions read them: they write nothing. */
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { agentDir } = require("./paths.cjs");

function readSettings(file) {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8"));
  } catch {
    return {};
  }
}

/** Objects are merged member by member, the second winning. */
function merged(base, over) {
  const made = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const both = value && made[name] && typeof value === "object" && typeof made[name] === "object" && !Array.isArray(value);
    made[name] = both ? merged(made[name], value) : value;
  }
  return made;
}

/** Every `getX()` gives the setting x; `setX()` is refused. */
class SettingsManager {
  constructor(global, project) {
    const all = merged(global, project);
    const known = {
      getGlobalSettings: () => structuredClone(global),
      getProjectSettings: () => structuredClone(project),
      getSettings: () => structuredClone(all),
      reload: async () => {},
      flush: async () => {},
      drainErrors: () => [],
    };
    return new Proxy(this, {
      get(target, name) {
        if (typeof name !== "string" || name in target || name === "then") return target[name];
        if (known[name]) return known[name];
        if (/^set|^apply/.test(name)) return () => { throw new Error(`SettingsManager.${name} of pi-coding-agent is not available headless`); };
        const key = name.replace(/^get/, "").replace(/^./, (first) => first.toLowerCase());
        return () => all[key];
      },
    });
  }

  static create(cwd = process.cwd(), dir = agentDir()) {
    return new SettingsManager(readSettings(path.join(dir, "settings.json")), readSettings(path.join(cwd, ".pi", "settings.json")));
  }

  static inMemory(settings = {}) {
    return new SettingsManager(settings, {});
  }
}

/** Keys are asked of the agent; nothing is stored. */
function createAuth(session) {
  class AuthStorage {
    static create() { return new AuthStorage(); }
    static inMemory() { return new AuthStorage(); }
    getApiKey(provider) { return session.models.getApiKeyForProvider(provider); }
    hasAuth(provider) { return session.models.getProviderAuthStatus(provider).configured; }
    has(provider) { return this.hasAuth(provider); }
    get() { return undefined; }
    list() { return [...new Set(session.models.getAvailable().map(({ provider }) => provider))]; }
    reload() {}
    set() { throw new Error("AuthStorage.set of pi-coding-agent is not available headless"); }
    remove() { throw new Error("AuthStorage.remove of pi-coding-agent is not available headless"); }
  }
  /** The one registry there is, however it is made. */
  const ModelRegistry = function () { return session.models; };
  ModelRegistry.create = () => session.models;
  ModelRegistry.inMemory = () => session.models;
  return { AuthStorage, ModelRegistry };
}

module.exports = { SettingsManager, createAuth };
