import type { BigIntStats, Dirent } from 'node:fs';

import type { ReadingCalls } from './calls.js';

/**
 * Answers of the disk that the looks of one event share: a thousand watchers resolve their common path once, and the
 * keys of a group come from one instant. Each new event, tick and call of a user begins without answers.
 */
export class Answers {
  readonly #known = new WeakMap<ReadingCalls, KnownAnswers>();

  /** The answers of one file system. */
  of(fs: ReadingCalls): KnownAnswers {
    let known = this.#known.get(fs);
    if (!known) this.#known.set(fs, (known = { lstat: new Map(), readlink: new Map(), list: new Map() }));
    return known;
  }
}

/** By path. */
export interface KnownAnswers {
  readonly lstat: Map<string, BigIntStats>;
  readonly readlink: Map<string, string>;
  readonly list: Map<string, readonly Dirent[]>;
}
