/** What a sequence requires of the machine, and how the program is started for it. */
import { spawnSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { platform } from 'node:os';

/** Something that a machine has or allows. */
export type Requirement = 'linux' | 'tmpfs' | 'root' | 'mount' | 'inotify limits';

/** Where Linux keeps files in memory. */
export const MEMORY = '/dev/shm';
const TMPFS_MAGIC = 0x01021994;

/** The command that runs another, after a shell script, in a user namespace of its own where it may set limits. */
export const inUserNamespace = (script: string): string[] => shellIn(['unshare', '-Ur'], script);

/** The same in a mount namespace of its own. */
export const inMountNamespace = (script: string, ...args: string[]): string[] => [
  ...shellIn(['unshare', process.getuid?.() === 0 ? '-m' : '-Urm'], script),
  ...args,
];

/** The arguments of the script come first, the command follows. */
function shellIn(namespace: readonly string[], script: string): string[] {
  return [...namespace, 'sh', '-ec', script, 'sh'];
}

const CHECKS: Readonly<Record<Requirement, () => string | undefined>> = {
  linux: () => (platform() === 'linux' ? undefined : 'it needs Linux'),
  tmpfs: () => (isTmpfs() ? undefined : `${MEMORY} is not a tmpfs`),
  root: () => (process.getuid?.() === 0 ? undefined : 'only root can start a program as another user'),
  mount: () =>
    succeeds(inMountNamespace('mount --bind /dev/null /dev/null; exec "$@"'))
      ? undefined
      : 'bind mounts are not allowed here',
  'inotify limits': () =>
    succeeds(inUserNamespace('echo 0 > /proc/sys/user/max_inotify_instances; exec "$@"'))
      ? undefined
      : 'user namespaces with limits of their own are not allowed here',
};

const known = new Map<Requirement, string | undefined>();

/** Why a sequence with these requirements cannot run here; undefined if it can. Each is checked once. */
export function unmet(needs: readonly Requirement[]): string | undefined {
  for (const need of needs) {
    if (!known.has(need)) known.set(need, CHECKS[need]());
    const reason = known.get(need);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function isTmpfs(): boolean {
  try {
    return statfsSync(MEMORY).type === TMPFS_MAGIC;
  } catch {
    return false;
  }
}

function succeeds([command = '', ...args]: readonly string[]): boolean {
  return spawnSync(command, [...args, 'true'], { stdio: 'ignore', timeout: 10_000 }).status === 0;
}
