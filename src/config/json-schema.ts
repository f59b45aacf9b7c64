/** What the JSON Schema of a validator says of keys. */
import { isMap } from './config-value.js';

/** The part of JSON Schema that is used here. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const schemas = new WeakMap<object, unknown>();

/**
 * The JSON Schema of a validator, if it has one (Standard JSON Schema: zod 4.2, arktype 2.1.28 and later).
 * See https://standardschema.dev/json-schema.
 */
export function jsonSchemaOf(validate: unknown): unknown {
  if (Object(validate) !== validate) return undefined;
  const validator = validate as object;
  if (!schemas.has(validator)) schemas.set(validator, converted(validator));
  return schemas.get(validator);
}

function converted(validate: object): unknown {
  try {
    const { jsonSchema } = (validate as { '~standard': { jsonSchema: { input(to: object): unknown } } })[
      '~standard'
    ];
    // Of zod: a type that JSON Schema does not have, such as a date, does not hide all others. arktype needs no such option.
    return jsonSchema.input({ target: 'draft-2020-12', libraryOptions: { unrepresentable: 'any' } });
  } catch {
    return undefined; // A function, or another schema.
  }
}

/** The keys that a schema names at one path. */
export interface SchemaKeys {
  readonly names: readonly string[];
  /** Whether it takes any other key, too. */
  readonly isOpen: boolean;
  /** The keys below one of these, or below an element of a list. */
  at(name: string): SchemaKeys;
}

/** The keys at the top of a schema. An alternative counts as if all of them held. */
export function schemaKeys(root: unknown): SchemaKeys {
  const keysOf = (nodes: readonly unknown[]): SchemaKeys => {
    const found = new Set<JsonSchema>();
    for (const node of nodes) addParts(node, root, found);
    const parts = [...found];
    return {
      names: parts.flatMap(({ properties }) => (isMap(properties) ? Object.keys(properties) : [])),
      isOpen: parts.some(takesAnyKey),
      at: (name) => keysOf(parts.flatMap((part) => below(part, name))),
    };
  };
  return keysOf([root]);
}

/** Adds a node, what it refers to, and its alternatives. */
function addParts(node: unknown, root: unknown, parts: Set<JsonSchema>): void {
  if (!isMap(node) || parts.has(node)) return;
  parts.add(node);
  const { $ref: reference, allOf, anyOf, oneOf } = node;
  for (const each of [allOf, anyOf, oneOf]) {
    if (Array.isArray(each)) for (const one of each) addParts(one, root, parts);
  }
  if (typeof reference !== 'string' || !reference.startsWith('#')) return;
  const path = reference.split('/').slice(1);
  const target = path.reduce<unknown>((within, key) => (isMap(within) ? within[key] : undefined), root);
  addParts(target, root, parts);
}

function below(
  { properties, items, prefixItems, additionalProperties }: JsonSchema,
  name: string,
): readonly unknown[] {
  if (isMap(properties) && Object.hasOwn(properties, name)) return [properties[name]];
  if (/^\d+$/.test(name)) {
    if (Array.isArray(prefixItems) && prefixItems[Number(name)] !== undefined)
      return [prefixItems[Number(name)]];
    if (items !== undefined) return [items];
  }
  return [additionalProperties];
}

function takesAnyKey(part: JsonSchema): boolean {
  const { properties, additionalProperties, patternProperties, type = 'object' } = part;
  if (additionalProperties === true || isMap(additionalProperties) || patternProperties !== undefined)
    return true;
  const saysNothing = !['$ref', 'allOf', 'anyOf', 'oneOf', 'enum', 'const'].some((key) => key in part);
  return type === 'object' && properties === undefined && saysNothing && additionalProperties !== false;
}
