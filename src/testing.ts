/** The door "resilient-watcher/testing": time, hints, volumes and an API server that do what a test says. */
export { FakeClock } from './testing/fake-clock.js';
export { FakeTokenClient, type TokenStep } from './testing/fake-token-client.js';
export {
  KubeletVolume,
  type KubeletVolumeOptions,
  type PublishResult,
  type VolumeFile,
  type VolumeFiles,
  type VolumeStep,
} from './testing/kubelet-volume.js';
export { mintTestToken } from './testing/mint-test-token.js';
export { ScriptedBackend } from './testing/scripted-backend.js';
