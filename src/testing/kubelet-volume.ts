import fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import type { Clock } from '../core/ports/clock.js';
import { errnoOf } from '../core/errors/errno.js';
import type { Random } from '../core/ports/random.js';
import {
  checkPath,
  describe,
  flag,
  matching,
  oneOf,
  port,
  PORT_OPTIONS,
  resolveOptions,
  type Resolved,
} from '../core/options/options.js';
import { toldPath } from '../core/ports/platform-path.js';
import { DATA_LINK as DATA, KUBELET_PENDING_LINK, revisionName, topOf } from '../fs/volume-layout.js';
import { checkedFiles, type CheckedFile, type VolumeFiles } from './volume-file.js';
import {
  changeGroup,
  giveToGroup,
  isMissing,
  makeDirectories,
  removeAll,
  symlink,
  unlinkIfAny,
  writeFiles,
  type VolumeStep,
} from './volume-steps.js';

/** The result of an update. */
export interface PublishResult {
  /** Whether there is a new revision. */
  readonly changed: boolean;
  /** The new target of `..data`. */
  readonly revision: string;
}

/** Options of {@link KubeletVolume}. */
export interface KubeletVolumeOptions {
  /**
   * How `..data` moves to a new revision. `rename` (default): replaced by one rename, as kubelet does on Linux.
   * `remove`: removed, then linked again, so that the link is missing in between, as kubelet does on Windows and
   * `ln -sfn` on small systems.
   */
  readonly swap?: 'rename' | 'remove' | undefined;
  /**
   * When the links of new keys are created. `after` the swap (default), as in newer kubelets: a new key is missing for
   * a moment. `before` the swap, as in older ones (1.20 and others): a new key is a dangling link for a moment, and an
   * update that changes nothing does not repair links.
   */
  readonly links?: 'after' | 'before' | undefined;
  /**
   * The `fsGroup` of the pod: before each swap, the group of the volume and of everything in it is set to this.
   * Requires the permission to do so. Default: none, and no such calls.
   */
  readonly fsGroup?: number | undefined;
  /** Leaves old revisions in place, as some publishers do. Default `false`: they are removed after the swap. */
  readonly keepOldRevisions?: boolean | undefined;
  /** The wall clock in the names of revisions. Default: that of the system. */
  readonly clock?: Pick<Clock, 'now'> | undefined;
  /** The random digits in the names of revisions; must vary. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

const OPTIONS = {
  swap: oneOf<'rename' | 'remove'>('rename', ['rename', 'remove']),
  links: oneOf<'after' | 'before'>('after', ['after', 'before']),
  fsGroup: matching<number | undefined>(
    undefined,
    'the number of a group',
    (value) => Number.isInteger(value) && (value as number) >= 0,
  ),
  keepOldRevisions: flag(false),
  clock: port<Pick<Clock, 'now'>>(PORT_OPTIONS.clock.fallback, 'now'),
  random: PORT_OPTIONS.random,
};

/** How often Go's `os.MkdirTemp` tries another name. */
const NAME_ATTEMPTS = 10_000;

/**
 * A real directory that is updated like a mounted ConfigMap, Secret or projected token, with the layout, the calls and
 * the faults of kubelet's AtomicWriter (`pkg/volume/util/atomic_writer.go`), traced on kubelet 1.36 and 1.37.
 *
 * ```ts
 * const volume = new KubeletVolume(join(tmpdir(), 'policy'));
 * volume.publish({ 'policy.yaml': 'allow: all' });
 * readFileSync(volume.path('policy.yaml'), 'utf8'); // 'allow: all'
 *
 * for (const step of volume.steps({ 'policy.yaml': 'allow: none' })) {
 *   // read, send a hint, or `break` to crash kubelet here
 * }
 * ```
 *
 * An update, numbered as in kubelet:
 *
 * 1. The keys are checked. 2. `..data` is read to find the current revision. 3. Names that are in it, but not in the
 * new files, are noted. 4. Contents are compared; modes are not. If all are equal, 10 is next. 5. A directory
 * `..YYYY_MM_DD_hh_mm_ss.<random digits>` is created with mode 0700, then changed to 0755. 6. Each file is written in
 * it and given its mode, parents first. 7. With `fsGroup`: the group and the mode of the new revision's files and of
 * its directory are changed, then the group
 *    of `..data`, then the old revision's like the new one's, then the group of each link, and at last the group and the
 *    mode of the volume's directory itself. Which of the entries comes first depends on the file system.
 * 8. `..data_tmp` is linked to it.
 * 9. The swap: `..data_tmp` becomes `..data`.
 * 10. Missing links `name -> ..data/name` are created for the first element of each key. Anything else with such a name
 *     is left alone. With `links: 'before'` this comes before 8.
 * 11. Links of removed keys are removed.
 * 12. The old revision is removed.
 *
 * Faults of kubelet that are kept: after a crash between 8 and 9, a stale `..data_tmp` makes every further update fail
 * with EEXIST, until someone calls `unlinkSync(volume.path('..data_tmp'))`; after a crash, entries that 11 and 12 did
 * not remove stay for good. Differences: files are written in the given order, while kubelet's order is random; a key
 * that turns from a file into a directory, or back, is an ordinary change, while kubelet may fail; a missing link that
 * is to be removed is ignored, while kubelet reports it and skips 12; a missing directory of the volume is created,
 * parents included; owners do not change, while kubelet sets them in projected volumes if all containers have the same
 * `runAsUser`.
 *
 * One update at a time. Nothing is kept in memory: another `KubeletVolume` on the same directory continues where this
 * one stopped, like a restarted kubelet.
 */
export class KubeletVolume {
  /** Absolute path of the volume. */
  readonly directory: string;
  readonly #options: Resolved<typeof OPTIONS>;

