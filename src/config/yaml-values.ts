/** The values of a YAML document, with aliases and merge keys (https://yaml.org/type/merge.html): `<<: *base`. */
import type * as Yaml from 'yaml';

import { isUnsafeNumber, UNSAFE_NUMBER } from './config-value.js';

/** The loader copies what aliases share. A text of 1 MiB without aliases has half as many. */
const MAX_VALUES = 1_000_000;

const MAX_ALIASES = 1_000;

/** YAML 1.2 has no merge keys, and most programs merge them nevertheless. */
const MERGE_KEY =
  'the merge key "<<" is not in YAML 1.2: set the option "merge" of the provider (or of yamlParser.parse) to merge it, ' +
  'or write it in quotes';

const NOT_MAPS = 'a merge key takes a map, an alias of one that stands before it, or a list of these';

/** As in file modes. */
const OCTAL_NUMBER =
  'an integer with a leading 0 is octal in YAML 1.1 and decimal in YAML 1.2; write 0o… for octal, or put it in quotes';

/** Tags of YAML 1.1 with a class of the package. */
const OTHER_COLLECTION = /:(?:omap|pairs|set)$/;

/** Throws. @param isValid it is YAML, but is refused nevertheless */
export type Refuse = (message: string, offset: number, isValid?: boolean) => never;

interface ReadOptions {
  /** Whether merge keys are merged. */
  readonly merge: boolean;
  readonly refuse: Refuse;
}

/** A node that was read. */
interface Known {
  readonly node: unknown;
  readonly value: unknown;
  /** How many values it is when each alias is a copy. */
  readonly size: number;
}

/** The values of a document. */
interface YamlValues {
  readonly value: unknown;
  /** Where the value with this path begins, also behind aliases and merge keys; undefined if there is none. */
  readonly offsetOf: (path: readonly string[]) => number | undefined;
}

/**
 * Reads a document from its beginning to its end. Each node is read once, and its aliases share its value. The package
 * would read a map again for each merge, and so would take forever for maps that merge one another.
 */
export function readValues(
  { isAlias, isCollection, isMap, isScalar, isSeq }: typeof Yaml,
  document: Yaml.Document.Parsed,
  { merge, refuse }: ReadOptions,
): YamlValues {
  /** The last node of each anchor so far; undefined while it is read. */
  const anchors = new Map<string, Known | undefined>();
  const aliased = new Map<Yaml.Alias, Known>();
  const members = new Map<unknown, ReadonlyMap<string, Known>>();
  let aliases = 0;
  let total = 0;

  const count = (size: number, node: unknown): void => {
    total += size;
    if (total > MAX_VALUES)
      refuse(`more than ${MAX_VALUES} values after its aliases are expanded`, offsetOf(node));
  };
  const read = (node: unknown): Known => {
    if (isAlias(node)) return readAlias(node);
    const before = total;
    count(1, node);
    const { anchor } = Object(node) as { readonly anchor?: string };
    if (anchor !== undefined) anchors.set(anchor, undefined);
    const value = valueOf(node);
    const known = { node, value, size: total - before };
    if (anchor !== undefined) anchors.set(anchor, known);
    return known;
  };
  const readAlias = (alias: Yaml.Alias): Known => {
    aliases += 1;
    if (aliases > MAX_ALIASES) refuse(`more than ${MAX_ALIASES} aliases`, offsetOf(alias));
    const known =
      anchors.get(alias.source) ?? refuse('an alias without an anchor before it', offsetOf(alias));
    aliased.set(alias, known);
    count(known.size, alias);
    return { ...known, node: alias };
  };
  const valueOf = (node: unknown): unknown => {
    if (isCollection(node) && OTHER_COLLECTION.test(node.tag ?? '')) return node.toJS(document);
    if (isMap(node)) return mapOf(node);
    if (isSeq(node)) return node.items.map((item) => read(item).value);
    return isScalar(node) ? scalarOf(node) : null;
  };
  const scalarOf = (node: Yaml.Scalar): unknown => {
    const { value, source = '' } = node;
    if (typeof value === 'number' && /^[-+]?0\d+$/.test(source)) refuse(OCTAL_NUMBER, offsetOf(node), true);
    if (isUnsafeNumber(value, source)) refuse(UNSAFE_NUMBER, offsetOf(node), true);
    return value;
  };
  const mapOf = (map: Yaml.YAMLMap): unknown => {
    const own = new Set<string>();
    const all = new Map<string, Known>();
    for (const { key, value } of map.items) {
      if (isMergeKey(key)) {
        if (!merge) refuse(MERGE_KEY, offsetOf(key), true);
        for (const [name, known] of mergedBy(value) ?? refuse(NOT_MAPS, offsetOf(key))) {
          if (!all.has(name)) all.set(name, known);
        }
        continue;
      }
      const name = read(key).value as string;
      if (own.has(name)) refuse('duplicate key', offsetOf(key));
      own.add(name);
      all.set(name, read(value));
    }
    members.set(map, all);
    return Object.fromEntries([...all].map(([name, known]) => [name, known.value]));
  };
  /** The members of the maps in the value of a merge key; undefined if something else is in it. */
  const mergedBy = (value: unknown): readonly (readonly [string, Known])[] | undefined => {
    read(value);
    const source = target(value);
    const maps = (isSeq(source) ? source.items : [source]).map((each) => members.get(target(each)));
    return maps.every((map) => map !== undefined) ? maps.flatMap((map) => [...map]) : undefined;
  };
  const target = (node: unknown): unknown => (isAlias(node) ? aliased.get(node)?.node : node);

  const { value } = read(document.contents);
  return {
    value,
    offsetOf: (path) => {
      let node: unknown = document.contents;
      for (const key of path) {
        const container = target(node);
        node = isSeq(container) ? container.items[Number(key)] : members.get(container)?.get(key)?.node;
      }
      return node === undefined ? undefined : offsetOf(node);
    },
  };
}

/** Whether a key is a merge key; in quotes it is an ordinary one. */
function isMergeKey(key: unknown): boolean {
  const { type, value } = Object(key) as Partial<Yaml.Scalar>;
  return value === '<<' && type === 'PLAIN';
}

function offsetOf(node: unknown): number {
  return (Object(node) as Partial<Yaml.Node>).range?.[0] ?? 0;
}
