/** Finds keys that a ConfigMap or Secret of the same input lacks, and files that a volume of it therefore lacks. */
import { withoutTrailingSlashes } from 'resilient-watcher/internal';

import { insteadOf } from '../doctor/instead-of.js';
import { fields, list, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';

/** The keys of the ConfigMaps and Secrets, by `idOf`. */
export type Keys = ReadonlyMap<string, readonly string[]>;

/** One that is empty in its manifest gets its contents in the cluster, and counts as unknown. */
export function keysIn(objects: readonly Fields[]): Keys {
  const keys = new Map<string, readonly string[]>();
  for (const { kind, metadata, ...object } of objects) {
    if (kind !== 'ConfigMap' && kind !== 'Secret') continue;
    const own = ['data', 'binaryData', 'stringData'].flatMap((field) => Object.keys(fields(object[field])));
    const id = idOf(kind, text(fields(metadata)['namespace']), fields(metadata)['name']);
    if (own.length > 0) keys.set(id, [...(keys.get(id) ?? []), ...own]);
  }
  return keys;
}

function idOf(kind: string, namespace: string, name: unknown): string {
  return `${kind}/${namespace}/${text(name)}`;
}

/** The keys that a pod takes and the object lacks, and the paths that it names in a volume without such a file. */
export function* missingKeys(pod: Pod, keys: Keys): Iterable<Finding> {
  for (const { place, kind, object, key } of keysTakenBy(pod)) {
    const known = keys.get(idOf(kind, pod.namespace, object));
    if (!known || known.includes(key)) continue;
    const what = `${kind}/${text(object)} has no key "${key}", which ${place} takes`;
    yield finding('MISSING_KEY', `${pod.where}: ${what}${insteadOf(key, known)}`);
  }
  for (const container of pod.containers) {
    for (const mount of list(container['volumeMounts'])) {
      const files = filesOf(pod.volumes.get(text(mount['name'])) ?? {}, pod.namespace, keys);
      if (files && !('subPathExpr' in mount)) yield* missingFiles(pod.where, container, mount, files);
    }
  }
}

/** A key of an object that has to be there. */
interface Taken {
  readonly place: string;
  readonly kind: string;
  readonly object: unknown;
  readonly key: string;
}

function* keysTakenBy({ volumes, containers }: Pod): Iterable<Taken> {
  for (const [name, volume] of volumes) {
    for (const [source, part] of sourcesIn(volume)) {
      const { kind, object } = objectOf(source, part);
      if (kind === undefined || part['optional'] === true) continue;
      for (const { key } of list(part['items']))
        yield { place: `volume ${name}`, kind, object, key: text(key) };
    }
  }
  for (const container of containers) {
    const place = `container ${text(container['name'])}`;
    for (const { valueFrom } of list(container['env'])) {
      const { configMapKeyRef, secretKeyRef } = fields(valueFrom);
      const kind = configMapKeyRef ? 'ConfigMap' : 'Secret';
      const { name: object, key, optional } = fields(configMapKeyRef ?? secretKeyRef);
      if (optional !== true) yield { place, kind, object, key: text(key) };
    }
  }
}

function* missingFiles(
  where: string,
  container: Fields,
  mount: Fields,
  files: readonly string[],
): Iterable<Finding> {
  const place = `${where}: container ${text(container['name'])}`;
  const [volume, subPath, point] = [text(mount['name']), text(mount['subPath']), text(mount['mountPath'])];
  if (subPath !== '') {
    const what = `${place} mounts subPath ${subPath} of volume ${volume}, which has no such file`;
    if (!has(files, subPath)) yield finding('MISSING_KEY', `${what}${insteadOf(subPath, files)}`);
    return;
  }
  for (const file of namedIn(container, point).filter((each) => !has(files, each))) {
    const what = `${place} names ${withoutTrailingSlashes(point)}/${file}, which is not in volume ${volume}`;
    yield finding('MISSING', `${what}${insteadOf(file, files)}`);
  }
}

/** The parts of a volume, each with the name of its source. */
function sourcesIn(volume: Fields): [source: string, part: Fields][] {
  const parts = 'projected' in volume ? list(fields(volume['projected'])['sources']) : [volume];
  return parts.flatMap((part) =>
    Object.entries(part)
      .filter(([source]) => source !== 'name')
      .map(([source, value]): [string, Fields] => [source, fields(value)]),
  );
}

function objectOf(source: string, part: Fields): { readonly kind?: string; readonly object?: unknown } {
  if (source === 'configMap') return { kind: 'ConfigMap', object: part['name'] };
  return source === 'secret' ? { kind: 'Secret', object: part['secretName'] ?? part['name'] } : {};
}

/** The paths of the other sources. */
const PATHS: Readonly<Record<string, readonly string[]>> = {
  serviceAccountToken: ['path'],
  clusterTrustBundle: ['path'],
  podCertificate: ['credentialBundlePath', 'keyPath', 'certificateChainPath'],
  downwardAPI: [],
};

/** The files of a volume of ConfigMaps and Secrets; undefined if they are not all known. */
function filesOf(volume: Fields, namespace: string, keys: Keys): string[] | undefined {
  const files: string[] = [];
  const sources = sourcesIn(volume);
  if (!sources.some(([source]) => source === 'configMap' || source === 'secret')) return undefined;
  for (const [source, part] of sources) {
    const { kind, object } = objectOf(source, part);
    const named = PATHS[source]?.map((field) => text(part[field])).filter(Boolean);
    const items = list(part['items']).map(({ path }) => text(path));
    const own = items.length > 0 ? items : (named ?? (kind && keys.get(idOf(kind, namespace, object))));
    if (!own) return undefined;
    files.push(...own);
  }
  return files;
}

/** Whether one of the files is at the path or below it. */
function has(files: readonly string[], path: string): boolean {
  return files.some((file) => `${file}/`.startsWith(`${path}/`));
}

/** The files below a mount that the command line and the variables of a container name, each once. */
function namedIn(container: Fields, mountPath: string): string[] {
  const point = withoutTrailingSlashes(mountPath);
  if (point === '' || point === '/') return [];
  const inner = list(container['volumeMounts'])
    .map((mount) => text(mount['mountPath']))
    .filter((other) => other.startsWith(`${point}/`) && other !== `${point}/`);
  const texts = [
    ...['command', 'args'].flatMap((field) => [container[field]].flat()),
    ...list(container['env']).map(({ value }) => value),
  ];
  // Not within a longer path, and not with a wildcard or a variable after it.
  const named = new RegExp(
    `(?<![\\w./-])${point.replaceAll(/[^\w/]/g, '\\$&')}/([\\w./-]+)(?=$|[\\s"',;:)])`,
    'g',
  );
  const files = texts.flatMap((value) =>
    Array.from(text(value).matchAll(named), ([, file = '']) =>
      withoutTrailingSlashes(file.replace(/^\.\.data\//, '')),
    ),
  );
  return [...new Set(files)].filter(
    (file) =>
      file !== '' &&
      !file.split('/').includes('..') &&
      !inner.some((other) => `${point}/${file}/`.startsWith(`${withoutTrailingSlashes(other)}/`)),
  );
}
