/** Sequences about stopped processes, kernel limits and other users. */
import { readFileSync } from 'node:fs';

import { slowly, volumeKey, type KeyOptions } from '../publishers.js';
import { MEMORY, inUserNamespace, unmet } from '../requirement.js';
import type { Sequence } from '../sequence.js';
import type { Publish, Stage, StartOptions } from '../stage.js';

/** `nobody` of most systems, with a group for `fsGroup`. */
const FS_GROUP = 2_000;
const NOBODY = { uid: 65_534, gid: FS_GROUP };

/** Makes `publications` while the program is stopped; the last one is held. */
const stopped =
  (publications: number): Sequence['run'] =>
  async (stage) => {
    const { path, publish } = volumeKey(stage);
    await stage.start(path, publish);
    for (let round = 0; round < 2; round += 1) {
      const content = stage.content();
      await stage.suspended(async () => {
        for (let update = 1; update < publications; update += 1) await stage.pass(publish);
        await stage.pass(publish, content);
        await stage.pause(300);
      });
      // The same content again, which changes nothing: the deadline begins now.
      await stage.show(() => {}, content);
    }
    await stage.show(publish);
  };

async function stoppedAndRecreated(stage: Stage): Promise<void> {
  const { volume, path, publish } = volumeKey(stage);
  await stage.start(path, publish);
  const content = stage.content();
  await stage.suspended(async () => {
    stage.disk.remove(volume.directory);
    await stage.pass(publish, content);
    await stage.pause(300);
  });
  await stage.show(() => {}, content);
  await stage.show(publish);
}

/** An update causes at least this many events in the directory of the volume. */
const EVENTS_OF_UPDATE = 5;

async function overflow(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage);
  await stage.start(path, publish);
  const queue = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
  const content = stage.content();
  await stage.suspended(async () => {
    for (let update = 0; update < queue / EVENTS_OF_UPDATE; update += 1) {
      await stage.pass(publish);
      if (update % 50 === 0) await stage.pause(1);
    }
    await stage.pass(publish, content);
  });
  await stage.show(() => {}, content);
  await stage.show(publish);
}

const limited =
  (limit: 'instances' | 'watches'): Sequence['run'] =>
  async (stage) => {
    const { path, publish } = volumeKey(stage);
    const prefix = inUserNamespace(`echo 0 > /proc/sys/user/max_inotify_${limit}; exec "$@"`);
    await stage.start(path, publish, { prefix });
    for (let update = 0; update < 2; update += 1) await stage.show(publish);
  };

/** Runs as another user, in the group of `fsGroup`. */
const asUser =
  (
    options: KeyOptions,
    count: number,
    publisher?: (stage: Stage, key: ReturnType<typeof volumeKey>) => Publish,
  ) =>
  async (stage: Stage): Promise<void> => {
    const key = volumeKey(stage, options);
    const start: StartOptions = { user: NOBODY };
    await stage.start(key.path, key.publish, start);
    const publish = publisher?.(stage, key) ?? key.publish;
    for (let update = 0; update < count; update += 1) await stage.show(publish);
  };

/** A new revision cannot be entered by others between the two calls that make it. */
const slow0700 = (stage: Stage, { volume }: ReturnType<typeof volumeKey>): Publish =>
  slowly(stage, volume, ({ name }) => (name === 'mkdir' ? 50 : 0));

async function burstAsUser(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage);
  await stage.start(path, publish, { user: NOBODY });
  for (let update = 0; update < 100; update += 1) {
    await stage.pass(publish);
    await stage.pause(5);
  }
  await stage.show(publish);
}

export const processSequences: readonly Sequence[] = [
  {
    name: 'stopped',
    says: 'One update while the program is stopped (SIGSTOP): a frozen cgroup, a laptop that sleeps.',
    run: stopped(1),
  },
  { name: 'stopped-long', says: 'A hundred updates while the program is stopped.', run: stopped(100) },
  {
    name: 'stopped-recreated',
    says: 'The volume is removed and created again while the program is stopped.',
    run: stoppedAndRecreated,
  },
];

const isMemory = unmet(['tmpfs']) === undefined;

export const limitSequences: readonly Sequence[] = [
  {
    name: 'queue-overflow',
    says: 'More events than the inotify queue can hold, so the kernel drops the last ones.',
    needs: ['linux'],
    ...(isMemory && { parent: MEMORY }),
    deadlineMs: 15_000,
    run: overflow,
  },
  {
    name: 'no-instance',
    says: 'No inotify instance is left for the user (EMFILE): a node with many pods.',
    needs: ['linux', 'inotify limits'],
    run: limited('instances'),
  },
  {
    name: 'no-watch',
    says: 'No inotify watch is left for the user (ENOSPC).',
    needs: ['linux', 'inotify limits'],
    run: limited('watches'),
  },
];

export const userSequences: readonly Sequence[] = [
  {
    name: 'user-0700',
    says: 'For 50 ms the new revision has mode 0700, so a non-root reader gets EACCES.',
    needs: ['linux', 'root'],
    run: asUser({}, 3, slow0700),
  },
  {
    name: 'user-burst',
    says: 'A hundred updates, 5 ms apart: sooner or later the program opens a directory of mode 0700.',
    needs: ['linux', 'root'],
    run: burstAsUser,
  },
  {
    name: 'user-fs-group',
    says: 'The pod has an `fsGroup`: the owners and modes of the old revision and of the volume change before each swap.',
    needs: ['linux', 'root'],
    run: asUser({ fsGroup: FS_GROUP }, 3),
  },
  {
    name: 'user-secret',
    says: 'A Secret with mode 0400 that only the `fsGroup` makes readable.',
    needs: ['linux', 'root', 'tmpfs'],
    parent: MEMORY,
    run: asUser({ fsGroup: FS_GROUP, mode: 0o400 }, 3),
  },
];
