/**
 * The one idea, as a property: an event is a hint, the disk is the truth. Whatever hints are lost, doubled or
 * late, after one resync tick the last report equals the disk.
 */
import nodeFs, { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import fc from 'fast-check';
import { ResilientWatcher, type Snapshot } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { Answers } from '../../src/fs/answers.js';
import { Disk } from '../../src/fs/disk.js';
import { Mounts } from '../../src/fs/mounts.js';
import { targetAt } from '../../src/fs/targets/target-at.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const RESYNC_MS = 5_000;

const LIMITS = { maxContentBytes: 1_048_576, maxTotalBytes: 1_048_576, maxFiles: 100 };

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

/** What is watched, by name. */
const TARGETS = {
  'a key': (volume: KubeletVolume) => volume.path('key'),
  'a volume': (volume: KubeletVolume) => volume.directory,
  'a group of keys': (volume: KubeletVolume) => [volume.path('key'), volume.path('second')],
};

/** The contents as text. Of the paths of a group, which differ in each run, only the last name. */
function textOf(snapshot: Snapshot | undefined): string {
  if (!snapshot || snapshot.kind === 'missing') return '(missing)';
  if (snapshot.kind === 'file') return String(snapshot.content);
  return JSON.stringify([...snapshot.files].map(([key, { content }]) => [basename(key), String(content)]));
}

const kinds = Object.keys(TARGETS) as (keyof typeof TARGETS)[];

test.each(kinds)(
  '%s: after one resync tick the last report equals the disk, two reports differ, each existed whole',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(fc.array(moves, { minLength: 1, maxLength: 25 }), async (script) => {
        const root = temporaryDirectory();
        const parent = join(root, 'parent');
        const volume = new KubeletVolume(join(parent, 'volume'));
        const path = volume.path('key');
        const clock = new FakeClock();
        const backend = new ScriptedBackend();
        const watcher = new ResilientWatcher(TARGETS[kind](volume), {
          clock,
          backend,
          resyncIntervalMs: RESYNC_MS,
          pollIntervalMs: 60_000,
        });
        const existed = new Set<string>(['(missing)']);
        // A fresh observation, which knows nothing of hints and of what was reported.
        const onDisk = (): string => {
          const disk = new Disk(nodeFs, Mounts.of(nodeFs, Infinity), new Answers());
          const look = targetAt(TARGETS[kind](volume), LIMITS).look('all', 0, disk);
          let step = look.next();
          // There is nothing to wait for but the next turn.
          while (!step.done) step = look.next();
          const seen = step.value;
          return textOf(seen.kind === 'found' ? seen.snapshot : undefined);
        };
        const reported: string[] = [];
        const loose = new Set<string>();
        watcher.on('change', ({ current }) => {
          reported.push(textOf(current));
          // There each file stands for itself.
          if (current.kind === 'directory') loose.add(textOf(current));
        });
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
                  second: move.text,
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
        // One tick, and the time that what it finds may be pending.
        await clock.advance(RESYNC_MS);
        await watcher.idle();
        await clock.advance(600);
        await watcher.idle();
        const last = textOf(watcher.current);
        const atTheEnd = onDisk();
        const checks = watcher.status().checks;
        await watcher.close();

        expect(last).toBe(atTheEnd);
        expect(checks).toBeGreaterThan(0);
        expect(reported.at(-1) ?? '(missing)').toBe(last);
        for (const [index, content] of reported.entries()) {
          expect(content).not.toBe(reported[index - 1]);
          if (!loose.has(content)) expect(existed).toContain(content);
        }
      }),
      { numRuns: kind === 'a key' ? rounds(20, 300) : rounds(10, 150) },
    );
  },
);
