/** Finds in manifests what keeps a mounted ConfigMap, Secret or token from being updated. */
import { finding, type Finding } from './finding.js';

type Fields = Readonly<Record<string, unknown>>;

/** Each finding names the object it is in. */
export function findingsInManifests(documents: readonly unknown[]): Finding[] {
  return documents.flatMap(objectsIn).flatMap((object) => {
    const { kind, metadata } = object;
    const where = `${text(kind)}/${text(fields(metadata)['name'])}`;
    return [...immutable(object, where), ...podFindings(podSpecOf(object), where)];
  });
}

/** Expands a List into its objects. */
function objectsIn(document: unknown): Fields[] {
  const object = fields(document);
  if (Array.isArray(object['items']) && text(object['kind']).endsWith('List')) {
    return object['items'].flatMap(objectsIn);
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
    ...updated.flatMap((volume) => longProjections(volume, where)),
    ...missingGroup(spec, containers, updated, where),
  ];
}

function isUpdated(volume: Fields): boolean {
  return ['configMap', 'secret', 'projected', 'downwardAPI'].some((source) => source in volume);
}

function subPaths(container: Fields, volumes: ReadonlyMap<string, Fields>, where: string): Finding[] {
  return list(container['volumeMounts'])
    .filter((mount) => text(mount['subPath'] ?? mount['subPathExpr']) !== '')
    .filter((mount) => isUpdated(volumes.get(text(mount['name'])) ?? {}))
    .map((mount) => {
      const place = `${text(mount['mountPath'])} of container ${text(container['name'])}`;
      return finding('SUBPATH', `${where}: ${place} mounts a subPath of volume ${text(mount['name'])}`);
    });
}

function fromEnvironment(container: Fields, where: string): Finding[] {
  const sources = [
    ...list(container['envFrom']).filter((source) => 'secretRef' in source || 'configMapRef' in source),
    ...list(container['env']).filter((variable) => {
      const from = fields(variable['valueFrom']);
      return 'secretKeyRef' in from || 'configMapKeyRef' in from;
    }),
  ];
  if (sources.length === 0) return [];
  const message = `${where}: container ${text(container['name'])} takes environment variables from Secrets or ConfigMaps`;
  return [finding('ENV_FROM', message)];
}

function longProjections(volume: Fields, where: string): Finding[] {
  return list(fields(volume['projected'])['sources'])
    .filter((source) => 'serviceAccountToken' in source)
    .filter((source) => fields(source['serviceAccountToken'])['expirationSeconds'] === undefined)
    .map(() => {
      const place = `${where}: the token in volume ${text(volume['name'])}`;
      return finding('LONG_PROJECTION', `${place} has the default expirationSeconds of one hour`);
    });
}

function missingGroup(
  spec: Fields,
  containers: readonly Fields[],
  updated: readonly Fields[],
  where: string,
): Finding[] {
  const context = fields(spec['securityContext']);
  if (updated.length === 0 || 'fsGroup' in context) return [];
  const isNonRoot = [context, ...containers.map((container) => fields(container['securityContext']))].some(
    ({ runAsNonRoot, runAsUser }) =>
      runAsNonRoot === true || (typeof runAsUser === 'number' && runAsUser > 0),
  );
  return isNonRoot ? [finding('NO_FS_GROUP', `${where} runs as a non-root user and sets no fsGroup`)] : [];
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fields) : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
