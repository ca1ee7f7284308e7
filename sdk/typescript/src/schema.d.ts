// The type of a value that fits a JSON Schema, as far as TypeScript can tell from a schema that is written out.

/** A JSON Schema. `FromSchema` reads the members that are named here. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: { readonly [name: string]: JsonSchema | boolean };
  readonly required?: readonly string[];
  readonly items?: JsonSchema | boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly (JsonSchema | boolean)[];
  readonly oneOf?: readonly (JsonSchema | boolean)[];
  readonly [keyword: string]: unknown;
}

/** The type of the values that fit a schema; `unknown` where the schema uses other keywords, such as `$ref`. */
export type FromSchema<S> = S extends { const: infer C }
  ? C
  : S extends { enum: readonly (infer E)[] }
    ? E
    : S extends { anyOf: readonly (infer M)[] }
      ? FromSchema<M>
      : S extends { oneOf: readonly (infer M)[] }
        ? FromSchema<M>
        : S extends { type: readonly (infer T)[] }
          ? OfType<T, S>
          : S extends { type: infer T }
            ? OfType<T, S>
            : unknown;

interface Plain {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type OfType<T, S> = T extends keyof Plain
  ? Plain[T]
  : T extends "array"
    ? S extends { items: infer I }
      ? FromSchema<I>[]
      : unknown[]
    : T extends "object"
      ? OfProperties<S>
      : unknown;

type OfProperties<S> = S extends { properties: infer P }
  ? Flat<
      { -readonly [K in keyof P as K extends Required<S> ? K : never]: FromSchema<P[K]> } & {
        -readonly [K in keyof P as K extends Required<S> ? never : K]?: FromSchema<P[K]>;
      }
    >
  : Record<string, unknown>;

type Required<S> = S extends { required: readonly (infer R)[] } ? R : never;
type Flat<T> = { [K in keyof T]: T[K] };
