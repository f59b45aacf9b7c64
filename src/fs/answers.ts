import type { BigIntStats, Dirent } from 'node:fs';

import { onNextTurn } from '../core/event-loop.js';
import type { ReadingCalls } from './calls.js';

/** Answers of the disk by path. */
export interface Answers {
  readonly lstat: Map<string, BigIntStats>;
  readonly readlink: Map<string, string>;
  readonly list: Map<string, readonly Dirent[]>;
}

/** By event and file system. */
const shared = new Map<object, Map<ReadingCalls, Answers>>();

/**
 * Answers that the looks of one event share: a thousand watchers resolve their common path once. Each new event, tick and
 * call of a user begins without answers.
 * @param event any object that stands for the event. It counts for one turn of the event loop, so that a backend that gives
 * the same object for every event hides no change.
 */
export function answersOf(event: object, fs: ReadingCalls): Answers {
  let known = shared.get(event);
  if (!known) {
    shared.set(event, (known = new Map<ReadingCalls, Answers>()));
    onNextTurn(() => shared.delete(event));
  }
  let answers = known.get(fs);
  if (!answers) known.set(fs, (answers = noAnswers()));
  return answers;
}

export function noAnswers(): Answers {
  return { lstat: new Map(), readlink: new Map(), list: new Map() };
}
