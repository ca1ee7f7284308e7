/**
 * Builders of JSON Schema under the names of typebox (0.34 and 1.x): what a tool's parameters are made of.
 * Checking values is typebox-value.cjs. Marks that are not part of the schema are not enumerable.
 */
"use strict";

const OPTIONAL = Symbol.for("pinion.optional");
const KIND = Symbol.for("TypeBox.Kind");

/** A schema with its kind on the side. */
function schema(kind, members, options) {
  const made = { ...members, ...options };
  Object.defineProperty(made, KIND, { value: kind });
  Object.defineProperty(made, "~kind", { value: kind });
  return made;
}

/** A copy with the same marks. */
function copy(from, changes) {
  const made = Object.defineProperties({}, Object.getOwnPropertyDescriptors(from));
  return Object.assign(made, changes);
}

const isOptional = (type) => Boolean(type?.[OPTIONAL]);

function mark(type, optional) {
  const made = copy(type);
  Object.defineProperty(made, OPTIONAL, { value: optional, configurable: true });
  Object.defineProperty(made, "~optional", { value: optional || undefined, configurable: true });
  return made;
}

function object(properties = {}, options) {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]));
  return schema("Object", { type: "object", ...(required.length > 0 ? { required } : {}), properties }, options);
}

/** An object type with each property changed; the options of the type stay. */
function mapProperties(type, change) {
  const { properties, required, type: _, ...options } = type;
  return object(Object.fromEntries(Object.entries(properties ?? {}).flatMap(change)), options);
}

function keysOf(keys) {
  if (Array.isArray(keys)) return keys.map(String);
  if (keys?.const !== undefined) return [String(keys.const)];
  return (keys?.anyOf ?? []).map((item) => String(item.const)).concat(keys?.enum ?? []);
}

function literal(value, options) {
  return schema("Literal", { type: typeof value, const: value }, options);
}

/** Values of a TypeScript enum, of an array, or of an object. */
function enumValues(source) {
  if (Array.isArray(source)) return [...source];
  return [...new Set(Object.entries(source).filter(([key]) => Number.isNaN(Number(key))).map(([, value]) => value))];
}

function record(key, value, options) {
  const keys = keysOf(key);
  if (keys.length > 0) return object(Object.fromEntries(keys.map((name) => [name, value])), options);
  const pattern = key?.pattern ?? (key?.type === "number" || key?.type === "integer" ? "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$" : "^.*$");
  return schema("Record", { type: "object", patternProperties: { [pattern]: value } }, options);
}

/** Properties of all, those of later ones winning. */
function composite(types, options) {
  return object(Object.assign({}, ...types.map(({ properties }) => properties)), options);
}

const simple = (kind, members) => (options) => schema(kind, members, options);

const Type = {
  Any: simple("Any", {}),
  Unknown: simple("Unknown", {}),
  Never: simple("Never", { not: {} }),
  Null: simple("Null", { type: "null" }),
  Undefined: simple("Undefined", { type: "undefined" }),
  Void: simple("Void", { type: "void" }),
  String: simple("String", { type: "string" }),
  Number: simple("Number", { type: "number" }),
  Integer: simple("Integer", { type: "integer" }),
  BigInt: simple("BigInt", { type: "bigint" }),
  Boolean: simple("Boolean", { type: "boolean" }),
  Date: simple("Date", { type: "Date" }),
  Symbol: simple("Symbol", { type: "symbol" }),
  Literal: literal,
  Object: object,
  Interface: (parents, properties, options) => composite([...parents, object(properties)], options),
  Array: (items, options) => schema("Array", { type: "array", items }, options),
  Tuple: (items, options) => schema("Tuple",
    { type: "array", items, additionalItems: false, minItems: items.length, maxItems: items.length }, options),
  Union: (anyOf, options) => schema("Union", { anyOf }, options),
  Intersect: (allOf, options) => schema("Intersect", { allOf }, options),
  Enum: (source, options) => schema("Enum", { enum: enumValues(source) }, options),
  Record: record,
  Optional: (type) => mark(type, true),
  Readonly: (type) => copy(type),
  ReadonlyOptional: (type) => mark(type, true),
  Unsafe: (given = {}) => schema("Unsafe", given),
  Ref: (target, options) => schema("Ref", { $ref: typeof target === "string" ? target : target?.$id }, options),
  This: (options) => schema("This", { $ref: "#" }, options),
  RegExp: (pattern, options) => schema("String", { type: "string", pattern: pattern.source ?? pattern }, options),
  TemplateLiteral: (pattern, options) => schema("String",
    { type: "string", ...(typeof pattern === "string" ? { pattern: `^${pattern.replace(/\$\{[^}]*\}/g, ".*")}$` } : {}) }, options),
  Not: (not, options) => schema("Not", { not }, options),
  Partial: (type, options) => copy(mapProperties(type, ([name, item]) => [[name, mark(item, true)]]), options),
  Required: (type, options) => copy(mapProperties(type, ([name, item]) => [[name, mark(item, false)]]), options),
  Pick: (type, keys, options) => copy(mapProperties(type, (pair) => (keysOf(keys).includes(pair[0]) ? [pair] : [])), options),
  Omit: (type, keys, options) => copy(mapProperties(type, (pair) => (keysOf(keys).includes(pair[0]) ? [] : [pair])), options),
  Composite: composite,
  Evaluate: (type) => (type.allOf ? composite(type.allOf) : type),
  KeyOf: (type, options) => Type.Union(Object.keys(type.properties ?? {}).map((name) => literal(name)), options),
  Index: (type, keys) => {
    const found = keysOf(keys).map((name) => type.properties?.[name] ?? type.items ?? Type.Never());
    return found.length === 1 ? found[0] : Type.Union(found);
  },
  Extract: (type, other) => Type.Union((type.anyOf ?? [type]).filter((item) => keysOf(other).includes(String(item.const)))),
  Exclude: (type, other) => Type.Union((type.anyOf ?? [type]).filter((item) => !keysOf(other).includes(String(item.const)))),
  Recursive: (make, options) => {
    const id = options?.$id ?? `T${(recursive += 1)}`;
    return schema("Recursive", { ...make(schema("This", { $ref: id })), $id: id }, options);
  },
  Function: simple("Function", {}),
  Promise: simple("Promise", {}),
  Refine: (type) => type,
  Codec: (type) => ({ Decode: () => ({ Encode: () => type }), Encode: () => type }),
  Transform: (type) => ({ Decode: () => ({ Encode: () => type }) }),
  Decode: (type) => type,
  Encode: (type) => type,
  Options: (type, options) => copy(type, options),
  Clone: (type) => structuredClone(type),
  Module: (definitions) => ({ Import: (name, options) => copy(definitions[name], options) }),
};

let recursive = 0;

for (const kind of ["Any", "Array", "BigInt", "Boolean", "Enum", "Integer", "Intersect", "Literal", "Never", "Null", "Number",
  "Object", "Record", "Ref", "String", "Tuple", "Undefined", "Union", "Unknown", "Unsafe", "Void"]) {
  Type[`Is${kind}`] = (value) => value?.[KIND] === kind;
}
Type.IsOptional = isOptional;
Type.IsSchema = (value) => value !== null && typeof value === "object";

/** @returns {object} the namespace: everything by name, and all of it under `Type` */
function create() {
  return {
    ...Type,
    Type,
    default: Type,
    TypeGuard: Type,
    Kind: KIND,
    OptionalKind: OPTIONAL,
    FormatRegistry: new Map(),
    TypeRegistry: new Map(),
    CloneType: Type.Clone,
  };
}

module.exports = { create, Type };
