/** The door "resilient-watcher/testing": time, hints and volumes that do what a test says. */
export { FakeClock } from './testing/fake-clock.js';
export {
  KubeletVolume,
  type KubeletVolumeOptions,
  type PublishResult,
  type VolumeFile,
  type VolumeFiles,
  type VolumeStep,
} from './testing/kubelet-volume.js';
export { ScriptedBackend } from './testing/scripted-backend.js';
