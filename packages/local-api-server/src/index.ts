/** The package "@resilient-watcher/local-api-server": an API server, and a certificate authority, that a test controls. */
export {
  CertificateSigner,
  type CertificateFields,
  type CertificateKeyType,
  type CertificateSignerOptions,
  type IssuedCertificate,
} from './certificate-signer.js';
export {
  LocalApiServer,
  type LocalApiServerOptions,
  type MintOptions,
  type ReceivedRequest,
} from './local-api-server.js';
export type { ApiObject, StoredObject } from './local-api-server/object-store.js';
export {
  podCertificateFiles,
  trustBundleFile,
  type PodCertificatePaths,
  type ProjectionOptions,
} from './pod-certificates.js';
