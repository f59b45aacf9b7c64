/** Finds pods whose user cannot read the mounted files. */
import { fields, isUpdated, list, text, type Fields, type Pod } from './fields.js';
import { finding, type Finding } from './finding.js';

/** A non-root pod without `fsGroup`, unless its user owns the files. */
export function missingGroup({ where, spec, volumes, containers }: Pod): Finding[] {
  const updated = [...volumes.values()].filter(isUpdated);
  const context = fields(spec['securityContext']);
  if (updated.length === 0 || 'fsGroup' in context) return [];
  const contexts = [context, ...containers.map((container) => fields(container['securityContext']))];
  const users = contexts
    .map(({ runAsUser }) => runAsUser)
    .filter((user): user is number => typeof user === 'number' && user > 0);
  const isNonRoot = users.length > 0 || contexts.some(({ runAsNonRoot }) => runAsNonRoot === true);
  const common = commonUser(context, containers);
  if (!isNonRoot || updated.every((volume) => isOwned(volume, users, common))) return [];
  const unreadable = updated.filter((volume) => !isOwned(volume, users, common) && isOwnersOnly(volume));
  if (users.length > 0 && unreadable.length > 0) {
    return unreadable.map((volume) =>
      finding(
        'UNREADABLE',
        `${where} runs as a non-root user without fsGroup, and volume ${text(volume['name'])} has a defaultMode that only root can read`,
      ),
    );
  }
  return [finding('NO_FS_GROUP', `${where} runs as a non-root user and sets no fsGroup`)];
}

/** Whether others may not read the files, which belong to root. */
function isOwnersOnly(volume: Fields): boolean {
  const source = ['configMap', 'secret', 'projected', 'downwardAPI'].map((kind) => fields(volume[kind]));
  return source.some(({ defaultMode: mode }) => typeof mode === 'number' && (mode & 0o004) === 0);
}

/** The `runAsUser` of all containers; undefined if they have none or differ. */
function commonUser(pod: Fields, containers: readonly Fields[]): unknown {
  const users = containers.map(
    ({ securityContext }) => fields(securityContext)['runAsUser'] ?? pod['runAsUser'],
  );
  return new Set(users).size === 1 ? users[0] : undefined;
}

/** Whether the user of every container owns the files: by `defaultUser`, by `user` of each file, or by kubelet. */
function isOwned(volume: Fields, users: readonly number[], common: unknown): boolean {
  const owners = ownersOf(volume, common);
  return (
    owners.length > 0 &&
    owners.every((owner) => typeof owner === 'number' && users.every((user) => user === owner))
  );
}

/** kubelet gives files that it creates itself to the common user of the containers. */
const MADE_BY_KUBELET = ['serviceAccountToken', 'clusterTrustBundle', 'podCertificate'];

/** The owner of each file; undefined for one without. */
function ownersOf(volume: Fields, common: unknown): unknown[] {
  if ('projected' in volume) {
    const { defaultUser, sources } = fields(volume['projected']);
    return list(sources).flatMap((source) =>
      Object.entries(source).flatMap(([kind, part]) =>
        ownersIn(fields(part), defaultUser ?? (MADE_BY_KUBELET.includes(kind) ? common : undefined)),
      ),
    );
  }
  const source = fields(volume['configMap'] ?? volume['secret'] ?? volume['downwardAPI']);
  return ownersIn(source, source['defaultUser']);
}

function ownersIn(part: Fields, otherwise: unknown): unknown[] {
  const items = list(part['items']);
  return (items.length > 0 ? items : [part]).map(({ user }) => user ?? otherwise);
}
