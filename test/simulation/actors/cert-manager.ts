/**
 * cert-manager's csi-driver: volumes on a tmpfs of its own, written by its copy of kubelet's AtomicWriter, and mounted
 * read-only where the pod has them.
 */
import type { Mount } from '../machine/mounts.js';
import type { Steps, World } from '../world.js';
import { exists, removeAll, write, type Fs } from './calls.js';
import { publish, type Manner, type Payload } from './volumes.js';

const MANNER: Manner = { name: 'csi-driver', links: 'after', gapMs: undefined, isTidy: true, group: 1_000 };

/** Of all volumes of the driver. */
export const IN_MEMORY = '/csi';

const VOLUME = `${IN_MEMORY}/volume`;
const DATA = `${VOLUME}/data`;

/** Publishes and mounts the volume, and renews it. @param unit what the pod sees. */
export function* issue(
  { fs, world, unit }: { readonly fs: Fs; readonly world: World; readonly unit: string },
  payloads: readonly Payload[],
  pauses: readonly number[],
  first: number,
): Steps {
  for (const [index, payload] of payloads.entries()) {
    yield pauses[index] ?? 0;
    if (!exists(fs, VOLUME)) fs.mkdirSync(VOLUME, 0o644);
    yield* write(fs, `${VOLUME}/metadata.json`, `{"issued":${index}}`);
    if (!exists(fs, DATA)) fs.mkdirSync(DATA, 0o550);
    yield;
    fs.chownSync(DATA, -1, 1_000);
    yield;
    const at = { fs, world, directory: DATA, unit, manner: MANNER };
    yield* publish(at, `..2030_01_01_00_00_0${index % 10}.${first + index}`, payload);
    yield* write(fs, `${VOLUME}/metadata.json`, `{"issued":${index},"next":${index + 1}}`);
  }
}

/** As `NodePublishVolume` for a volume that is written. */
export function mountInPod(world: World, point: string): Mount {
  const mount = world.machine.mount(point, { type: 'tmpfs', bind: DATA, isReadOnly: true });
  world.acts('csi-driver', `mounts ${point}`);
  return mount;
}

/** As `NodeUnpublishVolume`. */
export function* unmountAndRemove(fs: Fs, world: World, mount: Mount, unit: string): Steps {
  world.machine.unmount(mount, { isLazy: true });
  world.acts('csi-driver', 'unmounts');
  yield;
  world.begins(unit);
  yield* removeAll(fs, VOLUME);
  world.ends(unit);
  yield;
}
