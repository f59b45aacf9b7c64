/** Finds in manifests what keeps a mounted ConfigMap, Secret or token from being updated. */
import { describe } from 'resilient-watcher/internal';

import { certificateFindings } from './certificate-findings.js';
import { fields, isReplaced, isUpdated, list, sourcesOf, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';
import { keysIn, missingKeys } from './missing-keys.js';
import { missingGroup } from './missing-group.js';
import { serviceLinks } from './service-links.js';
import { trustFindings } from './trust-findings.js';

/**
 * What keeps the files of these manifests from being updated. Each finding names the object it is in.
 * @param documents the parsed documents of a YAML or JSON file.
 * @throws {TypeError} for anything but an array.
 */
export function findingsInManifests(documents: readonly unknown[]): Finding[] {
  if (!Array.isArray(documents)) {
    throw new TypeError(`findingsInManifests: documents must be an array, got ${describe(documents)}`);
  }
  const lists = new Set<Fields>();
  const objects = documents.flatMap((document) => objectsIn(document, lists));
  const services = objects.filter(({ kind }) => kind === 'Service');
  const keys = keysIn(objects);
  const described = objects.map((object) => ({ object, pod: podOf(object) }));
  return [
    ...described.flatMap(({ object, pod }) => [
      ...immutable(object, pod.where),
      ...podFindings(pod, claimsOf(object)),
      ...missingKeys(pod, keys),
    ]),
    ...serviceLinks(
      described.map(({ pod }) => pod),
      services,
    ),
  ];
}

/** Expands a List into its objects. With YAML aliases, a list may occur in many places, even in itself. */
function objectsIn(document: unknown, known: Set<Fields>): Fields[] {
  const object = fields(document);
  if (Array.isArray(object['items']) && text(object['kind']).endsWith('List')) {
    if (known.has(object)) return [];
    known.add(object);
    return object['items'].flatMap((item) => objectsIn(item, known));
  }
  return typeof object['kind'] === 'string' ? [object] : [];
}

function* immutable({ kind, immutable: isImmutable }: Fields, where: string): Iterable<Finding> {
  if ((kind === 'ConfigMap' || kind === 'Secret') && isImmutable === true)
    yield finding('IMMUTABLE', `${where} is immutable: it can be deleted, but never updated`);
}

/** The pod in a Pod, a CronJob, or anything with a pod template. */
function podOf(object: Fields): Pod {
  const outer = fields(object['spec']);
  const job = fields(fields(outer['jobTemplate'])['spec']);
  const pod = object['kind'] === 'Pod' ? object : fields(('template' in outer ? outer : job)['template']);
  const spec = fields(pod['spec']);
  return {
    where: `${text(object['kind'])}/${text(fields(object['metadata'])['name'])}`,
    namespace: text(fields(object['metadata'])['namespace']),
    labels: fields(fields(pod['metadata'])['labels']),
    spec,
    volumes: new Map(list(spec['volumes']).map((volume) => [text(volume['name']), volume])),
    containers: ['initContainers', 'containers', 'ephemeralContainers'].flatMap((key) => list(spec[key])),
  };
}

/** The volumes that a StatefulSet makes of its claims. */
function claimsOf({ spec }: Fields): string[] {
  return list(fields(spec)['volumeClaimTemplates']).map(({ metadata }) => text(fields(metadata)['name']));
}

function* podFindings(pod: Pod, claims: readonly string[]): Iterable<Finding> {
  const { where, volumes } = pod;
  for (const container of pod.containers) {
    yield* mounts(container, claims, pod);
    yield* fromEnvironment(container, `${where}: container ${text(container['name'])}`);
  }
  for (const [name, volume] of volumes) {
    if ('image' in volume)
      yield finding('IMAGE_VOLUME', `${where}: volume ${name} is the contents of an image`);
  }
  yield* certificateFindings(pod);
  yield* trustFindings(pod);
  for (const [name, volume] of volumes) if (isUpdated(volume)) yield* expirations(volume, name, where);
  yield* missingGroup(pod);
}

function* mounts(container: Fields, claims: readonly string[], { where, volumes }: Pod): Iterable<Finding> {
  for (const mount of list(container['volumeMounts'])) {
    const volume = text(mount['name']);
    if (!volumes.has(volume) && !claims.includes(volume)) {
      const place = `${where}: container ${text(container['name'])}`;
      yield finding('UNDEFINED_VOLUME', `${place} mounts volume ${volume}, which is not defined`);
    }
    const isPart = text(mount['subPath'] ?? mount['subPathExpr']) !== '';
    if (!isPart || !isReplaced(volumes.get(volume) ?? {})) continue;
    const place = `${text(mount['mountPath'])} of container ${text(container['name'])}`;
    yield finding('SUBPATH', `${where}: ${place} mounts a subPath of volume ${volume}`);
  }
}

function* fromEnvironment(container: Fields, place: string): Iterable<Finding> {
  const variables = list(container['env']).map((variable) => fields(variable['valueFrom']));
  const isObject =
    list(container['envFrom']).some((source) => 'secretRef' in source || 'configMapRef' in source) ||
    variables.some((from) => 'secretKeyRef' in from || 'configMapKeyRef' in from);
  if (isObject) yield finding('ENV_FROM', `${place} takes environment variables from Secrets or ConfigMaps`);
  if (variables.some((from) => 'fileKeyRef' in from))
    yield finding('ENV_FILE', `${place} takes environment variables from a file`);
}

/** The default of `expirationSeconds`; the API server stores it. Any other value was chosen on purpose. */
const HOUR_SECONDS = 3_600;

/** The least lifetimes that the API server accepts. */
const LEAST_SECONDS = { expirationSeconds: 600, maxExpirationSeconds: HOUR_SECONDS };

function* expirations(volume: Fields, name: string, where: string): Iterable<Finding> {
  const tokens = sourcesOf(volume, 'serviceAccountToken');
  const parts = [...tokens, ...sourcesOf(volume, 'podCertificate')];
  for (const { expirationSeconds: seconds = HOUR_SECONDS } of tokens) {
    if (seconds !== HOUR_SECONDS) continue;
    const what = `the token in volume ${name} has the default expirationSeconds of one hour`;
    yield finding('LONG_PROJECTION', `${where}: ${what}`);
  }
  for (const [field, least] of Object.entries(LEAST_SECONDS)) {
    for (const { [field]: seconds } of parts) {
      if (Number(seconds) < least)
        yield finding('EXPIRATION_REFUSED', `${where}: ${field} in volume ${name} is ${String(seconds)}`);
    }
  }
}
