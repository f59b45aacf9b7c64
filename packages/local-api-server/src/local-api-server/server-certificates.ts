import { CertificateSigner } from '../certificate-signer.js';

/** The certificate and key of the server, PEM. */
export interface ServerCertificates {
  /** The certificate authority that clients must trust. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

let first: ServerCertificates | undefined;

/** The certificates with which every server of the process starts, so that clients need to trust only one authority. */
export function firstServerCertificates(): ServerCertificates {
  first ??= createServerCertificates();
  return first;
}

/** Creates a certificate authority, and its certificate for `localhost` and the loopback addresses. */
export function createServerCertificates(): ServerCertificates {
  const signer = new CertificateSigner({ name: 'local-api-server-ca' });
  const { chain, key } = signer.issue({
    commonName: 'local-api-server',
    dnsNames: ['localhost', 'kubernetes.default.svc'],
    ipAddresses: ['127.0.0.1', '::1'],
    lifetimeMs: 3_650 * 86_400_000,
  });
  return { ca: signer.certificate, certificate: chain, key };
}
