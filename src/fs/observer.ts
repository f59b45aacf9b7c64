import { dirname } from 'node:path';

import type { ResolvedChain, LinkChain } from './link-chain.js';
import { isEverythingLocal, Locality } from './locality.js';
import { systemClock } from '../core/clock.js';
import { nodeFileSystem, type FileSystem, type FileSystemCalls } from '../core/file-system.js';
import {
  COARSEST_TIMESTAMP_MS,
  MAX_FILES_AT_ONCE,
  type Found,
  type Observation,
  type Replacement,
  type Swap,
  type SwapReader,
  type Target,
} from './observation.js';
import { runAsync, runSliced, runSync } from './effects.js';
import { oneCallForEachRemoteMount } from './remote-mounts.js';
import { sharedTurn } from './shared-turn.js';
import { isRevisionName } from './volume-layout.js';

/**
 * Until it has run eight times, V8 interprets a function without caches for the properties it uses, and it sets them up the
 * next time. The first swap may come after days, and should be answered as soon as the tenth.
 */
const REHEARSALS = 10;

const MAX_REHEARSED_FILES = 4;

const MAX_REHEARSED_BYTES = 16_384;

/** Once in the life of the process is enough. */
let isRehearsed = false;

/** In place of one that has read a swap: the next one is prepared by the check that follows. */
const SPENT: SwapReader = {
  place: '',
  concerns: () => true,
  read: () => undefined,
  isUnchanged: () => undefined,
};

/** Observes a target: synchronously where that is safe, and without reading again what cannot have changed. */
export class Observer {
  readonly #target: Target;
  readonly #fs: FileSystem;
  readonly #locality = new Locality();
  #sync: FileSystem['sync'];
  /** What was last found. */
  #last: Found | undefined;
  /** When the signature of `#last` was first seen, monotonic ms. */
  #since = 0;
  /** Whether the signatures in `#last` are trusted: a file whose signature is the same need not be read again. */
  #isTrusted = false;
  /** What was read after a swap since the last observation. */
  #swapped: (() => Found) | undefined;
  /** Whether a resync was requested, which verifies a part of what is known. */
  #isToVerify = false;
  /** Reads the next swap, where that takes few calls. */
  #swapReader: SwapReader | undefined;
  /** The link whose swap was read. */
  #swappedLink: string | undefined;

  constructor(target: Target, fs: FileSystem) {
    this.#target = target;
    this.#fs = fs;
  }

  /** Whether every file system on the way is local, so that an observation ends within microseconds. */
  get isLocal(): boolean {
    return this.#sync !== undefined;
  }

