/** Certificates as the tests of most features want them. */
import { CertificateSigner } from '@resilient-watcher/local-api-server';

/** A certificate and its key, PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority, with its certificate, PEM. */
export interface Authority {
  readonly cert: string;
  readonly signer: CertificateSigner;
}

/** What a test wants to be different about a certificate. */
interface CertificateSettings {
  readonly name?: string;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

const YEAR_MS = 365 * 86_400_000;

/** A root, or an intermediate authority below `issuer`. */
export function createAuthority(name: string, issuer?: Authority): Authority {
  const signer = new CertificateSigner({ name, issuer: issuer?.signer });
  return { cert: signer.certificate, signer };
}

/** What a server at `localhost` (or `name`), or a client, shows to prove who it is; without what is above it. */
export function createServerPair(
  { signer }: Authority,
  { name = 'localhost', notBefore, notAfter }: CertificateSettings = {},
): CertificatePair {
  const from = notBefore?.getTime() ?? Date.now() - 60_000;
  const lifetimeMs = (notAfter?.getTime() ?? from + YEAR_MS) - from;
  const { chain, key } = signer.issue({ commonName: name, dnsNames: [name], notBefore: from, lifetimeMs });
  const end = '-----END CERTIFICATE-----\n';
  return { cert: chain.slice(0, chain.indexOf(end) + end.length), key };
}
