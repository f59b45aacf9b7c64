/** The ConfigMaps and Secrets whose contents a pod sees in its files, and the pods that this library follows. */

/** An object that a pod mounts. */
export interface MountedObject {
  /** `configmaps/<namespace>/<name>` or `secrets/<namespace>/<name>`. */
  readonly key: string;
  /** The pod runs without the object, too. */
  readonly isOptional: boolean;
}

/** A running pod, with what is needed of it. */
export interface MountingPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** In the order of their keys, each once. */
  readonly objects: readonly MountedObject[];
  /** The value of the annotation; undefined if the pod has none. */
  readonly annotation: string | undefined;
}

/** The annotation of a pod, whose change makes kubelet update the volumes of the pod at once. */
export const ANNOTATION = 'resilient-watcher.dev/mounted-versions';

export type ObjectKind = 'configmaps' | 'secrets';

interface ObjectReference {
  readonly kind: ObjectKind;
  readonly name: string;
  readonly isOptional: boolean;
}

/** A part of a document from the API server, which may contain anything. */
type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields => Object(value) as Fields;
const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields) : []);

/**
 * The pod, if kubelet updates its files: it is on a node, has not finished, is not being deleted, and mounts an object of
 * `kinds` as a directory. A volume that is only mounted with `subPath` is never updated.
 */
export function mountingPod(pod: unknown, kinds: readonly ObjectKind[]): MountingPod | undefined {
  const { metadata, spec, status } = fields(pod);
  const { namespace, name, uid, annotations, deletionTimestamp } = fields(metadata);
  const { nodeName } = fields(spec);
  const { phase } = fields(status);
  if (typeof namespace !== 'string' || typeof name !== 'string' || typeof uid !== 'string') return undefined;
  const isRunning = Boolean(nodeName) && phase !== 'Succeeded' && phase !== 'Failed';
  if (!isRunning || Boolean(deletionTimestamp)) return undefined;
  const objects = new Map<string, MountedObject>();
  for (const { kind, name: of, isOptional } of referencesIn(fields(spec))) {
    if (!kinds.includes(kind)) continue;
    const key = `${kind}/${namespace}/${of}`;
    objects.set(key, { key, isOptional: isOptional && (objects.get(key)?.isOptional ?? true) });
  }
  if (objects.size === 0) return undefined;
  const sorted = [...objects.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  const annotation = fields(annotations)[ANNOTATION];
  return {
    namespace,
    name,
    uid,
    objects: sorted,
    annotation: typeof annotation === 'string' ? annotation : undefined,
  };
}

function referencesIn(spec: Fields): ObjectReference[] {
  const mounted = new Set<unknown>();
  for (const containers of [spec['containers'], spec['initContainers'], spec['ephemeralContainers']]) {
    for (const { volumeMounts } of list(containers)) {
      for (const { name, subPath, subPathExpr } of list(volumeMounts)) {
        if (!subPath && !subPathExpr) mounted.add(name);
      }
    }
  }
  return list(spec['volumes'])
    .filter(({ name }) => mounted.has(name))
    .flatMap((volume) => [
      ...referencesOf(volume, 'secretName'),
      ...list(fields(volume['projected'])['sources']).flatMap((source) => referencesOf(source, 'name')),
    ]);
}

/** A volume and a source of a projected volume name a Secret differently. */
function referencesOf({ configMap, secret }: Fields, secretName: string): ObjectReference[] {
  const reference = (kind: ObjectKind, name: unknown, optional: unknown): ObjectReference[] =>
    typeof name === 'string' && name !== '' ? [{ kind, name, isOptional: optional === true }] : [];
  const [ofConfigMap, ofSecret] = [fields(configMap), fields(secret)];
  return [
    ...reference('configmaps', ofConfigMap['name'], ofConfigMap['optional']),
    ...reference('secrets', ofSecret[secretName], ofSecret['optional']),
  ];
}
