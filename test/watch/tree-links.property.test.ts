/**
 * A tree with links to directories outside of it that overlap: what it shows depends on the disk alone, if it is told of
 * what it listens to and of nothing else.
 */
import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import fc from 'fast-check';
import { expect, test } from 'vitest';

import { rounds } from '../support/rounds.js';
import { ScriptedScene } from '../support/scripted-scene.js';

const inside = fc.constantFrom('tree/a', 'tree/b', 'tree/d', 'tree/d/a', 'tree/d/e', 'tree/z');
const outside = fc.constantFrom('out', 'out/p', 'out/p/q', 'out/p/q/r', 'out/p/u', 'out/s');
const anywhere = fc.oneof(inside, outside);

const moves = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('link' as const), path: inside, to: anywhere }) },
  fc.record({ do: fc.constantFrom('remove' as const, 'make directory' as const), path: anywhere }),
  fc.record({ do: fc.constant('write' as const), path: anywhere, to: fc.constantFrom('f', 'g') }),
  fc.record({ do: fc.constant('time passes' as const), path: fc.constant('tree') }),
);

/** Tells the scene of an entry, as the kernel does: by its path without links, and only where it listens. */
function tell({ backend }: ScriptedScene, path: string): void {
  const directory = realpathSync(dirname(path));
  const entry = basename(path);
  const listened = backend.directories.find((each) => each.path === directory);
  const isHeard = listened && (!listened.entries || listened.entries.includes(entry));
  if (isHeard) backend.hint(join(directory, entry));
}

test('links to overlapping directories: the last report is what one sees who remembers nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(moves, { minLength: 1, maxLength: 14 }), async (script) => {
      const scene = new ScriptedScene();
      for (const directory of ['tree', 'out/p/q/r', 'out/s'])
        mkdirSync(scene.at(directory), { recursive: true });
      for (const directory of ['out/p', 'out/p/q', 'out/p/q/r', 'out/s']) {
        writeFileSync(scene.at(`${directory}/f`), '');
      }
      const options = { recursive: { followLinks: true }, missingGraceMs: 0, settleMs: 0 };
      await scene.watch(scene.at('tree'), options);
      for (const move of script) {
        let path = scene.at(move.path);
        try {
          if (move.do === 'link') symlinkSync(scene.at(move.to), path);
          else if (move.do === 'remove') rmSync(path, { recursive: true });
          else if (move.do === 'make directory') mkdirSync(path);
          else if (move.do === 'write') writeFileSync((path = join(path, move.to)), '');
          else await scene.clock.advance(3_000);
          tell(scene, path);
        } catch {
          continue;
        }
        await scene.pass(100);
      }
      const keys = [...(scene.watcher.current?.files.keys() ?? [])].sort();
      const disk = await scene.watcher.snapshot();
      await scene.watcher.close();
      expect(keys).toEqual([...disk.files.keys()].sort());
    }),
    { numRuns: rounds(60, 2_000) },
  );
});
