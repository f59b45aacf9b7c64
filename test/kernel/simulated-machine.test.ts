/**
 * The simulated machine against the kernel: the same random calls on both, made by root and by another user, give the
 * same answers, errors, files, timestamps (which of them change) and events. `test/simulation/machine/machine.ts` lists what it lacks.
 */
import fs, { chmodSync, mkdirSync, readdirSync, rmSync, watch, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { Scene, step, type State, type Side, type Step } from '../simulation/machine/compared.js';
import { Machine } from '../simulation/machine/machine.js';
import type { SimulatedFs } from '../simulation/machine/node-fs.js';

const isRoot = process.geteuid?.() === 0;

/** The kernel. @param directory for a file whose event tells that all events before it were received. */
function kernelSide(directory: string): Side & { readonly close: () => void } {
  let number = 0;
  let resolve: (() => void) | undefined;
  const sentinel = watch(directory, (_, name) => name === `${number}` && resolve?.());
  return {
    as(user, make) {
      if (!isRoot || user === 0) return make(fs as unknown as SimulatedFs);
      process.setegid?.(user);
      process.seteuid?.(user);
      try {
        return make(fs as unknown as SimulatedFs);
      } finally {
        process.seteuid?.(0);
        process.setegid?.(0);
      }
    },
    async drain() {
      number += 1;
      const received = new Promise<void>((done) => (resolve = done));
      writeFileSync(`${directory}/${number}`, '');
      await received;
    },
    close: () => sentinel.close(),
  };
}

function simulated(base: string): Side {
  const machine = new Machine({ random: () => 0, tickMs: 0, now: () => 1_700_000_000_000 });
  const root = machine.process({ umask: 0 });
  const own = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  for (const path of pathsTo(base)) {
    root.fs.mkdirSync(path, 0o777);
    root.fs.chownSync(path, own.uid, own.gid);
  }
  const tested = machine.process(own);
  return {
    as(user, make) {
      Object.assign(tested, user === 0 || !isRoot ? own : { uid: user, gid: user });
      return make(tested.fs);
    },
    drain: () => Promise.resolve(void tested.deliver()),
  };
}

function pathsTo(path: string): string[] {
  return path === '/' ? [] : [...pathsTo(dirname(path)), path];
}

/** @param isPatient whether the clock of timestamps, which ticks every 10 ms at most, ticks between two calls. */
async function compare(
  steps: readonly Step[],
  directory: string,
  real: Side,
  isPatient: boolean,
): Promise<void> {
  // What leads to a parent of the base must not leave this directory.
  const base = `${directory}/1/2/3/base`;
  const umask = process.umask(0);
  mkdirSync(base, { recursive: true });
  process.umask(umask);
  const kernel = new Scene(real, base);
  const machine = new Scene(simulated(base), base);
  try {
    // While the test waits, events are received.
    const all = isPatient ? steps.flatMap((each) => [each, EVENTS]) : [...steps, EVENTS];
    for (const [index, each] of all.entries()) {
      if (isPatient) await new Promise((resolve) => setTimeout(resolve, 6));
      const what = `step ${index}, ${each.call}`;
      const expected = await kernel.make(each);
      expect(await machine.make(each), what).toEqual(expected);
      const [wanted, found] = [kernel.state(), machine.state()];
      if (!isPatient) for (const [path, state] of wanted) excuse(state, found.get(path));
      expect(found, `after ${what}`).toEqual(wanted);
    }
  } finally {
    kernel.close();
    await real.drain();
    if (!isRoot) makeRemovable(directory);
    rmSync(directory, { recursive: true });
  }
}

/** A user may not look into directories without permissions. */
function makeRemovable(directory: string): void {
  chmodSync(directory, 0o700);
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) makeRemovable(`${directory}/${entry.name}`);
}

/** Within one tick, timestamps of the kernel may stay the same. */
function excuse(kernel: State, machine: State | undefined): void {
  if (machine && !kernel.isTouched) machine.isTouched = false;
  if (machine && !kernel.isChanged) machine.isChanged = false;
}

const EVENTS: Step = { call: 'events', user: 0, args: [] };

const groups = process.getgroups?.() ?? [];
let umask: number;
beforeAll(() => {
  umask = process.umask(0o022);
  if (isRoot) process.setgroups?.([]);
});
afterAll(() => {
  process.umask(umask);
  if (isRoot) process.setgroups?.(groups);
});

// Side by side, because one of the two mostly waits.
describe.concurrent('the simulated machine', { skip: process.platform !== 'linux' }, () => {
  test.each([
    ['answers, fails and reports events', false, rounds(200, 2_000)],
    ['changes timestamps', true, rounds(5, 80)],
  ])('%s like the kernel', async (_what, isPatient, numRuns) => {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o711);
    mkdirSync(`${directory}/events`);
    const real = kernelSide(`${directory}/events`);
    let number = 0;
    const steps = fc.array(step, { maxLength: 60, size: 'max' });
    const property = fc.asyncProperty(steps, (given) =>
      compare(given, `${directory}/${(number += 1)}`, real, isPatient),
    );
    try {
      await fc.assert(property, { seed: 1, numRuns });
    } finally {
      real.close();
    }
  });
});
