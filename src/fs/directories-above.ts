/**
 * What decides whether an entry can be read: the entry itself and every directory above it, also in a revision, which
 * nobody listens to otherwise.
 */
import { dirname, basename } from 'node:path';

import { errnoOf } from '../core/errno.js';
import type { Steps } from '../core/steps.js';
import type { Disk } from './disk.js';
import { identityOf } from './file-identity.js';
import { mergeDirectories } from './merge-directories.js';
import type { ConsultedDirectory, Observation } from './observation.js';

type Unreadable = Extract<Observation, { kind: 'unreadable' }>;

/** The same observation, with the directories above what cannot be read. What is below it cannot be listened to. */
export function* withPathTo(seen: Unreadable, disk: Disk): Steps<Unreadable> {
  const { path } = seen.error;
  const others = seen.consulted.directories.filter((each) => !`${each.path}/`.startsWith(`${path}/`));
  return {
    ...seen,
    consulted: { directories: mergeDirectories([...others, ...(yield* directoriesAbove(path, disk))]) },
  };
}

/**
 * The directories above a path, each with the entry that leads to it. Those that cannot be looked up are left out: what
 * makes that possible again is an event of a directory above them.
 * @param path absolute, every link resolved.
 */
export function* directoriesAbove(path: string, disk: Disk): Steps<ConsultedDirectory[]> {
  const directories: ConsultedDirectory[] = [];
  for (let place = path; place !== dirname(place); place = dirname(place)) {
    const above = dirname(place);
    try {
      const stat = yield* disk.lstat(above);
      if (!stat?.isDirectory()) continue;
      const entries = [basename(place)];
      directories.push({ path: above, identity: identityOf(stat), entries, isAncestor: true });
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return directories;
}
