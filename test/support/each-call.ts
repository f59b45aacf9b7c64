/** Something that happens at one call of a check, whichever call it is. */
import type { FileSystem } from 'resilient-watcher';

import { rounds } from './rounds.js';
import type { SceneOptions } from './scene.js';
import { ScriptedScene } from './scripted-scene.js';

interface EachCall {
  /** Creates what is watched, and returns the paths; several for a group. */
  readonly prepare: (scene: ScriptedScene) => readonly string[];
  /** A file system that asks at each call whether it is the one. */
  readonly fs: (isTheOne: () => boolean, scene: ScriptedScene) => FileSystem;
  readonly options?: SceneOptions | undefined;
  /** Changes something before the check. */
  readonly change?: (scene: ScriptedScene) => void;
  /** After the check, and one that follows. `isReached`: whether the check made that call. */
  readonly verify: (scene: ScriptedScene, call: { readonly at: number; readonly isReached: boolean }) => void;
}

/** Checks once for each call that the check makes, in a scene of its own, and verifies what was reported. */
export async function forEachCallOfCheck({ prepare, fs, options, change, verify }: EachCall): Promise<void> {
  const step = rounds(3, 1);
  for (let at = 1, isReached = true; isReached; at += step) {
    const scene = new ScriptedScene();
    const [path = '', ...others] = prepare(scene);
    let calls = -Infinity;
    const faulty = fs(() => (calls += 1) === at, scene);
    await scene.watch(others.length > 0 ? [path, ...others] : path, { fs: faulty, ...options });
    scene.changes.length = 0;
    change?.(scene);
    calls = 0;
    await scene.hint();
    isReached = calls >= at;
    calls = -Infinity;
    await scene.hint();
    await scene.pass(100);
    verify(scene, { at, isReached });
    await scene.watcher.close();
  }
}
