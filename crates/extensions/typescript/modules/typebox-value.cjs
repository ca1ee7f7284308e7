/** Checking and filling in values by schema, under typebox's names (`Value`, `TypeCompiler`, `Compile`). */
"use strict";

/** @returns {Iterable<{path: string, message: string, value: any, schema: object}>} */
function* errors(schema, value, path = "") {
  if (!schema || schema === true) return;
  const fail = (message) => ({ path, message, value, schema });
  if (schema.const !== undefined && value !== schema.const) yield fail(`Expected ${JSON.stringify(schema.const)}`);
  if (schema.enum && !schema.enum.includes(value)) yield fail(`Expected one of ${JSON.stringify(schema.enum)}`);
  if (schema.anyOf && !schema.anyOf.some((item) => check(item, value))) yield fail("Expected union value");
  if (schema.oneOf && schema.oneOf.filter((item) => check(item, value)).length !== 1) yield fail("Expected exactly one match");
  for (const item of schema.allOf ?? []) yield* errors(item, value, path);
  if (schema.not && check(schema.not, value)) yield fail("Unexpected value");
  const types = [].concat(schema.type ?? []);
  if (types.length > 0 && !types.some((type) => isType(type, value))) {
    yield fail(`Expected ${types.join(" or ")}`);
    return;
  }
  if (typeof value === "string") yield* stringErrors(schema, value, fail);
  else if (typeof value === "number") yield* numberErrors(schema, value, fail);
  else if (Array.isArray(value)) yield* arrayErrors(schema, value, path, fail);
  else if (value && typeof value === "object") yield* objectErrors(schema, value, path, fail);
}

function isType(type, value) {
  switch (type) {
    case "object": return value !== null && typeof value === "object" && !Array.isArray(value);
    case "array": return Array.isArray(value);
    case "null": return value === null;
    case "integer": return Number.isInteger(value);
    case "number": return Number.isFinite(value);
    case "undefined": case "void": return value === undefined;
    case "Date": return value instanceof Date;
    default: return typeof value === type;
  }
}

function* stringErrors(schema, value, fail) {
  if (value.length < schema.minLength) yield fail(`Expected string length greater or equal to ${schema.minLength}`);
  if (value.length > schema.maxLength) yield fail(`Expected string length less or equal to ${schema.maxLength}`);
  if (schema.pattern && !new RegExp(schema.pattern).test(value)) yield fail(`Expected string to match '${schema.pattern}'`);
}

function* numberErrors(schema, value, fail) {
  if (value < schema.minimum) yield fail(`Expected number to be greater or equal to ${schema.minimum}`);
  if (value > schema.maximum) yield fail(`Expected number to be less or equal to ${schema.maximum}`);
  if (value <= schema.exclusiveMinimum) yield fail(`Expected number to be greater than ${schema.exclusiveMinimum}`);
  if (value >= schema.exclusiveMaximum) yield fail(`Expected number to be less than ${schema.exclusiveMaximum}`);
  if (schema.multipleOf && value % schema.multipleOf !== 0) yield fail(`Expected number to be a multiple of ${schema.multipleOf}`);
}

function* arrayErrors(schema, value, path, fail) {
  if (value.length < schema.minItems) yield fail(`Expected array length to be greater or equal to ${schema.minItems}`);
  if (value.length > schema.maxItems) yield fail(`Expected array length to be less or equal to ${schema.maxItems}`);
  if (schema.uniqueItems && new Set(value.map((item) => JSON.stringify(item))).size < value.length) yield fail("Expected array elements to be unique");
  for (const [at, item] of value.entries()) {
    const of = Array.isArray(schema.items) ? schema.items[at] : schema.items;
    if (of) yield* errors(of, item, `${path}/${at}`);
  }
}

function* objectErrors(schema, value, path) {
  const properties = schema.properties ?? {};
  for (const name of schema.required ?? []) {
    if (value[name] === undefined) yield { path: `${path}/${name}`, message: "Expected required property", value: undefined, schema: properties[name] };
  }
  const patterns = Object.entries(schema.patternProperties ?? {}).map(([pattern, item]) => [new RegExp(pattern), item]);
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue;
    const of = properties[name] ?? patterns.find(([pattern]) => pattern.test(name))?.[1];
    if (of) yield* errors(of, item, `${path}/${name}`);
    else if (schema.additionalProperties === false) yield { path: `${path}/${name}`, message: "Unexpected property", value: item, schema };
    else if (typeof schema.additionalProperties === "object") yield* errors(schema.additionalProperties, item, `${path}/${name}`);
  }
}

