/** Any sequence of sets, in any layout, with a crash after any step. */
import fs from 'node:fs';
import { join } from 'node:path';

import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { KubeletVolume, type KubeletVolumeOptions } from 'resilient-watcher/testing';

import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { volumeAt, read, readRevision, hidden } from './described-volume.js';

let home: string;

beforeEach(() => {
  home = temporaryDirectory();
});

const contents = fc.constantFrom('', 'x', 'y', 'longer');

const nested = fc.dictionary(fc.constantFrom('x', 'y', 'e/z'), contents, { maxKeys: 3 });

/** Sets of files; `d` is now a file, now a directory. */
const fileSets = fc
  .record({
    top: fc.dictionary(fc.constantFrom('a', 'b', '.c'), contents, { maxKeys: 3 }),
    d: fc.oneof(contents, nested),
  })
  .map(({ top, d }): Record<string, string> => {
    if (typeof d === 'string') return { ...top, d };
    return { ...top, ...Object.fromEntries(Object.entries(d).map(([key, text]) => [`d/${key}`, text])) };
  });

const shapes = fc.record({
  swap: fc.constantFrom('rename' as const, 'remove' as const),
  links: fc.constantFrom('after' as const, 'before' as const),
});

let runs = 0;

const freshVolume = (options: KubeletVolumeOptions): KubeletVolume =>
  volumeAt(join(home, String((runs += 1))), options);

describe('whatever is published', () => {
  test('the keys read as the set, nothing stale stays, and ..data is whole at every step', () => {
    fc.assert(
      fc.property(shapes, fc.array(fileSets, { minLength: 1, maxLength: 5 }), (shape, sets) => {
        const volume = freshVolume(shape);
        let old: Record<string, string> | undefined;
        for (const files of sets) {
          const possible = shape.swap === 'rename' && old ? [old, files] : [old, files, undefined];
          const update = volume.steps(files);
          while (!update.next().done) expect(possible).toContainEqual(readRevision(volume));
          expect(readRevision(volume)).toEqual(files);
          expect(read(volume.directory)).toEqual(files);
          expect(hidden(volume)).toEqual([volume.revision, '..data']);
          old = files;
        }
      }),
      { numRuns: rounds(30, 100) },
    );
  });

  test('a crash after any step is got over by the next publish, once a stale ..data_tmp is removed', () => {
    fc.assert(
      fc.property(shapes, fileSets, fileSets, fileSets, (shape, published, crashed, next) => {
        for (let crashAt = 1; ; crashAt += 1) {
          const volume = freshVolume(shape);
          volume.publish(published);
          const update = volume.steps(crashed);
          for (let step = 1; step < crashAt; step += 1) update.next();
          if (update.next().done) break; // it came to its end
          update.return(undefined as never); // what `break` does in a loop
          fs.rmSync(volume.path('..data_tmp'), { force: true });

          const restarted = new KubeletVolume(volume.directory, shape);
          restarted.publish(next);
          expect(readRevision(restarted)).toEqual(next);
          expect(read(restarted.directory)).toEqual(next);
          expect(restarted.publish(next).changed).toBe(false);
        }
      }),
      { numRuns: rounds(3, 15) }, // times some twenty steps each
    );
  });
});