  /**
   * Touches no file.
   * @throws {TypeError} for an empty directory, or a wrong option.
   */
  constructor(directory: string | URL, options?: KubeletVolumeOptions) {
    this.directory = resolve(toldPath(checkPath('KubeletVolume', 'directory', directory)));
    this.#options = resolveOptions('KubeletVolume', options, OPTIONS);
  }

  /** The path under which users of the volume find `key`; also for `..data` and `..data_tmp`. */
  path(key: string): string {
    if (typeof key !== 'string') {
      throw new TypeError(`KubeletVolume.path: key must be a string, got ${describe(key)}`);
    }
    return join(this.directory, key);
  }

  /** The target of `..data`; undefined before the first update and in the gap of a `remove` swap. */
  get revision(): string | undefined {
    try {
      return fs.readlinkSync(this.path(DATA));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * Publishes `files` as the contents of the volume, all steps at once.
   * @throws as {@link steps}.
   */
  publish(files: VolumeFiles): PublishResult {
    const update = this.steps(files);
    for (;;) {
      const step = update.next();
      if (step.done) return step.value;
    }
  }

  /**
   * The same, one system call at a time: each `next()` makes exactly one call that changes the disk, and yields a
   * description of it. Calls without a visible effect, such as closing a file, are made together with the next one. To
   * simulate a crash, stop with `break` or `return()`.
   *
   * @throws {TypeError | RangeError} immediately, for a key that kubelet would refuse or a value that is not a file.
   * @throws the errno error of a failed system call, from `next()`, after what kubelet cleans up is cleaned up
   *   (as steps of their own): EEXIST at a stale `..data_tmp`, EINVAL when `..data` is not a link.
   */
  steps(files: VolumeFiles): Generator<VolumeStep, PublishResult, undefined> {
    return this.#update(checkedFiles(files));
  }

  /** Deletes the directory with everything in it. Has no effect if it does not exist. */
  remove(): void {
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  *#update(entries: readonly CheckedFile[]): Generator<VolumeStep, PublishResult, undefined> {
    yield* makeDirectories(this.directory);
    const old = this.#ownRevision;
    const vanished = old === undefined ? [] : vanishedPaths(this.path(old), entries);
    if (old !== undefined && vanished.length === 0 && holds(this.path(old), entries)) {
      if (this.#options.links === 'after') yield* this.#link(entries);
      return { changed: false, revision: old };
    }
    const revision = yield* this.#makeRevision();
    yield* writeFiles(this.path(revision), entries);
    const { fsGroup } = this.#options;
    if (fsGroup !== undefined) yield* this.#setGroup(fsGroup, revision, old);
    if (this.#options.links === 'before') yield* this.#link(entries);
    yield* this.#swap(revision);
    if (this.#options.links === 'after') yield* this.#link(entries);
    for (const path of vanished) {
      if (!path.includes('/')) yield* unlinkIfAny(this.path(path));
    }
    if (old !== undefined && !this.#options.keepOldRevisions) yield* removeAll(this.path(old));
    return { changed: true, revision };
  }

  /** A link that was not created here may lead anywhere. Nothing outside the volume is read, changed or removed. */
  get #ownRevision(): string | undefined {
    const { revision } = this;
    if (revision === undefined || basename(revision) !== revision) return undefined;
    return revision === '.' || revision === '..' ? undefined : revision;
  }

  *#makeRevision(): Generator<VolumeStep, string> {
    const { clock, random } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const revision = revisionName(clock.now(), random);
      const path = this.path(revision);
      try {
        fs.mkdirSync(path, 0o700);
      } catch (error) {
        if (errnoOf(error) === 'EEXIST' && attempt < NAME_ATTEMPTS) continue;
        throw error;
      }
      yield { name: 'mkdir', path };
      fs.chmodSync(path, 0o755);
      yield { name: 'chmod', path };
      return revision;
    }
  }

  *#setGroup(gid: number, revision: string, old: string | undefined): Generator<VolumeStep, void> {
    yield* giveToGroup(this.path(revision), gid);
    if (old !== undefined) {
      yield* changeGroup(this.path(DATA), gid);
      if (!isMissing(this.path(old))) yield* giveToGroup(this.path(old), gid);
    }
    const others = fs.readdirSync(this.directory).filter((name) => ![DATA, revision, old].includes(name));
    for (const name of others.sort()) yield* giveToGroup(this.path(name), gid);
    yield* changeGroup(this.directory, gid);
  }

  *#swap(revision: string): Generator<VolumeStep, void> {
    const data = this.path(DATA);
    const next = this.path(KUBELET_PENDING_LINK);
    try {
      yield symlink(revision, next);
    } catch (error) {
      yield* removeAll(this.path(revision)); // `..data_tmp` belongs to another writer
      throw error;
    }
    try {
      if (this.#options.swap === 'rename') {
        fs.renameSync(next, data);
        yield { name: 'rename', path: data };
      } else {
        yield* unlinkIfAny(data);
        yield symlink(revision, data);
      }
    } catch (error) {
      yield* unlinkIfAny(next);
      yield* removeAll(this.path(revision));
      throw error;
    }
    yield* unlinkIfAny(next);
  }

  *#link(entries: readonly CheckedFile[]): Generator<VolumeStep, void> {
    const names = new Set(entries.map(({ key }) => topOf(key)));
    for (const name of names) {
      if (isMissing(this.path(name))) yield symlink(`${DATA}/${name}`, this.path(name));
    }
  }
}

/** The entries of the revision that are neither one of the files nor an ancestor of one. */
function vanishedPaths(revision: string, entries: readonly CheckedFile[]): string[] {
  const wanted = new Set<string>();
  for (const { key } of entries) for (let path = key; path !== '.'; path = dirname(path)) wanted.add(path);
  return pathsIn(revision).filter((path) => !wanted.has(path));
}

function pathsIn(directory: string): string[] {
  try {
    return fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []; // a dangling `..data`: nothing is published
    throw error;
  }
}

/** Whether the files of the revision have these contents. */
function holds(revision: string, entries: readonly CheckedFile[]): boolean {
  return entries.every(({ key, data }) => {
    try {
      return fs.readFileSync(join(revision, key)).equals(data);
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errnoOf(error) ?? '')) return false;
      throw error;
    }
  });
}
