/**
 * Verifies a peer with the bundle of its own trust domain and no other. OpenSSL verifies with one store during the
 * handshake, before the domain of the peer is known, so the path is built here.
 */
import type { X509Certificate } from 'node:crypto';

import { parseCertificateDate } from '../core/clock.js';
import { describe } from '../core/options.js';
import { redactError } from '../core/resilient-error.js';
import { hasIssued } from '../tls/certificates.js';
import { TlsError } from '../tls/tls-error.js';
import { chainOf, type Peer } from '../tls/trust.js';
import { extensionsOf } from './extensions.js';
import { spiffeIdIn, type SpiffeId } from './spiffe-id.js';

/** Longer than any chain in use. */
const MAX_DEPTH = 8;

/** The purposes of extended key usage. */
const PURPOSES = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

type Role = keyof typeof PURPOSES;

/** Trust bundles by trust domain. */
export type TrustBundles = ReadonlyMap<string, readonly X509Certificate[]>;

interface Verification {
  /** Undefined: no peer is admitted. */
  readonly bundles: TrustBundles | undefined;
  /** Whether a connection to this peer is allowed. */
  readonly authorize: (id: SpiffeId) => boolean;
  /** The role of the peer. */
  readonly role: Role;
  /** Epoch ms. */
  readonly now: number;
}

/** Why a peer is refused; undefined if it is admitted. Never throws, whatever the peer has sent. */
export function refusalOf(peer: Peer, verification: Verification): Error | undefined {
  try {
    verify(chainOf(peer), verification);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : redactError(error);
  }
}

/**
 * @param chain the peer's certificate, and the certificates that it has sent with it.
 * @throws {TlsError} `ERR_TLS_PEER` with the reason why it is refused; whatever `authorize` throws.
 */
function verify(
  [leaf, ...sent]: readonly X509Certificate[],
  { bundles, authorize, role, now }: Verification,
): void {
  if (!leaf) throw refusal('it sent no certificate');
  const id = spiffeIdIn(leaf);
  if (!id) throw refusal('its certificate has no SPIFFE ID of a workload, or several URIs');
  const { uri, trustDomain } = id;
  const authorities = bundles?.get(trustDomain);
  if (!authorities) throw refusal(`there is no trust bundle for the trust domain of ${uri}`);
  const problem = problemOf(leaf, role, now);
  if (problem) throw refusal(`the certificate of ${uri} ${problem}`);
  if (!leadsToAnchor(leaf, { sent: sent.slice(0, MAX_DEPTH), authorities, role, now })) {
    throw refusal(`the certificate of ${uri} does not lead to the trust bundle of its trust domain`);
  }
  const isAuthorized: unknown = authorize(id);
  // A promise is not an answer, and it would be true.
  if (typeof isAuthorized !== 'boolean')
    throw refusal(`authorize must return a boolean, got ${describe(isAuthorized)}`);
  if (!isAuthorized) throw refusal(`${uri} is not authorized`);
}

function problemOf(leaf: X509Certificate, role: Role, now: number): string | undefined {
  const { isAuthority, signs, isRefused } = extensionsOf(leaf);
  if (isAuthority || signs?.certificates || signs?.revocations) return 'is that of a CA';
  if (!isFor(role, leaf) || signs?.handshakes === false) return `is not for a ${role}`;
  if (isRefused) return 'has a critical extension that is not understood, or one twice';
  return isValidAt(now, leaf) ? undefined : 'is not valid now';
}

interface Path extends Pick<Verification, 'role' | 'now'> {
  readonly sent: readonly X509Certificate[];
  readonly authorities: readonly X509Certificate[];
}

function leadsToAnchor(leaf: X509Certificate, { sent, authorities, role, now }: Path): boolean {
  const anchors = new Set(authorities.map(({ fingerprint256 }) => fingerprint256));
  const issuers = [...authorities, ...sent];
  const seen = new Set<string>();
  /** @param below how many authorities there are below the issuer */
  const leads = (issued: X509Certificate, below: number): boolean => {
    if (below > MAX_DEPTH || seen.has(issued.fingerprint256)) return false;
    seen.add(issued.fingerprint256);
    return issuers.some((issuer) => {
      if (!hasIssued(issuer, issued) || !isValidAt(now, issuer) || !mayIssue(issuer, role, below))
        return false;
      return anchors.has(issuer.fingerprint256) || leads(issuer, below + 1);
    });
  };
  return leads(leaf, 0);
}

function mayIssue(issuer: X509Certificate, role: Role, below: number): boolean {
  const { isAuthority, maxPathLength, signs, isRefused } = extensionsOf(issuer);
  return (
    isAuthority &&
    signs?.certificates !== false &&
    below <= maxPathLength &&
    isFor(role, issuer) &&
    !isRefused
  );
}

/** As in OpenSSL, an authority with a limit may issue certificates only for the purposes in it. */
function isFor(role: Role, certificate: X509Certificate): boolean {
  // The extended key usage; undefined if there is no limit, whatever the types say.
  const usage = certificate.keyUsage as readonly string[] | undefined;
  return usage === undefined || usage.includes(PURPOSES[role]);
}

function isValidAt(now: number, { validFrom, validTo }: X509Certificate): boolean {
  return parseCertificateDate(validFrom) <= now && now < parseCertificateDate(validTo);
}

function refusal(why: string): TlsError {
  return new TlsError('ERR_TLS_PEER', `The peer is refused: ${why}`);
}
