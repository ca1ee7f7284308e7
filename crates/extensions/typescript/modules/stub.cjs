/**
 * Stubs for what pi's packages export and a headless agent has not: they import, and say so when used.
 * The names are in names.cjs; an unknown name that begins like a class is a stub too, so that newer packages load.
 */
"use strict";
const names = require("./names.cjs");

/** Names of classes begin like this. */
const CLASS = /^[A-Z][a-z]/;

/** @returns {Function} callable, constructible and extendable; using it throws a clear error */
function stub(package_, name) {
  const unavailable = (what) => new Error(`${what} of ${package_} is not available headless`);
  const target = function () {};
  Object.defineProperty(target, "name", { value: name });
  const proxy = new Proxy(target, {
    apply() {
      throw unavailable(name);
    },
    /** A subclass may be made; what it inherits is nothing. */
    construct(_, args, newTarget) {
      if (newTarget === proxy) throw unavailable(name);
      return Reflect.construct(target, args, newTarget);
    },
    get(object, key) {
      if (key in object || typeof key === "symbol") return Reflect.get(object, key);
      return () => {
        throw unavailable(`${name}.${key}`);
      };
    },
  });
  return proxy;
}

/**
 * @param {string} package_ name without scope
 * @param {object} real what there is
 * @returns {object} the namespace as importers see it
 */
function withStubs(package_, real) {
  const known = new Set(names[package_] ?? []);
  const stubs = new Map();
  return new Proxy(real, {
    get(target, name) {
      if (name in target || typeof name === "symbol" || name === "then" || name === "default" || name === "__esModule") return target[name];
      if (!known.has(name) && !CLASS.test(name)) return undefined;
      if (!stubs.has(name)) stubs.set(name, stub(package_, name));
      return stubs.get(name);
    },
    has: (target, name) => name in target || known.has(name) || (typeof name === "string" && CLASS.test(name)),
  });
}

module.exports = { stub, withStubs };
