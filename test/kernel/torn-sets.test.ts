/** Sets are of one revision, whatever another process does meanwhile; the naive reader shows what is at stake. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import fc from 'fast-check';
import { readVolume, ResilientWatcher, type Clock, type Snapshot } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { systemClock } from '../../src/core/ports/clock.js';
import { linuxOnly } from '../support/namespace.js';
import { Program, scriptPath } from '../support/program.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { isSealed, seal } from './programs/sealed.mjs';

linuxOnly();

/** What the files hold, each once: a single text for a set of one revision. */
function textsOf({ files }: Pick<Snapshot, 'files'>): Set<string> {
  return new Set([...files.values()].map(({ content }) => String(content)));
}

/** Waits for a publisher however long that has to wait for a CPU in the middle of a swap. */
const patient: Clock = { ...systemClock, monotonic: () => 0 };

/** One file after the other, as programs do. */
async function readNaively(paths: readonly string[]): Promise<Set<string>> {
  const texts = new Set<string>();
  for (const path of paths) texts.add(await readFile(path, 'utf8').catch(() => 'missing'));
  return texts;
}

test.each([
  { program: 'publish', swaps: rounds(30, 1_000) },
  // Thousands a second: nothing is written but the link.
  { program: 'flip', swaps: rounds(200, 6_000) },
])(
  'every set that is reported is of one revision, while another process does $swaps swaps ($program)',
  async ({ program, swaps }) => {
    const script = `test/kernel/programs/${program}.mjs`;
    // Without a build this fails here, and not as a counterexample that is shrunk for minutes.
    scriptPath(script);
    let naiveReads = 0;
    let naiveTorn = 0;
    const rates: string[] = [];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('rename' as const, 'remove' as const),
        fc.uniqueArray(fc.constantFrom('tls.crt', 'tls.key', 'ca.crt', 'conf.d/a', 'conf.d/b'), {
          minLength: 2,
        }),
        fc.boolean(),
        async (swap, keys, asGroup) => {
          const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
          volume.publish(Object.fromEntries(keys.map((key) => [key, seal(0)])));
          const paths = keys.map((key) => volume.path(key));
          const watcher = new ResilientWatcher(asGroup ? paths : volume.directory, {
            backend: 'fs',
            missingGraceMs: 600_000,
          });
          const torn: unknown[] = [];
          const judge = (set: Pick<Snapshot, 'files'>): void => {
            const texts = textsOf(set);
            if (set.files.size !== keys.length || texts.size !== 1 || ![...texts].every(isSealed))
              torn.push([set.files.size, ...texts].map((text) => String(text).slice(0, 8)));
          };
          let sets = 0;
          let wake = (): void => undefined;
          watcher.on('change', ({ current }) => {
            sets += 1;
            judge(current);
            wake();
          });
          await watcher.start();

          const publisher = new Program(script, [
            volume.directory,
            JSON.stringify({ swap }),
            '1',
            String(swaps),
            ...keys,
          ]);
          publisher.child.stdout.on('data', (rate) => rates.push(String(rate).trim()));
          while (publisher.child.exitCode === null) {
            if ((await readNaively(paths)).size > 1) naiveTorn += 1;
            naiveReads += 1;
            judge(await readVolume(volume.directory, { clock: patient }));
          }
          while (!watcher.current || !textsOf(watcher.current).has(seal(swaps))) {
            await new Promise<void>((resolve) => (wake = resolve));
          }
          await watcher.close();
          expect(await publisher.exit).toBe(0);
          expect(torn).toEqual([]);
          expect(sets).toBeGreaterThan(1);
        },
      ),
      { numRuns: rounds(2, 4) },
    );
    const pace = rates.length > 0 ? ` at ${rates.join(', ')} swaps a second` : '';
    console.info(`naive reader: ${naiveTorn} of ${naiveReads} sets torn${pace}; reported: none`);
  },
);
