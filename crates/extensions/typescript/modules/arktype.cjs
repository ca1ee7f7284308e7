/**
 * The builder of schemas that oh-my-pi gives its extensions as `pi.arktype` and `@oh-my-pi/omptype`, as far as parameters of tools
 * need it: `type({ path: "string", "limit?": "1 <= number <= 100" })`. What it makes are schemas of zod.cjs, which cannot be called.
 */
"use strict";

/** Splits at a sign outside of quotes and parentheses. */
function split(text, sign) {
  const parts = [""];
  let quote, depth = 0;
  for (const one of text) {
    if (quote) quote = one === quote ? undefined : quote;
    else if (one === "'" || one === '"') quote = one;
    else if (one === "(") depth += 1;
    else if (one === ")") depth -= 1;
    if (one === sign && !quote && depth === 0) parts.push("");
    else parts[parts.length - 1] += one;
  }
  return parts.map((part) => part.trim());
}

/** The value that a text spells out: a quoted text, a number, a keyword. */
function valueOf(text) {
  const quoted = /^(["'])(.*)\1$/s.exec(text);
  if (quoted) return { value: quoted[2] };
  if (/^-?\d+(\.\d+)?$/.test(text)) return { value: Number(text) };
  const words = { true: true, false: false, null: null };
  return Object.hasOwn(words, text) ? { value: words[text] } : undefined;
}

const BOUNDED = /^(?:(-?\d+(?:\.\d+)?)\s*(<=?)\s*)?([a-zA-Z.]+(?:\[\])*)(?:\s*(<=?|>=?|==)\s*(-?\d+(?:\.\d+)?))?$/;

function create(z) {
  const keywords = {
    string: z.string, number: z.number, boolean: z.boolean, unknown: z.unknown, any: z.any, null: z.null, undefined: z.undefined,
    object: () => z.looseObject(), true: () => z.literal(true), false: () => z.literal(false), "number.integer": z.int,
    "string.integer": () => z.string().regex(/^-?\d+$/), "string.email": z.email, "string.url": z.url, "string.trim": () => z.string().trim(),
    "string.lower": () => z.string().toLowerCase(), "string.upper": () => z.string().toUpperCase(),
  };

  function bounded(schema, sign, bound) {
    const { type } = schema.toJSONSchema();
    const hasLength = type === "string" || type === "array";
    if (sign === "==") return hasLength ? schema.length(bound) : z.literal(bound);
    if (sign === ">=") return schema.min(bound);
    if (sign === "<=") return schema.max(bound);
    if (sign === ">") return hasLength ? schema.min(bound + 1) : schema.gt(bound);
    return hasLength ? schema.max(bound - 1) : schema.lt(bound);
  }

  function term(text) {
    const literal = valueOf(text);
    if (literal) return z.literal(literal.value);
    if (text.endsWith("[]")) return z.array(term(text.slice(0, -2).trim()));
    if (text.startsWith("(") && text.endsWith(")")) return parse(text.slice(1, -1).trim());
    const expression = /^\/(.*)\/([a-z]*)$/s.exec(text);
    if (expression) return z.string().regex(new RegExp(expression[1], expression[2]));
    const [, least, atLeast, name, sign, bound] = BOUNDED.exec(text) ?? [];
    if (name === undefined || (least === undefined && sign === undefined && !Object.hasOwn(keywords, name))) {
      throw new TypeError(`arktype: "${text}" is not supported here: use pi.zod or typebox`);
    }
    let made = Object.hasOwn(keywords, name) ? keywords[name]() : term(name);
    if (least !== undefined) made = bounded(made, atLeast.replace("<", ">"), Number(least));
    return sign === undefined ? made : bounded(made, sign, Number(bound));
  }

  function parse(text) {
    const terms = split(text, "|").filter(Boolean);
    if (terms.length === 1) return term(terms[0]);
    const literals = terms.map(valueOf);
    const isEnum = literals.every((one) => typeof one?.value === "string");
    return isEnum ? z.enum(literals.map(({ value }) => value)) : z.union(terms.map(term));
  }

  function withDefault(text) {
    const [inner, ...given] = text.split(/\s+=\s+/);
    const literal = given.length === 1 ? valueOf(given[0].trim()) : undefined;
    return literal ? parse(inner.trim()).default(literal.value) : parse(text.trim());
  }

  function objectOf({ "+": extras, ...members }) {
    const shape = Object.entries(members).map(([key, one]) => (
      key.endsWith("?") ? [key.slice(0, -1), type(one).optional()] : [key, type(one)]));
    const made = z.object(Object.fromEntries(shape));
    return extras === "reject" ? made.strict() : extras === "delete" ? made : made.passthrough();
  }

  function type(definition, ...more) {
    if (more.length > 0) return type([definition, ...more]);
    if (typeof definition === "string") return withDefault(definition);
    if (definition instanceof RegExp) return z.string().regex(definition);
    if (typeof definition?.safeParse === "function") return definition;
    if (Array.isArray(definition)) {
      if (definition[1] === "[]") return z.array(type(definition[0]));
      if (definition[1] === "=") return type(definition[0]).default(definition[2]);
      if (definition[1] === "|") return z.union([type(definition[0]), type(definition[2])]);
      throw new TypeError("arktype: this tuple is not supported here: use pi.zod or typebox");
    }
    return objectOf(definition);
  }

  type.enumerated = (...values) => (values.every((value) => typeof value === "string") ? z.enum(values) : z.union(values.map(z.literal)));
  type.type = type;
  return type;
}

module.exports = { create };
