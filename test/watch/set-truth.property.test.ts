/**
 * The one idea for many files: whatever hints about a directory or a tree are lost, doubled, misleading or late, after
 * one resync tick the last report equals the disk. (Of more files than a resync verifies, see fs/large-sets.test.ts.)
 */
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import fc from 'fast-check';
import { ResilientWatcher, type Snapshot } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const RESYNC_MS = 5_000;

const NAMES = ['a', 'b', 'sub', 'sub/a', 'sub/b', 'sub/deep', 'sub/deep/a', 'volume', 'link', '.'];

const name = fc.constantFrom(...NAMES);

const moves = fc.oneof(
  fc.record({ do: fc.constant('write' as const), name, text: fc.constantFrom('1', '2', 'longer') }),
  fc.record({
    do: fc.constant('replace' as const),
    name,
    text: fc.constantFrom('1', '2', 'longer'),
    isHinted: fc.boolean(),
  }),
  fc.record({ do: fc.constant('move' as const), name, to: name }),
  fc.record({ do: fc.constant('link' as const), name, to: name }),
  fc.record({ do: fc.constantFrom('remove' as const, 'make directory' as const, 'chmod' as const), name }),
  fc.record({ do: fc.constant('publish' as const), text: fc.constantFrom('1', '2') }),
  fc.record({ do: fc.constant('hint about' as const), name }),
  fc.record({ do: fc.constantFrom('hint' as const, 'check' as const, 'resync' as const, 'turn' as const) }),
  fc.record({ do: fc.constant('time passes' as const), ms: fc.constantFrom(1, 60, 600, 3_000) }),
);

/** The kind and the contents; the order of a tree and the links by which a file is reached make no difference. */
function shown({ kind, files }: Snapshot): unknown {
  const texts = [...files].map(([key, { content }]) => `${key}: ${String(content)}`);
  return [kind, ...(kind === 'tree' ? texts.sort() : texts)];
}

test.each([
  { kind: 'directory', recursive: false },
  { kind: 'tree', recursive: true },
])('after one resync tick the last report of a $kind equals the disk', async ({ recursive }) => {
  await fc.assert(
    fc.asyncProperty(fc.array(moves, { minLength: 1, maxLength: 25 }), async (script) => {
      const base = temporaryDirectory();
      const root = join(base, 'root');
      mkdirSync(join(root, 'sub'), { recursive: true });
      writeFileSync(join(root, 'a'), 'first');
      writeFileSync(join(root, 'sub/a'), 'first');
      const clock = new FakeClock();
      const backend = new ScriptedBackend();
      const watcher = new ResilientWatcher(root, {
        clock,
        backend,
        recursive,
        resyncIntervalMs: RESYNC_MS,
      });
      watcher.on('error', () => undefined);
      await watcher.start();

      const act: Partial<Record<(typeof script)[number]['do'], (move: never) => unknown>> = {
        write: ({ name, text }: { name: string; text: string }) => writeFileSync(join(root, name), text),
        replace: ({ name, text, isHinted }: { name: string; text: string; isHinted: boolean }) => {
          writeFileSync(join(base, 'next'), text);
          renameSync(join(base, 'next'), join(root, name));
          if (isHinted) backend.hint(join(root, name));
        },
        move: ({ name, to }: { name: string; to: string }) => renameSync(join(root, name), join(root, to)),
        link: ({ name, to }: { name: string; to: string }) =>
          symlinkSync(join(root, to), join(root, dirname(name), 'link')),
        remove: ({ name }: { name: string }) => rmSync(join(root, name), { recursive: true }),
        'make directory': ({ name }: { name: string }) => mkdirSync(join(root, name), { recursive: true }),
        chmod: ({ name }: { name: string }) => chmodSync(join(root, name), 0o755),
        publish: ({ text }: { text: string }) =>
          new KubeletVolume(join(root, 'volume')).publish({ key: text, 'more/key': text }),
        'hint about': ({ name }: { name: string }) => backend.hint(join(root, name)),
        hint: () => backend.hint(),
        check: () => watcher.check(),
        resync: () => clock.advance(RESYNC_MS),
        turn: () => watcher.idle(),
        'time passes': ({ ms }: { ms: number }) => clock.advance(ms),
      };
      for (const move of script) {
        try {
          await act[move.do]?.(move as never);
        } catch (error) {
          // It cannot be done here, and nothing was.
          expect((error as { code?: string }).code).toBeDefined();
        }
      }

      await watcher.idle();
      await clock.advance(RESYNC_MS);
      await watcher.idle();
      // What the tick finds may be pending, and for that another check is made.
      for (let wait = 0; wait < 12; wait += 1) {
        await clock.advance(100);
        await watcher.idle();
      }
      const { target } = watcher.status();
      const last = watcher.current;
      await watcher.close();
      // Read whole, in real time, by something that remembers nothing.
      const disk = await new ResilientWatcher(root, { recursive }).snapshot().catch(() => undefined);
      if (disk) expect(last && shown(last)).toEqual(shown(disk));
      else expect(target).toBe('unreadable');
    }),
    { numRuns: rounds(12, 300) },
  );
});