/** @returns {boolean} */
function check(schema, value) {
  return errors(schema, value).next().done === true;
}

/** Fills in defaults in place. */
function fill(schema, value) {
  if (value === undefined && schema?.default !== undefined) return structuredClone(schema.default);
  if (value && typeof value === "object" && !Array.isArray(value)) {
    for (const [name, of] of Object.entries(schema?.properties ?? {})) {
      const filled = fill(of, value[name]);
      if (filled !== undefined) value[name] = filled;
    }
  }
  return value;
}

/** The simplest value of a schema. */
function make(schema) {
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return make(schema.anyOf[0]);
  switch ([].concat(schema.type)[0]) {
    case "object": return Object.fromEntries((schema.required ?? []).map((name) => [name, make(schema.properties[name])]));
    case "array": return Array.from({ length: schema.minItems ?? 0 }, () => make(schema.items));
    case "string": return "";
    case "number": case "integer": return schema.minimum ?? 0;
    case "boolean": return false;
    case "null": return null;
    default: return undefined;
  }
}

/** Takes strings for numbers and booleans, and single values for arrays. */
function convert(schema, value) {
  const type = [].concat(schema?.type)[0];
  if ((type === "number" || type === "integer") && typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value))) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  if (type === "string" && (typeof value === "number" || typeof value === "boolean")) return String(value);
  if (type === "array" && value !== undefined) return (Array.isArray(value) ? value : [value]).map((item) => convert(schema.items, item));
  if (type === "object" && value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, convert(schema.properties?.[name], item)]));
  }
  return value;
}

/** Leaves out what the schema does not name. */
function clean(schema, value) {
  if (!schema?.properties || !value || typeof value !== "object" || schema.additionalProperties) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => schema.properties[name]).map(([name, item]) => [name, clean(schema.properties[name], item)]));
}

function must(schema, value) {
  const [problem] = errors(schema, value);
  if (problem) throw Object.assign(new Error(`${problem.path || "/"}: ${problem.message}`), { error: problem });
  return value;
}

const list = (schema, value) => Object.assign([...errors(schema, value)], { First() { return this[0]; } });

const Value = {
  Check: (...args) => check(args.at(-2), args.at(-1)),
  Errors: (...args) => list(args.at(-2), args.at(-1)),
  Default: (...args) => fill(args.at(-2), args.at(-1)),
  Create: (...args) => make(args.at(-1)),
  Convert: (...args) => convert(args.at(-2), args.at(-1)),
  Clean: (...args) => clean(args.at(-2), args.at(-1)),
  Cast: (...args) => (check(args.at(-2), args.at(-1)) ? args.at(-1) : make(args.at(-2))),
  Parse: (...args) => must(args.at(-2), convert(args.at(-2), fill(args.at(-2), args.at(-1)))),
  Decode: (...args) => must(args.at(-2), args.at(-1)),
  Encode: (...args) => must(args.at(-2), args.at(-1)),
  Assert: (...args) => void must(args.at(-2), args.at(-1)),
  Equal: (left, right) => JSON.stringify(left) === JSON.stringify(right),
  Clone: (value) => structuredClone(value),
};

/** A schema made ready to check with. */
function Compile(...args) {
  const schema = args.at(-1);
  const bound = (name) => (value) => Value[name](schema, value);
  return { Schema: () => schema, ...Object.fromEntries(["Check", "Errors", "Decode", "Encode", "Parse", "Clean", "Default", "Convert"].map((name) => [name, bound(name)])) };
}

/** @returns {object} the namespace of `typebox/value`, `typebox/compile` and their older names */
function create() {
  return { ...Value, Value, default: Value, Compile, TypeCompiler: { Compile }, ValueErrorIterator: Array };
}

module.exports = { create, check, errors, fill, convert };
