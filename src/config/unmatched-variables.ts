/** Variables that set a key which neither another source nor the schema has: most of them are misspelled. */
import { nearest } from '../core/options/nearest.js';
import { isMap, leavesOf, valueAt, type ConfigMap, type ConfigValue } from './config-value.js';
import { schemaKeys, type SchemaKeys } from './json-schema.js';
import type { Layer } from './merge.js';
import type { ConfigWarning } from './places.js';
import { placeText } from './problems.js';
import { placeIn } from './schema-issues.js';
import { foldedKey } from './spelling.js';

/** Nobody reads more of them. */
const MAX_WARNINGS = 100;

/** Enough for any configuration that people write. */
const MAX_CANDIDATES = 2_000;

/** What a layer was merged into. */
interface Merged {
  /** All layers, with their keys as they were merged. */
  readonly layers: readonly Layer[];
  readonly schema: unknown;
  /** What was made of the values; undefined if they were refused. */
  readonly config: unknown;
}

/**
 * Warnings about the variables of one layer that set no known key: those whose values are not in the configuration, since
 * the schema dropped them, and those that are, but whose names nearly are those of another key.
 */
export async function unmatchedVariables(
  layer: Layer,
  { layers, schema, config }: Merged,
): Promise<readonly ConfigWarning[]> {
  if (!layer.namesKeys) return [];
  const others = layers.filter((each) => each !== layer).map(({ values }) => values);
  const keys = schemaKeys(schema);
  const warnings: ConfigWarning[] = [];
  let candidates: ReadonlyMap<string, readonly string[]> | undefined;
  for (const path of unknownPaths(layer.values, others, keys)) {
    candidates ??= new Map([...knownPaths(others, keys)].map((known) => [folded(known), known]));
    const near = nearest(folded(path), candidates.keys());
    const isUsed = config === undefined || !isMap(config) || valueAt(config as ConfigMap, path) !== undefined;
    if (isUsed && !(near && isMisspelled(folded(path), near.distance))) continue;
    const { name = path.join('.') } = (await placeIn(layer, path)) ?? {};
    const known = near && candidates.get(near.name);
    warnings.push({
      code: 'unmatched',
      message: `${placeText(layer.source, {})}${name} ${adviceFor(path, known)}`,
    });
    if (warnings.length === MAX_WARNINGS) break;
  }
  return warnings;
}

function adviceFor(path: readonly string[], near: readonly string[] | undefined): string {
  const text = `sets "${path.join('.')}", a key that neither the schema nor another source has`;
  if (!near) return text;
  const nested = near.length === path.length ? '' : ', whose parts the delimiter separates';
  return `${text}; the nearest one is "${near.join('.')}"${nested}`;
}

/** One letter in six: `hosts` is another word than `host`. */
function isMisspelled(text: string, distance: number): boolean {
  return distance <= Math.floor(text.length / 6);
}

function folded(path: readonly string[]): string {
  return foldedKey(path.join(''));
}

/** The paths of values that are in none of the others and not in the schema, which takes not just any key there. */
function* unknownPaths(
  values: ConfigMap,
  others: readonly ConfigValue[],
  schema: SchemaKeys,
  path: readonly string[] = [],
): Generator<readonly string[]> {
  if (schema.isOpen) return;
  const names = new Set(schema.names);
  for (const [key, value] of Object.entries(values)) {
    const below = others.map((other) => valueAt(other, [key])).filter((each) => each !== undefined);
    const isKnown = names.has(key) || below.length > 0;
    if (!isMap(value)) {
      if (!isKnown) yield [...path, key];
    } else if (isKnown) yield* unknownPaths(value, below, schema.at(key), [...path, key]);
    else for (const [leaf] of leavesOf(value)) yield [...path, key, ...leaf];
  }
}

/** The paths of the values that other layers and the schema have. */
function* knownPaths(others: readonly ConfigMap[], schema: SchemaKeys): Generator<readonly string[]> {
  let left = MAX_CANDIDATES;
  const take = function* (paths: Iterable<readonly string[]>): Generator<readonly string[]> {
    for (const path of paths) {
      if (left === 0) return;
      left -= 1;
      yield path;
    }
  };
  yield* take(schemaPaths(schema));
  for (const values of others) {
    for (const [path] of leavesOf(values)) yield* take([path]);
  }
}

function* schemaPaths(schema: SchemaKeys, path: readonly string[] = []): Generator<readonly string[]> {
  // A schema may refer to itself.
  if (path.length > 10) return;
  for (const name of schema.names) {
    const below = schema.at(name);
    if (below.names.length === 0) yield [...path, name];
    else yield* schemaPaths(below, [...path, name]);
  }
}
