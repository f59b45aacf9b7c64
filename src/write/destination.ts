import type { BigIntStats } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';

import { errnoOf } from '../core/errno.js';
import { MAX_LINKS } from '../core/file-system.js';
import { call, type Effects } from '../fs/effects.js';
import type { SynchronousCalls } from '../fs/locality.js';
import { enterDirectory, makeDirectories, untrustedLink, type HeldDirectory } from './held-directory.js';
import type { Durability } from './pending-file.js';
import { ifExists } from './tolerated-failures.js';
import { mayFollow, mayReplace } from './trust.js';
import { Refusal, type WriteProgress } from './write-progress.js';

/** How a path leads to a file; see the options of the same names. */
interface DestinationSettings {
  readonly symlink: 'follow' | 'replace' | 'error';
  readonly createDirectory: boolean;
  readonly durability: Durability;
}

/** Where a write goes: a name in a directory that is held open, and the file that has that name. */
export class Destination {
  /** Absolute. When it is open, the links at its end are followed, if `symlink` says so. */
  path: string;
  /** The file to replace. */
  existing: BigIntStats | undefined;
  /** Undefined until it is open, and if it does not exist and is to be created. */
  directory: HeldDirectory | undefined;
  readonly #settings: DestinationSettings;
  readonly #calls: SynchronousCalls;
  readonly #progress: WriteProgress;

  constructor(path: string, settings: DestinationSettings, calls: SynchronousCalls, progress: WriteProgress) {
    this.path = path;
    this.#settings = settings;
    this.#calls = calls;
    this.#progress = progress;
  }

  /** The name of the file in its directory. */
  get name(): string {
    return basename(this.path);
  }

  /** Follows the links at the end of the path, and opens the directory of the file. */
  *open(): Effects<void> {
    for (let links = 0; ; links += 1) {
      if (this.path.endsWith('/')) throw new Refusal('ERR_WRITE_NOT_FILE', 'it is a directory');
      yield* this.#enterDirectory();
      const { directory } = this;
      if (!directory) return;
      this.#progress.step = 'resolve';
      const stat = yield* ifExists(call('lstat', directory.at(this.name)));
      if (!stat?.isSymbolicLink()) {
        if (stat) assertReplaceable(stat, directory.stat);
        this.existing = stat;
        return;
      }
      if (this.#settings.symlink === 'replace') return;
      const target = yield* this.#follow(stat, directory, links);
      yield* this.close();
      this.path = target;
    }
  }

  /** Creates the directory, and missing ones above it. */
  *createDirectory(): Effects<HeldDirectory> {
    this.#progress.step = 'create-directory';
    const durable = this.#settings.durability === 'full';
    const directory = yield* makeDirectories(dirname(this.path), { readable: durable, durable });
    this.directory = directory;
    yield* this.#calls.enter(directory.stat, directory.at('.'));
    return directory;
  }

  *close(): Effects<void> {
    const { directory } = this;
    this.directory = undefined;
    if (directory) yield* directory.close();
  }

  *#enterDirectory(): Effects<void> {
    const { createDirectory, durability } = this.#settings;
    this.#progress.step = 'open-directory';
    try {
      this.directory = yield* enterDirectory(dirname(this.path), this.#calls, {
        readable: durability === 'full',
      });
    } catch (error) {
      if (!createDirectory || errnoOf(error) !== 'ENOENT') throw error;
    }
  }

  /** Where the link at the path leads. */
  *#follow(link: BigIntStats, directory: HeldDirectory, links: number): Effects<string> {
    if (this.#settings.symlink === 'error') {
      throw new Refusal('ERR_WRITE_SYMLINK', 'it is a symbolic link, and symlink is "error"');
    }
    if (links === MAX_LINKS) {
      throw new Refusal('ERR_WRITE_SYMLINK', `its symbolic links form a loop, or are more than ${MAX_LINKS}`);
    }
    if (!mayFollow(link, directory.stat)) throw untrustedLink(this.path);
    const target = yield* call('readlink', directory.at(this.name));
    // Not `resolve()`: `..` means the parent of where the directory really is.
    return isAbsolute(target) ? target : `${dirname(this.path)}/${target}`;
  }
}

/** Refuses what is not a file, and a file that somebody else may have created for us. */
function assertReplaceable(stat: BigIntStats, directory: BigIntStats): void {
  if (stat.isDirectory()) throw new Refusal('ERR_WRITE_NOT_FILE', 'it is a directory');
  if (!stat.isFile()) {
    throw new Refusal(
      'ERR_WRITE_NOT_FILE',
      'it is a device, a pipe or a socket, which a file must not replace',
    );
  }
  if (!mayReplace(stat, directory)) {
    const what = 'it belongs to another user, in a directory where others can create files';
    throw new Refusal('ERR_WRITE_UNTRUSTED', `${what}; remove it, or write to a directory of your own`);
  }
}
