/** The patches of an object: JSON merge patch (RFC 7386), JSON patch (RFC 6902) and strategic merge patch. */

/** A patch that cannot be applied to this object. */
export class PatchError extends Error {}

type JsonMap = Readonly<Record<string, unknown>>;

/** As in the API server. */
const MAX_OPERATIONS = 10_000;

/** What `copy` may add in all, characters: a few copies of copies would fill the memory. */
const MAX_COPIED = 3 * 1_048_576;

/** @throws {PatchError} when it cannot be applied. */
export type Patch = (object: unknown, patch: unknown) => unknown;

/** By content type. */
export const PATCHES: Readonly<Record<string, Patch>> = {
  'application/merge-patch+json': merged,
  'application/strategic-merge-patch+json': strategicallyMerged,
  'application/json-patch+json': withOperations,
};

function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function merged(object: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  return mergedMembers(isMap(object) ? object : {}, patch, (_, below, value) => merged(below, value));
}

function mergedMembers(
  object: JsonMap,
  patch: JsonMap,
  merge: (key: string, below: unknown, value: unknown) => unknown,
): JsonMap {
  const members = new Map(Object.entries(object));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) members.delete(key);
    else members.set(key, merge(key, members.get(key), value));
  }
  return Object.fromEntries(members);
}

/**
 * The members by which the elements of well-known lists are the same; lists of anything else are replaced, as in
 * `x-kubernetes-list-type: atomic`.
 */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  addresses: ['type'],
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  ephemeralContainers: ['name'],
  hostAliases: ['ip'],
  imagePullSecrets: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  ports: ['containerPort', 'port'],
  taints: ['key'],
  topologySpreadConstraints: ['topologyKey'],
  volumeDevices: ['devicePath'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
};

function strategicallyMerged(object: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  const { $patch: directive, $retainKeys: retained, ...members } = patch;
  if (directive === 'delete') return {};
  const kept = Array.isArray(retained) && isMap(object) ? pick(object, retained) : object;
  const plain = Object.entries(members).filter(([key]) => !key.startsWith('$'));
  const result = mergedMembers(
    isMap(kept) && directive !== 'replace' ? kept : {},
    Object.fromEntries(plain),
    (key, below, value) =>
      Array.isArray(value) ? mergedList(key, below, value) : strategicallyMerged(below, value),
  );
  const deleted = Object.entries(members).filter(([key]) => key.startsWith('$deleteFromPrimitiveList/'));
  return deleted.reduce<JsonMap>((map, [directiveKey, values]) => {
    const key = directiveKey.slice(directiveKey.indexOf('/') + 1);
    const list = map[key];
    if (!Array.isArray(list) || !Array.isArray(values)) return map;
    return { ...map, [key]: list.filter((each) => !values.includes(each)) };
  }, result);
}

function pick(object: JsonMap, keys: readonly unknown[]): JsonMap {
  return Object.fromEntries(Object.entries(object).filter(([key]) => keys.includes(key)));
}

function mergedList(key: string, below: unknown, patch: readonly unknown[]): readonly unknown[] {
  const list = Array.isArray(below) ? (below as readonly unknown[]) : [];
  if (key === 'finalizers') return [...new Set([...list, ...patch])];
  if (patch.some((each) => isMap(each) && each['$patch'] === 'replace')) {
    return patch.filter((each) => !(isMap(each) && each['$patch'] === 'replace'));
  }
  const names = Object.hasOwn(MERGE_KEYS, key) ? (MERGE_KEYS[key] ?? []) : [];
  const name = names.find((each) => patch.every((element) => isMap(element) && Object.hasOwn(element, each)));
  if (name === undefined) return patch;
  const elements = new Map(list.map((each) => [isMap(each) ? each[name] : undefined, each]));
  for (const each of patch as readonly JsonMap[]) {
    if (each['$patch'] === 'delete') elements.delete(each[name]);
    else elements.set(each[name], strategicallyMerged(elements.get(each[name]), each));
  }
  return [...elements.values()];
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

function withOperations(object: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch) || patch.length > MAX_OPERATIONS) {
    throw new PatchError(`a JSON patch is an array of at most ${MAX_OPERATIONS} operations`);
  }
  const document = { root: structuredClone(object) };
  let copied = 0;
  for (const operation of patch as readonly Operation[]) {
    const { op, path, from = '', value } = Object(operation) as Operation;
    switch (op) {
      case 'add':
        place(document, path, value, 'add');
        break;
      case 'replace':
        valueOf(document, path);
        place(document, path, value, 'replace');
        break;
      case 'remove':
        remove(document, path);
        break;
      case 'move':
        if (`${path}/`.startsWith(`${from}/`) && path !== from)
          throw new PatchError(`"${from}" cannot be moved into itself`);
        place(document, path, remove(document, from), 'add');
        break;
      case 'copy': {
        const text = JSON.stringify(valueOf(document, from));
        copied += text.length;
        if (copied > MAX_COPIED) throw new PatchError('the copies of a JSON patch are too large');
        place(document, path, JSON.parse(text), 'add');
        break;
      }
      case 'test':
        if (!isSameJson(valueOf(document, path), value)) throw new PatchError(`testing value ${path} failed`);
        break;
      default:
        throw new PatchError(`unexpected kind: ${op}`);
    }
  }
  return document.root;
}

/** The container of a place below `root`, and the key in it. */
function within(document: object, path: string): readonly [container: object, key: string] {
  if (typeof path !== 'string' || (path !== '' && !path.startsWith('/'))) throw missing(path);
  const keys = ['root', ...path.split('/').slice(1)].map((key) =>
    key.replaceAll('~1', '/').replaceAll('~0', '~'),
  );
  const last = keys.pop() ?? 'root';
  let container: unknown = document;
  for (const key of keys) {
    if (!Object.hasOwn(Object(container) as object, key)) throw missing(path);
    container = (container as Record<string, unknown>)[key];
  }
  // A key of objects that all objects share is refused.
  if (typeof container !== 'object' || container === null || last === '__proto__') throw missing(path);
  return [container, last];
}

function missing(path: string): PatchError {
  return new PatchError(`the path "${path}" does not exist`);
}

function valueOf(document: object, path: string): unknown {
  const [container, key] = within(document, path);
  if (!Object.hasOwn(container, key)) throw missing(path);
  return (container as Record<string, unknown>)[key];
}

function place(document: object, path: string, value: unknown, how: 'add' | 'replace'): void {
  const [container, key] = within(document, path);
  if (value === undefined) throw new PatchError(`"${path}" needs a value`);
  if (!Array.isArray(container)) (container as Record<string, unknown>)[key] = value;
  else {
    const index = key === '-' ? container.length : /^(?:0|[1-9]\d{0,8})$/.test(key) ? Number(key) : Infinity;
    if (index > container.length) throw missing(path);
    container.splice(index, how === 'add' ? 0 : 1, value);
  }
}

function remove(document: object, path: string): unknown {
  const value = valueOf(document, path);
  const [container, key] = within(document, path);
  if (Array.isArray(container)) container.splice(Number(key), 1);
  else Reflect.deleteProperty(container, key);
  return value;
}

/** Whether two values are equal, whatever the order of the keys. */
export function isSameJson(one: unknown, other: unknown): boolean {
  const text = (value: unknown): string | undefined =>
    JSON.stringify(value, (_, each: unknown) =>
      isMap(each) ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each,
    );
  return text(one) === text(other);
}
