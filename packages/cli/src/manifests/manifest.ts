/** Finds in manifests what keeps a mounted ConfigMap, Secret or token from being updated. */
import { describe } from 'resilient-watcher/internal';

import { certificateFindings } from './certificate-findings.js';
import { fields, list, sourcesOf, text, type Fields } from './fields.js';
import { finding, type Finding } from './finding.js';
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
  return objects.flatMap((object) => {
    const { kind, metadata } = object;
    const where = `${text(kind)}/${text(fields(metadata)['name'])}`;
    const { spec, labels } = podOf(object);
    return [
      ...immutable(object, where),
      ...podFindings(spec, claimsOf(object), where),
      ...serviceLinks({ spec, labels, namespace: text(fields(metadata)['namespace']) }, services, where),
    ];
  });
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

function immutable({ kind, immutable: isImmutable }: Fields, where: string): Finding[] {
  if ((kind !== 'ConfigMap' && kind !== 'Secret') || isImmutable !== true) return [];
  return [finding('IMMUTABLE', `${where} is immutable: it can be deleted, but never updated`)];
}

/** The pod in a Pod, a CronJob, or anything with a pod template. */
function podOf(object: Fields): { readonly spec: Fields; readonly labels: Fields } {
  const spec = fields(object['spec']);
  if (object['kind'] === 'Pod') return { spec, labels: fields(fields(object['metadata'])['labels']) };
  const job = fields(fields(spec['jobTemplate'])['spec']);
  const template = fields(('template' in spec ? spec : job)['template']);
  return { spec: fields(template['spec']), labels: fields(fields(template['metadata'])['labels']) };
}

/** The volumes that a StatefulSet makes of its claims. */
function claimsOf({ spec }: Fields): string[] {
  return list(fields(spec)['volumeClaimTemplates']).map(({ metadata }) => text(fields(metadata)['name']));
}

function podFindings(spec: Fields, claims: readonly string[], where: string): Finding[] {
  const volumes = new Map(list(spec['volumes']).map((volume) => [text(volume['name']), volume]));
  const containers = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((key) =>
    list(spec[key]),
  );
  const updated = [...volumes.values()].filter(isUpdated);
  return [
    ...containers.flatMap((container) => [
      ...subPaths(container, volumes, where),
      ...fromEnvironment(container, where),
      ...undefinedVolumes(container, [...volumes.keys(), ...claims], where),
    ]),
    ...images(volumes, where),
    ...certificateFindings(volumes, containers, where),
    ...trustFindings(volumes, containers, isReplaced, where),
    ...updated.flatMap((volume) => expirations(volume, where)),
    ...missingGroup(spec, containers, updated, where),
  ];
}

/** Whether kubelet updates the files of the volume. */
function isUpdated(volume: Fields): boolean {
  return ['configMap', 'secret', 'projected', 'downwardAPI'].some((source) => source in volume);
}

/** The driver of a CSI volume may replace its files, too, as secrets-store does. */
function isReplaced(volume: Fields): boolean {
  return isUpdated(volume) || 'csi' in volume;
}

function undefinedVolumes(container: Fields, names: readonly string[], where: string): Finding[] {
  return list(container['volumeMounts'])
    .map((mount) => text(mount['name']))
    .filter((name) => !names.includes(name))
    .map((name) => {
      const place = `${where}: container ${text(container['name'])}`;
      return finding('UNDEFINED_VOLUME', `${place} mounts volume ${name}, which is not defined`);
    });
}

function subPaths(container: Fields, volumes: ReadonlyMap<string, Fields>, where: string): Finding[] {
  return list(container['volumeMounts'])
    .filter((mount) => text(mount['subPath'] ?? mount['subPathExpr']) !== '')
    .filter((mount) => {
      return isReplaced(volumes.get(text(mount['name'])) ?? {});
    })
    .map((mount) => {
      const place = `${text(mount['mountPath'])} of container ${text(container['name'])}`;
      return finding('SUBPATH', `${where}: ${place} mounts a subPath of volume ${text(mount['name'])}`);
    });
}

function fromEnvironment(container: Fields, where: string): Finding[] {
  const place = `${where}: container ${text(container['name'])}`;
  const variables = list(container['env']).map((variable) => fields(variable['valueFrom']));
  const isObject =
    list(container['envFrom']).some((source) => 'secretRef' in source || 'configMapRef' in source) ||
    variables.some((from) => 'secretKeyRef' in from || 'configMapKeyRef' in from);
  return [
    ...(isObject
      ? [finding('ENV_FROM', `${place} takes environment variables from Secrets or ConfigMaps`)]
      : []),
    ...(variables.some((from) => 'fileKeyRef' in from)
      ? [finding('ENV_FILE', `${place} takes environment variables from a file`)]
      : []),
  ];
}

function images(volumes: ReadonlyMap<string, Fields>, where: string): Finding[] {
  return [...volumes]
    .filter(([, volume]) => 'image' in volume)
    .map(([name]) => finding('IMAGE_VOLUME', `${where}: volume ${name} is the contents of an image`));
}

/** The default of `expirationSeconds`; the API server stores it. Any other value was chosen on purpose. */
const HOUR_SECONDS = 3_600;

/** The least lifetimes that the API server accepts. */
const LEAST_SECONDS = { expirationSeconds: 600, maxExpirationSeconds: HOUR_SECONDS };

function expirations(volume: Fields, where: string): Finding[] {
  const name = text(volume['name']);
  const tokens = sourcesOf(volume, 'serviceAccountToken');
  const parts = [...tokens, ...sourcesOf(volume, 'podCertificate')];
  return [
    ...tokens
      .filter(({ expirationSeconds: seconds = HOUR_SECONDS }) => seconds === HOUR_SECONDS)
      .map(() =>
        finding(
          'LONG_PROJECTION',
          `${where}: the token in volume ${name} has the default expirationSeconds of one hour`,
        ),
      ),
    ...Object.entries(LEAST_SECONDS).flatMap(([field, least]) =>
      parts
        .filter((part) => Number(part[field]) < least)
        .map((part) =>
          finding('EXPIRATION_REFUSED', `${where}: ${field} in volume ${name} is ${String(part[field])}`),
        ),
    ),
  ];
}
