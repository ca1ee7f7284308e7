/**
 * The builders of schemas that oh-my-pi gives its extensions as `pi.zod` and `@oh-my-pi/omptype/zod`: they make JSON Schema, and
 * read values (defaults, transformations, refinements). Zod itself is larger; an extension that needs more of it installs it.
 */
"use strict";

const clone = (value) => (value && typeof value === "object" ? structuredClone(value) : value);
const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const textOf = (given) => (typeof given === "string" ? given : given?.message ?? given?.error);

/** Collects what is wrong with a value. */
class Issues {
  list = [];
  add(path, message) { this.list.push({ code: "custom", path, message }); }
}

/** A schema: how it is told, and how it reads a value. Changes make a new one. */
class Schema {
  #json;
  #read;

  /**
   * @param {object} json
   * @param {(value: any, path: (string|number)[], issues: Issues) => any} read
   * @param {object} [marks] `isOptional`; `fallback`, a function; `shape`, `extras` and `own`, the first reading, of an object
   */
  constructor(json, read, marks = {}) {
    this.#json = json;
    this.#read = read;
    Object.defineProperty(this, "marks", { value: marks });
  }

  get isOptional() { return this.marks.isOptional === true; }
  get hasDefault() { return this.marks.fallback !== undefined; }
  get shape() { return this.marks.shape; }
  get description() { return this.#json.description; }
  toJSONSchema() { return clone(this.#json); }
  toJSON() { return this.toJSONSchema(); }

  read(value, path, issues) { return this.#read(value, path, issues); }

  safeParse(value) {
    const issues = new Issues();
    const data = this.read(value, [], issues);
    if (issues.list.length === 0) return { success: true, data };
    const error = new Error(issues.list.map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": ")).join("; "));
    error.name = "ZodError";
    return { success: false, error: Object.assign(error, { issues: issues.list }) };
  }

  parse(value) {
    const { success, data, error } = this.safeParse(value);
    if (!success) throw error;
    return data;
  }

  async safeParseAsync(value) { return this.safeParse(value); }
  async parseAsync(value) { return this.parse(value); }

  #with(json, read = this.#read, marks = this.marks) { return new Schema({ ...this.#json, ...json }, read, marks); }

  /** The same with one more step behind it, which runs if all before were right. */
  #then(json, step) {
    return this.#with(json, (value, path, issues) => {
      const before = issues.list.length;
      const read = this.read(value, path, issues);
      return issues.list.length > before ? read : step(read, path, issues);
    });
  }

  #check(json, fits, message) {
    return this.#then(json, (value, path, issues) => {
      if (!fits(value)) issues.add(path, message);
      return value;
    });
  }

  /** A bound of the value, or of its length. */
  #bound(side, bound, message) {
    const [text, list, number] = side === "min" ? ["minLength", "minItems", "minimum"] : ["maxLength", "maxItems", "maximum"];
    const member = { string: text, array: list }[this.#json.type] ?? number;
    const size = (value) => (typeof value === "number" ? value : value?.length);
    const fits = (value) => (side === "min" ? size(value) >= bound : size(value) <= bound);
    return this.#check({ [member]: bound }, fits, textOf(message) ?? `must be ${side === "min" ? "at least" : "at most"} ${bound}`);
  }

  describe(description) { return this.#with({ description }); }
  meta(members) { return this.#with(members); }
  min(bound, message) { return this.#bound("min", bound, message); }
  max(bound, message) { return this.#bound("max", bound, message); }
  gte(bound, message) { return this.min(bound, message); }
  lte(bound, message) { return this.max(bound, message); }
  length(bound, message) { return this.min(bound, message).max(bound, message); }
  nonempty(message) { return this.min(1, message); }
  gt(bound, message) { return this.#check({ exclusiveMinimum: bound }, (value) => value > bound, textOf(message) ?? `must be more than ${bound}`); }
  lt(bound, message) { return this.#check({ exclusiveMaximum: bound }, (value) => value < bound, textOf(message) ?? `must be less than ${bound}`); }
  int(message) { return this.#check({ type: "integer" }, Number.isInteger, textOf(message) ?? "must be an integer"); }
  positive(message) { return this.gt(0, message); }
  negative(message) { return this.lt(0, message); }
  nonnegative(message) { return this.min(0, message); }
  nonpositive(message) { return this.max(0, message); }
  multipleOf(step, message) { return this.#check({ multipleOf: step }, (value) => value % step === 0, textOf(message) ?? `must be a multiple of ${step}`); }

  regex(expression, message) {
    // A flag such as `g` would make the answer depend on the last one.
    const own = new RegExp(expression.source, expression.flags.replace(/[gy]/g, ""));
    const json = own.flags === "" ? { pattern: own.source } : {};
    return this.#check(json, (value) => own.test(value), textOf(message) ?? `must match ${own}`);
  }

  url(message) { return this.#check({ format: "uri" }, (value) => URL.canParse(value), textOf(message) ?? "must be a URL"); }
  email(message) { return this.#check({ format: "email" }, (value) => /^[^\s@]+@[^\s@]+$/.test(value), textOf(message) ?? "must be an email address"); }
  trim() { return this.#then({}, (value) => value.trim()); }
  toLowerCase() { return this.#then({}, (value) => value.toLowerCase()); }
  toUpperCase() { return this.#then({}, (value) => value.toUpperCase()); }

  optional() {
    const read = (value, path, issues) => (value === undefined ? undefined : this.read(value, path, issues));
    return this.#with({}, read, { ...this.marks, isOptional: true });
  }

  nullable() {
    const { description, default: given, ...inner } = this.#json;
    const told = { ...(description === undefined ? {} : { description }), ...(given === undefined ? {} : { default: given }) };
    return new Schema({ anyOf: [inner, { type: "null" }], ...told },
      (value, path, issues) => (value === null ? null : this.read(value, path, issues)), this.marks);
  }

  nullish() { return this.nullable().optional(); }

  default(value) {
    const fallback = typeof value === "function" ? value : () => clone(value);
    const read = (given, path, issues) => (given === undefined ? fallback() : this.read(given, path, issues));
    return this.#with(typeof value === "function" ? {} : { default: value }, read, { ...this.marks, isOptional: false, fallback });
  }

  catch(value) {
    return this.#with({}, (given, path) => {
      const own = new Issues();
      const read = this.read(given, path, own);
      if (own.list.length === 0) return read;
      return typeof value === "function" ? value() : clone(value);
    });
  }

  refine(fits, message) { return this.#check({}, fits, textOf(message) ?? "is not valid"); }

  superRefine(refine) {
    return this.#then({}, (value, path, issues) => {
      refine(value, { addIssue: (issue) => issues.add([...path, ...(issue?.path ?? [])], textOf(issue) ?? "is not valid") });
      return value;
    });
  }

  transform(change) { return this.#then({}, (value) => change(value)); }
  pipe(next) { return this.#then({}, (value, path, issues) => next.read(value, path, issues)); }
  brand() { return this; }
  readonly() { return this; }
  array() { return z.array(this); }
  or(other) { return z.union([this, other]); }

  strict() { return this.#extras("reject"); }
  strip() { return this.#extras("delete"); }
  passthrough() { return this.#extras("keep"); }
  loose() { return this.passthrough(); }
  extend(shape) { return this.#reshaped({ ...this.#needShape(), ...shape }); }
  merge(other) { return this.extend(other.shape); }
  pick(keys) { return this.#reshaped(Object.fromEntries(Object.entries(this.#needShape()).filter(([key]) => keys[key]))); }
  omit(keys) { return this.#reshaped(Object.fromEntries(Object.entries(this.#needShape()).filter(([key]) => !keys[key]))); }
  partial() { return this.#reshaped(Object.fromEntries(Object.entries(this.#needShape()).map(([key, one]) => [key, one.optional()]))); }
  keyof() { return z.enum(Object.keys(this.#needShape())); }
  get options() { return this.#json.enum; }

  #needShape() {
    if (!this.marks.shape) throw new TypeError("This needs a schema of an object");
    // What was added to the reading would be lost.
    if (this.#read !== this.marks.own) throw new TypeError("This comes before refine, transform, optional, nullable, default and catch");
    return this.marks.shape;
  }

  #reshaped(shape) { return objectOf(shape, this.marks.extras, this.description); }
  #extras(extras) { return objectOf(this.#needShape(), extras, this.description); }
}

/** A schema of values that need no reading. */
function plain(json, fits, expected) {
  return new Schema(json, (value, path, issues) => {
    if (!fits(value)) issues.add(path, `must be ${expected}`);
    return value;
  });
}

/** @param {"delete"|"keep"|"reject"} extras what becomes of members that the shape does not name */
function objectOf(shape, extras = "delete", description = undefined) {
  const entries = Object.entries(shape);
  const required = entries.filter(([, one]) => !one.isOptional && !one.hasDefault).map(([key]) => key);
  const json = {
    type: "object",
    properties: Object.fromEntries(entries.map(([key, one]) => [key, one.toJSONSchema()])),
    ...(required.length > 0 ? { required } : {}),
    ...(extras === "reject" ? { additionalProperties: false } : {}),
    ...(description === undefined ? {} : { description }),
  };
  const read = (value, path, issues) => {
    if (!isPlain(value)) {
      issues.add(path, "must be an object");
      return value;
    }
    const made = extras === "keep" ? { ...value } : {};
    for (const [key, one] of entries) {
      const read = one.read(value[key], [...path, key], issues);
      if (read !== undefined || key in value) made[key] = read;
    }
    if (extras === "reject") for (const key of Object.keys(value)) if (!(key in shape)) issues.add([...path, key], "must not be there");
    return made;
  };
  return new Schema(json, read, { shape, extras, own: read });
}

function unionOf(schemas) {
  return new Schema({ anyOf: schemas.map((one) => one.toJSONSchema()) }, (value, path, issues) => {
    const tried = [];
    for (const one of schemas) {
      const own = new Issues();
      const read = one.read(value, path, own);
      if (own.list.length === 0) return read;
      tried.push(...own.list.map(({ message }) => message));
    }
    issues.add(path, [...new Set(tried)].join(" or "));
    return value;
  });
}

function enumOf(given) {
  const values = Array.isArray(given) ? [...given] : Object.values(given).filter((value) => typeof given[value] !== "number");
  if (values.length === 0) throw new TypeError("enum needs at least one value");
  const type = values.every((value) => typeof value === "string") ? { type: "string" } : {};
  const made = plain({ ...type, enum: values }, (value) => values.includes(value), `one of ${values.join(", ")}`);
  return Object.defineProperty(made, "enum", { value: Object.fromEntries(values.map((value) => [value, value])) });
}

function literalOf(value) {
  const values = [].concat(value);
  const type = values[0] === null ? "null" : typeof values[0];
  const json = values.length === 1 ? { type, const: values[0] } : { enum: values };
  return plain(json, (given) => values.includes(given), values.map((one) => JSON.stringify(one)).join(" or "));
}

function recordOf(key, value) {
  const [keys, values] = value === undefined ? [z.string(), key] : [key, value];
  return new Schema({ type: "object", additionalProperties: values.toJSONSchema() }, (given, path, issues) => {
    if (!isPlain(given)) {
      issues.add(path, "must be an object");
      return given;
    }
    return Object.fromEntries(Object.entries(given).map(([name, one]) => {
      keys.read(name, [...path, name], issues);
      return [name, values.read(one, [...path, name], issues)];
    }));
  });
}

function arrayOf(element) {
  return new Schema({ type: "array", items: element.toJSONSchema() }, (value, path, issues) => {
    if (Array.isArray(value)) return value.map((one, at) => element.read(one, [...path, at], issues));
    issues.add(path, "must be an array");
    return value;
  });
}

const z = {
  string: () => plain({ type: "string" }, (value) => typeof value === "string", "a string"),
  number: () => plain({ type: "number" }, (value) => typeof value === "number" && Number.isFinite(value), "a number"),
  int: () => z.number().int(),
  boolean: () => plain({ type: "boolean" }, (value) => typeof value === "boolean", "true or false"),
  null: () => plain({ type: "null" }, (value) => value === null, "null"),
  undefined: () => plain({}, (value) => value === undefined, "absent").optional(),
  unknown: () => plain({}, () => true, "anything"),
  any: () => plain({}, () => true, "anything"),
  url: () => z.string().url(),
  email: () => z.string().email(),
  literal: literalOf,
  enum: enumOf,
  nativeEnum: enumOf,
  union: unionOf,
  discriminatedUnion: (_member, schemas) => unionOf(schemas),
  array: arrayOf,
  object: (shape = {}) => objectOf(shape),
  strictObject: (shape = {}) => objectOf(shape, "reject"),
  looseObject: (shape = {}) => objectOf(shape, "keep"),
  record: recordOf,
  optional: (inner) => inner.optional(),
  nullable: (inner) => inner.nullable(),
};

/** @returns {object} the namespace, which is also its own member `z` */
function create() {
  const made = { ...z };
  return Object.assign(made, { z: made, default: made });
}

module.exports = { create };
