/** Variables that set a key which neither another source nor the schema has: most of them are misspelled. */
import { nearest } from '../core/options/nearest.js';
import { isMap, valueAt, type ConfigMap } from './config-value.js';
import { schemaKeys } from './json-schema.js';
import type { Layer } from './merge.js';
import type { ConfigWarning } from './places.js';
import { placeText } from './problems.js';
import { placeIn } from './schema-issues.js';
import { foldedKey, knownBelow, knownPaths, type Known } from './spelling.js';

/** A longer list would not be read. */
const MAX_WARNINGS = 100;

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
  const others = layers.filter((each) => each !== layer);
  const known = { values: others.map(({ values }) => values), schema: schemaKeys(schema) };
  const warnings: ConfigWarning[] = [];
  let candidates: ReadonlyMap<string, readonly string[]> | undefined;
  for (const path of unknownPaths(layer.values, known)) {
    candidates ??= new Map([...knownPaths(known)].map((each) => [folded(each), each]));
    const near = nearest(folded(path), candidates.keys());
    const isUsed = config === undefined || !isMap(config) || valueAt(config as ConfigMap, path) !== undefined;
    if (isUsed && !(near && isMisspelled(folded(path), near.distance))) continue;
    const { name = path.join('.') } = (await placeIn(layer, path)) ?? {};
    const advice = adviceFor(path, near && candidates.get(near.name));
    warnings.push({ code: 'unmatched', message: `${placeText(layer.source, {})}${name} ${advice}` });
    if (warnings.length === MAX_WARNINGS) break;
  }
  return warnings;
}

function adviceFor(path: readonly string[], near: readonly string[] | undefined): string {
  const text = `sets "${path.join('.')}", a key that neither the schema nor another source has`;
  return near ? `${text}; the nearest one is "${near.join('.')}"` : text;
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
  known: Known,
  path: readonly string[] = [],
): Generator<readonly string[]> {
  if (known.schema.isOpen) return;
  const names = new Set(known.schema.names);
  for (const [key, value] of Object.entries(values)) {
    const below = knownBelow(known, key);
    const isKnown = names.has(key) || below.values.length > 0;
    if (isMap(value)) yield* unknownPaths(value, below, [...path, key]);
    else if (!isKnown) yield [...path, key];
  }
}
