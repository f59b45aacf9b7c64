import { KernelScene } from './kernel-scene.js';
import type { Scene } from './scene.js';
import { ScriptedScene } from './scripted-scene.js';

/** Who gives the hints: the test or the clock, under fake time; or the kernel, in real time. */
export type SceneKind = 'scripted' | 'poll' | 'fs' | 'parcel';

export function openScene(kind: SceneKind): Scene {
  return kind === 'fs' || kind === 'parcel' ? new KernelScene(kind) : new ScriptedScene({ hints: kind });
}
