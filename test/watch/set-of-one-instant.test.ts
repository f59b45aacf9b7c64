/**
 * A set of files is of one instant, whenever a swap comes. Beside the simulation, which has not found yet that a volume is
 * not proven to be of one revision.
 */
import { renameSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { KubeletVolume, type VolumeStep } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { faultyFileSystem } from '../support/faulty-file-system.js';
import { rounds } from '../support/rounds.js';
import { ScriptedScene } from '../support/scripted-scene.js';

describe('a set is of one instant', () => {
  /** Replaces a file, at once and visibly complete. */
  function place(file: string, text: string): void {
    writeFileSync(`${file}.next`, text);
    utimesSync(`${file}.next`, 1, 1);
    renameSync(`${file}.next`, file);
  }

  const isOneVersion = (files: Record<string, string>): boolean => new Set(Object.values(files)).size === 1;

  /** What is watched below a root, how it goes from version to version, and whether files were there at an instant. */
  interface Case {
    target(root: string): string | string[];
    /** Each step is one change of the disk. */
    publish(root: string, version: string): Iterator<unknown>;
    /** The steps that nobody sees. */
    prepare?(steps: Iterator<unknown>): void;
    wasThere(files: Record<string, string>): boolean;
  }

  const cases: Record<string, Case> = {};
  for (const swap of ['rename', 'remove'] as const) {
    const publish = (root: string, version: string): Iterator<unknown> =>
      new KubeletVolume(join(root, 'v'), { swap }).steps({ a: version, b: version, 'c/d': version });
    const prepare = (steps: Iterator<unknown>): void => {
      while ((steps.next().value as VolumeStep).name !== 'symlink');
    };
    cases[`a volume swapped by ${swap}`] = {
      prepare,
      target: (root) => join(root, 'v'),
      publish,
      wasThere: (files) => isOneVersion(files) && Object.keys(files).length === 3,
    };
    cases[`a group swapped by ${swap}`] = {
      prepare,
      target: (root) => ['a', 'b'].map((key) => join(root, 'v', key)),
      publish,
      wasThere: (files) => isOneVersion(files) && Object.keys(files).length === 2,
    };
  }
  cases['a group of files, one of which comes before the other is replaced'] = {
    target: (root) => [join(root, 'x'), join(root, 'y')],
    *publish(root, version) {
      for (const name of version === '3' ? ['x', 'y'] : ['y']) {
        place(join(root, name), version);
        yield name;
      }
    },
    wasThere: ({ x, y }) => x === '3' || (x === undefined && y !== '3'),
  };

  // Three steps: the swap, and the first two files of the old revision are gone.
  const paces = [1, 2, 3];
  const paced = Object.entries(cases).flatMap(([name, set]) =>
    paces.map((pace) => [name, pace, set] as const),
  );

  test.each(paced)(
    '%s, and again during a check, from any of its calls on, %i at once',
    async (_, pace, set) => {
      const short = (files: Record<string, string>): Record<string, string> =>
        Object.fromEntries(Object.entries(files).map(([key, text]) => [basename(key), text]));
      const finish = (steps: Iterator<unknown>): void => {
        while (!steps.next().done);
      };
      // In `npm test` each call is the first one of one pace.
      const step = rounds(paces.length, 1);
      for (let at = step === 1 ? 1 : pace, reached = true; reached; at += step) {
        const scene = new ScriptedScene();
        let calls = -Infinity;
        let steps: Iterator<unknown> = [].values();
        const fs = faultyFileSystem(() => {
          calls += 1;
          if (calls === at) for (let step = 0; step < pace; step += 1) steps.next();
          // The rest comes after the check, or one with each of its calls.
          else if (calls > at && pace === 1) steps.next();
        });
        finish(set.publish(scene.root, '1'));
        await scene.watch(set.target(scene.root), { fs });
        finish(set.publish(scene.root, '2'));
        steps = set.publish(scene.root, '3');
        set.prepare?.(steps);
        calls = 0;
        await scene.hint();
        reached = calls >= at;
        calls = -Infinity;
        if (reached) finish(steps);
        await scene.settle();
        const reported = scene.takeChanges().map(({ files }) => short(files));
        expect(
          reported.filter((files) => !set.wasThere(files)),
          `at call ${at}`,
        ).toEqual([]);
        expect(Object.values(reported.at(-1) ?? {})).toContain(reached ? '3' : '2');
        await scene.watcher.close();
      }
    },
  );
});
