/** The entry point "resilient-watcher/testing": time, hints, tokens and volumes that a test controls. */
import './index.js';

export { FakeClock } from './testing/fake-clock.js';
export { FakeTokenClient, mintTestToken, type TokenStep } from './testing/fake-token-client.js';
export { KubeletVolume, type KubeletVolumeOptions, type PublishResult } from './testing/kubelet-volume.js';
export type { VolumeFile, VolumeFiles } from './testing/volume-file.js';
export type { VolumeStep } from './testing/volume-steps.js';
export { ScriptedBackend } from './testing/scripted-backend.js';
