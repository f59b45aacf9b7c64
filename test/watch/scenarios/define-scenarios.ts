import { mkdirSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import { openScene, type SceneKind } from '../../support/open-scene.js';
import { some } from '../../support/rounds.js';
import type { Scene } from '../../support/scene.js';
import { fileScenarios, fileScenariosInFakeTime } from './file-scenarios.js';
import { setScenarios, setScenariosInFakeTime } from './set-scenarios.js';
import { requirements, subjects } from './subjects.js';

/**
 * Defines a test for each scenario: what a watcher must report on real files, with each source of hints. With `fs` and
 * `parcel` there is no resync, so that what is reported, a native event led to. In `npm test` one of every `share` scenarios.
 */
export function defineScenarios(kind: SceneKind, share = 1): void {
  const isFake = kind === 'scripted' || kind === 'poll';
  const scenarios = {
    ...fileScenarios,
    ...setScenarios,
    ...(isFake && fileScenariosInFakeTime),
    ...(isFake && setScenariosInFakeTime),
  };
  test.each(some(Object.entries(scenarios), share))('%s', async (_, scenario) => {
    const scene = openScene(kind);
    await scenario(scene);
    expectOnlyTargetErrors(scene);
  });
}

/**
 * Defines a test for each requirement on each kind of target with several files. In `npm test` a requirement is put to one
 * of every `share` targets.
 */
export function defineRequirements(kind: SceneKind, share = 1): void {
  const cases = Object.entries(subjects).map(([name, makeSubject], index) => ({
    name,
    makeSubject,
    required: some(Object.entries(requirements), share, index),
  }));
  describe.each(cases)('$name', ({ makeSubject, required }) => {
    test.each(required)('%s', async (_name, requirement) => {
      const scene = openScene(kind);
      const workshop = scene.at('workshop');
      mkdirSync(workshop);
      const directory = scene.at('run/pod/it');
      const subject = makeSubject(directory, workshop);
      await requirement(scene, {
        ...subject,
        directory,
        at: (elsewhere) => makeSubject(elsewhere, workshop),
        watch: (options) => scene.watch(subject.target, { ...subject.options, ...options }),
        reports: (version) =>
          subject.piecewise ? scene.comesTo(subject.text(version)) : scene.reports(subject.text(version)),
      });
      expectOnlyTargetErrors(scene);
    });
  });
}

function expectOnlyTargetErrors({ errors }: Scene): void {
  expect(errors.filter(({ name }) => name !== 'TargetError')).toEqual([]);
}