  /**
   * Observes the target. What a swap has brought is not read again.
   * @param now monotonic ms.
   */
  async observe(now: number): Promise<Observation> {
    // Another hint has displaced the resync as the cause of this check.
    if (this.#isToVerify) this.isUnchanged();
    const swapped = this.#known();
    const known = this.#isTrusted ? this.#last : undefined;
    this.#swapped = undefined;
    const seen = await this.#observe(swapped ?? known, now);
    this.#swapReader = seen.kind === 'found' && this.#sync ? this.#target.swapReader?.(seen) : undefined;
    this.#swappedLink = undefined;
    if (seen.kind === 'found') this.#learn(seen, now);
    else this.#forget();
    this.#rehearse(seen);
    return seen;
  }

  /** The next check verifies what is known. */
  resync(): void {
    this.#isToVerify = true;
  }

  /**
   * Whether verifying a part of what is known shows no difference. Where that is impossible, `observe` checks
   * everything. Only one part is verified for each `resync()`; what it finds is noted for `observe`.
   */
  isUnchanged(): boolean {
    if (!this.#isToVerify) return false;
    this.#isToVerify = false;
    const sync = this.#sync;
    if (sync && this.#last && this.#isTrusted && !this.#swapped) {
      const isUnchanged = this.#isKeyUnchanged(sync);
      if (isUnchanged === undefined)
        return runSync(this.#target.isUnchanged(this.#last), sync, sharedTurn.ask);
      if (isUnchanged) return true;
    }
    this.touch();
    return false;
  }

  /** Finds a swap sooner than `observe()`, which has to follow. Only where synchronous calls are safe. */
  observeSwap(): Found | undefined {
    const before = this.#known() ?? this.#last;
    if (!this.#sync || !before || !isSmall(before)) return undefined;
    const effects = this.#target.observeSwap(before, this.#locality.local);
    const found = runSync(effects, this.#sync, sharedTurn.ask);
    if (found) this.#swapped = () => found;
    return found;
  }

  /** The same in so few calls that they may be made in the callback of an event. */
  readSwap(): Swap | undefined {
    if (!this.#sync || !this.#swapReader) return undefined;
    const swap = this.#swapReader.read(this.#sync);
    if (swap) {
      this.#swapped = swap.observation;
      this.#swappedLink = this.#swapReader.place;
      this.#swapReader = SPENT;
    }
    return swap;
  }

  /** Whether the target, as it was last observed, changes by swaps: then none of its files can be replaced. */
  get isSwapped(): boolean {
    return this.#swapReader !== undefined;
  }

  /** Reads a file of a directory or a tree that was replaced: see `Target.readReplacement`. */
  readReplacement(path: string): Replacement | undefined {
    return this.#sync && this.#target.readReplacement?.(path, this.#sync);
  }

  /** Whether an event about this path is that of a swap. */
  isSwap(path: string): boolean {
    return this.#swapReader?.place === path;
  }

  /** Whether an event about this path can matter to the target, as it was last observed. */
  isConcerned(path: string): boolean {
    return this.#swapReader?.concerns(path) ?? true;
  }

  /**
   * Something has happened at this absolute path, or anywhere. Next to the links of a volume it is about links, and shows
   * in them; anything else may be about the bytes that a swap has brought.
   */
  touch(path?: string): void {
    if (this.#swapped && !(path !== undefined && this.#isBesideLinks(path))) this.#swapped = undefined;
    this.#target.touch?.(path);
  }

  /** Reads as after a swap. */
  #rehearse(seen: Observation): void {
    if (isRehearsed || !this.#sync || !this.#swapReader) return;
    if (seen.kind !== 'found' || !isQuicklyRead(seen)) return;
    isRehearsed = true;
    for (let times = 0; times < REHEARSALS; times += 1) this.#swapReader.read(this.#sync, true);
  }

  /** Whether the key of a volume is as it was found; undefined for anything else. */
  #isKeyUnchanged(sync: FileSystemCalls): boolean | undefined {
    try {
      return this.#swapReader?.isUnchanged(sync, sharedTurn, this.#timestampMs);
    } catch {
      return false;
    }
  }

  /** What was read after a swap, as an observation, which is created once. */
  #known(): Found | undefined {
    const found = this.#swapped?.();
    if (found) this.#swapped = () => found;
    return found;
  }

  #isBesideLinks(path: string): boolean {
    return this.#swappedLink !== undefined && dirname(path) === dirname(this.#swappedLink);
  }

  /** Resolves the path without reading anything. */
  async resolve(): Promise<ResolvedChain> {
    if (this.#sync) {
      const chain = await runSliced(this.#target.resolve(this.#locality.local), this.#sync);
      if (chain.end.kind !== 'disallowed') return chain;
      this.#sync = undefined;
    }
    // The mount table says nothing about another file system than that of the process.
    if (this.#fs === nodeFileSystem && isEverythingLocal(this.#fs)) {
      const { sync } = nodeFileSystem;
      const chain = await runSliced(this.#target.resolve(), sync);
      runSync(this.#locality.classify(chain), sync);
      if (this.#locality.isLocal(chain)) this.#sync = sync;
      return chain;
    }
    const { fs } = await oneCallForEachRemoteMount(this.#fs);
    const chain = await runAsync(this.#target.resolve(), fs);
    await runAsync(this.#locality.classify(chain), fs);
    // Where anything remote is mounted only an observation knows of all: a file may be mounted into the directory.
    if (fs === this.#fs && this.#locality.isLocal(chain)) this.#sync = this.#fs.sync;
    return chain;
  }

  /** The name of a file system on the way that reports no events, if there is one. */
  silentFileSystem(chain: LinkChain): string | undefined {
    return this.#locality.silentFileSystem(chain);
  }

  async #observe(known: Found | undefined, now: number): Promise<Observation> {
    if (this.#sync) {
      const seen = await runSliced(
        this.#target.observe(known, this.#locality.local, { monotonic: now, timestampMs: this.#timestampMs }),
        this.#sync,
        sharedTurn.ask,
      );
      if (seen.kind !== 'disallowed') return seen;
      this.#sync = undefined;
    }
    const { fs } = await oneCallForEachRemoteMount(this.#fs);
    const seen = await runAsync(this.#target.observe(known, undefined, { monotonic: now }), fs);
    await runAsync(this.#locality.classify(seen.chain), fs);
    this.#sync = this.#locality.isLocal(seen.chain) ? this.#fs.sync : undefined;
    return seen;
  }

  /** Local file systems have the clock of this process; the clock of a custom `fs` is not known. */
  get #timestampMs(): number | undefined {
    return this.#fs === nodeFileSystem ? systemClock.now() : undefined;
  }

  /**
   * Remembers what was found, and whether its signatures can be trusted yet. Those of a revision are trusted at once:
   * nobody writes into it. Otherwise each of the six events of a swap, and the first resync, would read it once more.
   */
  #learn(found: Found, now: number): void {
    const isPublished = found.immutable === true || this.#isNewlyPublished(found);
    if (this.#last?.signature !== found.signature) {
      this.#since = now;
      this.#isTrusted = false;
    }
    this.#last = found;
    const isOld = now - this.#since >= COARSEST_TIMESTAMP_MS;
    this.#isTrusted ||= isOld || isPublished || found.remembered === true;
  }

  #forget(): void {
    this.#last = undefined;
    this.#isTrusted = false;
  }

  /** Whether it is a key of another revision than before. In the same one somebody has written into it. */
  #isNewlyPublished({ snapshot, chain }: Found): boolean {
    const isKey = snapshot.kind === 'file' && this.#swapReader !== undefined;
    return isKey && isRevisionName(chain.revision ?? '') && this.#last?.chain.links !== chain.links;
  }
}

/** Whether reading it several times takes about as long as one slice of a check. */
function isQuicklyRead({ files }: Found): boolean {
  if (files.size > MAX_REHEARSED_FILES) return false;
  return [...files.values()].every(({ snapshot }) => snapshot.size <= MAX_REHEARSED_BYTES);
}

/** Whether there are few enough files to check them in one stretch. */
function isSmall({ files }: Found): boolean {
  return files.size <= MAX_FILES_AT_ONCE;
}
