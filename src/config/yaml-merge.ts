/** Merge keys of YAML 1.1 (https://yaml.org/type/merge.html): `<<: *base`, `<<: [*one, *two]`. */
import type * as Yaml from 'yaml';

/** Values that aliases share are copied; a text of 1 MiB without aliases has half as many. */
export const MAX_VALUES = 1_000_000;

/** Maps that merge one another, in a chain. */
const MAX_MERGES = 100;

/** Whether a key is a merge key; in quotes it is an ordinary one. */
export function isMergeKey(key: unknown): boolean {
  const { type, value } = Object(key) as Partial<Yaml.Scalar>;
  return value === '<<' && type === 'PLAIN';
}

/** The merges of a document that is visited from its beginning to its end. */
export class Merges {
  readonly #yaml: typeof Yaml;
  /** The last node of each anchor so far. */
  readonly #anchors = new Map<string, unknown>();
  /** The values below a node, with those that are merged into it. */
  readonly #sizes = new Map<unknown, number>();
  /** The values that are merged into a map. */
  readonly #merged = new Map<unknown, number>();
  #total = 0;

  constructor(yaml: typeof Yaml) {
    this.#yaml = yaml;
  }

  /** Remembers the anchor of a node, if it has one. */
  anchor(node: { readonly anchor?: string }): void {
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
  }

  /** Adds the merge key of a map. Returns what is wrong with it. The package copies what is merged, so it is counted. */
  add(map: unknown, value: unknown): string | undefined {
    const { isMap, isSeq } = this.#yaml;
    const target = this.#target(value);
    const sources = isSeq(target) ? target.items.map((item) => this.#target(item)) : [target];
    if (!sources.every((source) => isMap(source))) {
      return 'a merge key takes a map, an alias of one that stands before it, or a list of these';
    }
    const size = sources.reduce((sum, source) => sum + this.#sizeOf(source), 0);
    this.#merged.set(map, (this.#merged.get(map) ?? 0) + size);
    this.#total += size;
    return this.#total > MAX_VALUES ? `more than ${MAX_VALUES} values are merged` : undefined;
  }

  #target(node: unknown): unknown {
    return this.#yaml.isAlias(node) ? this.#anchors.get(node.source) : node;
  }

  #sizeOf(node: unknown): number {
    const known = this.#sizes.get(node);
    if (known !== undefined) return known;
    const { isMap, isPair, isSeq } = this.#yaml;
    // A node within itself is refused for its depth.
    this.#sizes.set(node, 0);
    let size = 1 + (this.#merged.get(node) ?? 0);
    if (isMap(node) || isSeq(node)) for (const item of node.items) size += this.#sizeOf(item);
    else if (isPair(node)) size += this.#sizeOf(node.value);
    this.#sizes.set(node, size);
    return size;
  }
}

/** The offset of the value with this path, also behind aliases and merge keys; undefined if it has none. */
export function offsetOf(
  { isAlias, isMap, isScalar, isSeq }: typeof Yaml,
  document: Yaml.Document.Parsed,
  path: readonly string[],
): number | undefined {
  const target = (node: unknown): unknown => (isAlias(node) ? node.resolve(document) : node);
  /** The value of a key, which overrides what is merged. */
  const valueIn = (node: unknown, key: string, depth: number): unknown => {
    if (isSeq(node)) return node.items[Number(key)];
    if (!isMap(node) || depth > MAX_MERGES) return undefined;
    const own = node.items.find(
      (item) => isScalar(item.key) && item.key.value === key && !isMergeKey(item.key),
    );
    if (own) return own.value;
    for (const { key: merge, value } of node.items) {
      if (!isMergeKey(merge)) continue;
      const merged = target(value);
      for (const source of isSeq(merged) ? merged.items : [merged]) {
        const found = valueIn(target(source), key, depth + 1);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  let node: unknown = document.contents;
  for (const key of path) node = valueIn(target(node), key, 0);
  return (node as Yaml.Node | undefined | null)?.range?.[0];
}
