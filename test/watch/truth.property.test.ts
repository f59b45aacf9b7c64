/**
 * The one idea, as a property: an event is a hint, the disk is the truth. Whatever hints are lost, doubled or
 * late, after one resync tick the last report equals the disk.
 */
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import fc from 'fast-check';
import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const RESYNC_MS = 5_000;

/** Something that happens to the target, or to the watcher. */
const moves = fc.oneof(
  fc.record({
    do: fc.constant('publish' as const),
    text: fc.constantFrom('a', 'b', 'c', ''),
    shape: fc.constantFrom('rename' as const, 'remove' as const),
  }),
  // Stops after so many steps: a crash, or the middle of an update.
  fc.record({
    do: fc.constant('publish in part' as const),
    text: fc.constantFrom('x', 'y'),
    steps: fc.nat(12),
  }),
  fc.record({
    do: fc.constantFrom('write in place' as const, 'append' as const, 'replace by rename' as const),
    text: fc.constantFrom('a', 'b', 'longer text'),
  }),
  fc.record({
    do: fc.constantFrom(
      'remove the volume' as const,
      'rename the parent' as const,
      'plain directory' as const,
    ),
  }),
  // About an entry of the volume's directory, now or before the last check has begun: the swap is answered at once.
  fc.record({
    do: fc.constantFrom('hint about' as const, 'turn and hint about' as const),
    name: fc.constantFrom('..data', '..data_tmp', 'key', '..2020_01_01_00_00_00.1', '.'),
  }),
  fc.record({
    do: fc.constantFrom('hint' as const, 'two hints' as const, 'check' as const, 'lose the backend' as const),
  }),
  fc.record({ do: fc.constant('time passes' as const), ms: fc.constantFrom(1, 20, 60, 600) }),
);

test('after one resync tick the last report equals the disk, two reports differ, each existed whole', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(moves, { minLength: 1, maxLength: 25 }), async (script) => {
      const root = temporaryDirectory();
      const parent = join(root, 'parent');
      const volume = new KubeletVolume(join(parent, 'volume'));
      const path = volume.path('key');
      const clock = new FakeClock();
      const backend = new ScriptedBackend();
      const watcher = new ResilientWatcher(path, {
        clock,
        backend,
        resyncIntervalMs: RESYNC_MS,
        pollIntervalMs: 60_000,
      });
      const existed = new Set<string>(['(missing)']);
      const onDisk = (): string => {
        try {
          return readFileSync(path, 'utf8');
        } catch {
          return '(missing)';
        }
      };
      const reported: string[] = [];
      watcher.on('change', ({ current }) => reported.push(current.content?.toString() ?? '(missing)'));
      watcher.on('error', () => undefined);
      await watcher.start();

      let moved = 0;
      for (const move of script) {
        switch (move.do) {
          case 'publish':
          case 'publish in part': {
            mkdirSync(parent, { recursive: true });
            rmSync(volume.path('..data_tmp'), { force: true });
            const shape = move.do === 'publish' ? move.shape : 'rename';
            let left = move.do === 'publish' ? Infinity : move.steps;
            try {
              for (const _ of new KubeletVolume(volume.directory, { swap: shape }).steps({
                key: move.text,
              })) {
                existed.add(onDisk());
                if ((left -= 1) < 0) break;
              }
            } catch (error) {
              // A plain directory in the volume's place, or what a crash left, may be in kubelet's way.
              expect(['EEXIST', 'EINVAL', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY']).toContain(
                (error as { code?: string }).code,
              );
            }
            break;
          }
          case 'write in place':
          case 'append':
          case 'replace by rename':
            try {
              if (move.do === 'write in place') writeFileSync(path, move.text);
              else if (move.do === 'append') appendFileSync(path, move.text);
              else {
                writeFileSync(join(dirname(path), '.swap'), move.text);
                renameSync(join(dirname(path), '.swap'), path);
              }
            } catch (error) {
              expect((error as { code?: string }).code).toBe('ENOENT');
            }
            break;
          case 'remove the volume':
            volume.remove();
            break;
          case 'rename the parent':
            try {
              renameSync(parent, join(root, `old-${(moved += 1)}`));
            } catch (error) {
              expect((error as { code?: string }).code).toBe('ENOENT');
            }
            break;
          case 'plain directory':
            volume.remove();
            mkdirSync(volume.directory, { recursive: true });
            writeFileSync(path, 'plain');
            break;
          case 'two hints':
            backend.hint();
            backend.hint();
            break;
          case 'turn and hint about':
            await watcher.idle();
            backend.hint(join(volume.directory, move.name));
            break;
          case 'hint about':
            backend.hint(join(volume.directory, move.name));
            break;
          case 'hint':
            backend.hint();
            break;
          case 'check':
            await watcher.check();
            break;
          case 'lose the backend':
            backend.fail();
            break;
          case 'time passes':
            await clock.advance(move.ms);
            await watcher.idle();
            break;
        }
        existed.add(onDisk());
      }

      await watcher.idle();
      // One tick, and the time that what it finds may be pendingPaths.
      await clock.advance(RESYNC_MS);
      await watcher.idle();
      await clock.advance(600);
      await watcher.idle();
      const last = watcher.current?.content?.toString() ?? '(missing)';
      const looks = watcher.status().checks;
      await watcher.close();

      expect(last).toBe(onDisk());
      expect(looks).toBeGreaterThan(0);
      expect(reported.at(-1) ?? '(missing)').toBe(last);
      for (const [index, content] of reported.entries()) {
        expect(content).not.toBe(reported[index - 1]);
        expect(existed).toContain(content);
      }
    }),
    { numRuns: 300 },
  );
});
