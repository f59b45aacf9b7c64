/** Describes the keys of a configuration and where their values come from, without values that may be secret. */
import { redact, REDACTED, SECRET_NAME } from '../core/options/redaction.js';
import { isMap, leavesOf, member, valueAt, type ConfigMap } from './config-value.js';
import type { JsonSchema } from './json-schema.js';
import { mergeLayers, originOf, type Layer } from './merge.js';

/** A key of a configuration. Plain data without the current value. */
export interface ConfigKey {
  /** From the top. */
  readonly path: readonly string[];
  /** The type in the schema, such as `number` or `"a" | "b"`, or else the type of the current value. */
  readonly type: string;
  /** The default as JSON, `[redacted]` if the key or the schema marks it as secret; undefined if there is none. */
  readonly default: string | undefined;
  /**
   * The source of the current value, or the file of it that the value comes from; `default` if the schema provides it;
   * undefined if there is no value.
   */
  readonly source: string | undefined;
  /** By the schema. */
  readonly description: string | undefined;
}

const SECRET_KEY = new RegExp(`${SECRET_NAME}|passw|credential`, 'i');

/**
 * Describes all keys that the schema or the layers have.
 * @param defaults the values to show as defaults where the schema has none.
 * @param isLoaded whether the defaults of the schema are in use.
 */
export function describeKeys(
  schema: unknown,
  layers: readonly Layer[],
  { defaults, isLoaded }: { readonly defaults: ConfigMap; readonly isLoaded: boolean },
): readonly ConfigKey[] {
  const merged = mergeLayers(layers, schema);
  const described = new Map<string, { readonly path: readonly string[]; readonly schema: JsonSchema }>();
  for (const [path, below] of leavesOf(schema, (node) => member(node, 'properties'))) {
    const value = valueAt(merged.values, path);
    // Keys that the schema does not name are below this map.
    if (isMap(value) && Object.keys(value).length > 0) continue;
    described.set(JSON.stringify(path), { path, schema: isMap(below) ? below : {} });
  }
  for (const [path] of leavesOf(merged.values)) {
    const key = JSON.stringify(path);
    if (!described.has(key)) described.set(key, { path, schema: {} });
  }
  return [...described.values()].map(({ path, schema: node }) => {
    const standard = node['default'] ?? valueAt(defaults, path);
    const origin = originOf(merged.layers, path);
    const ofSchema = isLoaded && node['default'] !== undefined ? 'default' : undefined;
    return {
      path,
      type: typeOf(node) ?? typeOfValue(valueAt(merged.values, path)),
      default: standard === undefined ? undefined : shown(path, node, standard),
      source: origin?.fileOf?.(path) ?? origin?.source ?? ofSchema,
      description: typeof node['description'] === 'string' ? node['description'] : undefined,
    };
  });
}

/** The keys as a table of text or Markdown. */
export function tableOf(keys: readonly ConfigKey[], format: 'text' | 'markdown'): string {
  const titles = ['key', 'type', 'default', 'source', 'description'];
  const rows = keys.map(({ path, type, default: standard = '', source = '', description = '' }) =>
    [path.join('.'), type, standard, source, description].map((cell) => cell.replaceAll(/\s+/g, ' ')),
  );
  if (format === 'markdown') {
    const line = (cells: readonly string[]): string =>
      `| ${cells.map((cell) => cell.replaceAll(/[\\|]/g, String.raw`\$&`)).join(' | ')} |`;
    return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n');
  }
  const widths = titles.map((title, at) =>
    rows.reduce((width, row) => Math.max(width, row[at]?.length ?? 0), title.length),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return [titles, ...rows].map(line).join('\n');
}

function typeOf(schema: JsonSchema): string | undefined {
  const values = valuesOf(schema);
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  const { type, anyOf } = schema;
  if (Array.isArray(anyOf)) {
    return anyOf.map((one) => (isMap(one) ? typeOf(one) : undefined) ?? 'unknown').join(' | ');
  }
  if (Array.isArray(type)) return type.join(' | ');
  return typeof type === 'string' ? type : undefined;
}

function typeOfValue(value: unknown): string {
  if (value === undefined) return 'unknown';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Whether a key of the path is that of a secret. */
export function isSecretPath(path: readonly string[]): boolean {
  return path.some((key) => SECRET_KEY.test(key));
}

/** More than these are not read in a message. */
const MAX_ALLOWED = 20;

/** The values that a JSON Schema allows at a path, if it lists them and they are few. */
export function allowedAt(schema: unknown, path: readonly string[]): readonly unknown[] | undefined {
  const node = path.reduce<unknown>((below, key) => {
    const properties = member(below, 'properties');
    if (isMap(properties) && Object.hasOwn(properties, key)) return properties[key];
    return member(below, 'items') ?? member(below, 'additionalProperties');
  }, schema);
  const allowed = isMap(node) && !isSecret(node) ? valuesOf(node) : undefined;
  return allowed && allowed.length <= MAX_ALLOWED ? allowed : undefined;
}

function valuesOf({ enum: values, const: only, anyOf }: JsonSchema): readonly unknown[] | undefined {
  if (Array.isArray(values)) return values as unknown[];
  if (only !== undefined) return [only];
  if (!Array.isArray(anyOf)) return undefined;
  const parts = anyOf.map((part) => (isMap(part) ? valuesOf(part) : undefined));
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

function isSecret({ writeOnly, format }: JsonSchema): boolean {
  return writeOnly === true || format === 'password';
}

function shown(path: readonly string[], schema: JsonSchema, value: unknown): string {
  if (isSecret(schema) || isSecretPath(path)) return REDACTED;
  const shownMember = (key: string, member: unknown): unknown => {
    if (SECRET_KEY.test(key)) return REDACTED;
    return typeof member === 'bigint' ? `${member}` : member;
  };
  return redact(JSON.stringify(value, shownMember));
}
