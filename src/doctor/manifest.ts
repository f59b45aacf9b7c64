/** Finds in manifests what keeps a mounted ConfigMap, Secret or token from being updated. */
import { describe } from '../core/options.js';
import { certificateFindings } from './certificate-findings.js';
import { fields, list, text, type Fields } from './fields.js';
import { finding, type Finding } from './finding.js';
import { missingGroup } from './missing-group.js';

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
  return documents
    .flatMap((document) => objectsIn(document, lists))
    .flatMap((object) => {
      const { kind, metadata } = object;
      const where = `${text(kind)}/${text(fields(metadata)['name'])}`;
      return [...immutable(object, where), ...podFindings(podSpecOf(object), where)];
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
function podSpecOf(object: Fields): Fields {
  const spec = fields(object['spec']);
  if (object['kind'] === 'Pod') return spec;
  const job = fields(fields(spec['jobTemplate'])['spec']);
  const template = fields(('template' in spec ? spec : job)['template']);
  return fields(template['spec']);
}

function podFindings(spec: Fields, where: string): Finding[] {
  const volumes = new Map(list(spec['volumes']).map((volume) => [text(volume['name']), volume]));
  const containers = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((key) =>
    list(spec[key]),
  );
  const updated = [...volumes.values()].filter(isUpdated);
  return [
    ...containers.flatMap((container) => [
      ...subPaths(container, volumes, where),
      ...fromEnvironment(container, where),
    ]),
    ...images(volumes, where),
    ...certificateFindings(volumes, containers, where),
    ...updated.flatMap((volume) => longProjections(volume, where)),
    ...missingGroup(spec, containers, updated, where),
  ];
}

/** Whether kubelet updates the files of the volume. */
function isUpdated(volume: Fields): boolean {
  return ['configMap', 'secret', 'projected', 'downwardAPI'].some((source) => source in volume);
}

function subPaths(container: Fields, volumes: ReadonlyMap<string, Fields>, where: string): Finding[] {
  return list(container['volumeMounts'])
    .filter((mount) => text(mount['subPath'] ?? mount['subPathExpr']) !== '')
    .filter((mount) => {
      // The driver of a CSI volume may replace its files, as secrets-store does.
      const volume = volumes.get(text(mount['name'])) ?? {};
      return isUpdated(volume) || 'csi' in volume;
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

function longProjections(volume: Fields, where: string): Finding[] {
  return list(fields(volume['projected'])['sources'])
    .filter((source) => 'serviceAccountToken' in source)
    .map((source) => fields(source['serviceAccountToken']))
    .filter(({ expirationSeconds: seconds = HOUR_SECONDS }) => seconds === HOUR_SECONDS)
    .map(() => {
      const place = `${where}: the token in volume ${text(volume['name'])}`;
      return finding('LONG_PROJECTION', `${place} has the default expirationSeconds of one hour`);
    });
}
