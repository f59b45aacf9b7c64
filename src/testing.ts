/** The entry point "resilient-watcher/testing": time, hints, volumes and an API server that a test controls. */
import './index.js';

export {
  CertificateSigner,
  type CertificateFields,
  type CertificateKeyType,
  type CertificateSignerOptions,
  type IssuedCertificate,
} from './testing/certificate-signer.js';
export { FakeClock } from './testing/fake-clock.js';
export { FakeTokenClient, type TokenStep } from './testing/fake-token-client.js';
export { KubeletVolume, type KubeletVolumeOptions, type PublishResult } from './testing/kubelet-volume.js';
export type { VolumeFile, VolumeFiles } from './testing/volume-file.js';
export type { VolumeStep } from './testing/volume-steps.js';
export {
  LocalApiServer,
  type LocalApiServerOptions,
  type MintOptions,
  type ReceivedRequest,
} from './testing/local-api-server.js';
export type { ApiObject, ObjectResource, StoredObject } from './testing/local-api-server/object-api.js';
export { mintTestToken } from './testing/mint-test-token.js';
export {
  podCertificateFiles,
  trustBundleFile,
  type PodCertificatePaths,
  type ProjectionOptions,
} from './testing/pod-certificates.js';
export { ScriptedBackend } from './testing/scripted-backend.js';
