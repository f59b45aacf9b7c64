/**
 * Verifies a peer with the bundle of its own trust domain and no other. OpenSSL verifies with one store during the
 * handshake, before the domain of the peer is known, so the path is built here.
 */
import type { X509Certificate } from 'node:crypto';

import { parseCertificateDate } from '../core/clock.js';
import { hasIssued } from '../tls/certificates.js';
import { TlsError } from '../tls/tls-error.js';
import { constraintsOf } from './extensions.js';
import { spiffeIdIn, type SpiffeId } from './spiffe-id.js';

/** Longer than any chain in use. */
const MAX_DEPTH = 8;

/** The purposes of extended key usage. */
const PURPOSES = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

/** Trust bundles by trust domain. */
export type TrustBundles = ReadonlyMap<string, readonly X509Certificate[]>;

interface Verification {
  readonly bundles: TrustBundles;
  /** Whether a connection to this peer is allowed. */
  readonly authorize: (id: SpiffeId) => boolean;
  /** The role of the peer. */
  readonly peer: 'server' | 'client';
  /** Epoch ms. */
  readonly now: number;
}

/**
 * @param chain the peer's certificate, and the certificates that it has sent with it.
 * @returns the ID of the peer.
 * @throws {TlsError} `ERR_TLS_PEER` with the reason why it is refused.
 */
export function verifyPeer(
  [leaf, ...sent]: readonly X509Certificate[],
  { bundles, authorize, peer, now }: Verification,
): SpiffeId {
  const id = leaf && spiffeIdIn(leaf);
  if (!id)
    throw refusal(leaf ? 'its certificate has no SPIFFE ID, or several URIs' : 'it sent no certificate');
  const { uri, trustDomain } = id;
  const authorities = bundles.get(trustDomain);
  if (!authorities) throw refusal(`there is no trust bundle for the trust domain of ${uri}`);
  if (leaf.ca || !isValidAt(now, leaf))
    throw refusal(`the certificate of ${uri} belongs to a CA, or is not valid now`);
  // Undefined if there is no limit, whatever the types say.
  const usage = leaf.keyUsage as readonly string[] | undefined;
  if (usage && !usage.includes(PURPOSES[peer]))
    throw refusal(`the certificate of ${uri} is not for a ${peer}`);
  const [unknown] = constraintsOf(leaf).unknown;
  if (unknown !== undefined)
    throw refusal(`the certificate of ${uri} has a critical extension that is not understood`);
  if (!leadsToAnchor(leaf, { sent: sent.slice(0, MAX_DEPTH), authorities, now })) {
    throw refusal(`the certificate of ${uri} does not lead to the trust bundle of its trust domain`);
  }
  if (!authorize(id)) throw refusal(`${uri} is not authorized`);
  return id;
}

function leadsToAnchor(
  leaf: X509Certificate,
  {
    sent,
    authorities,
    now,
  }: {
    readonly sent: readonly X509Certificate[];
    readonly authorities: readonly X509Certificate[];
    readonly now: number;
  },
): boolean {
  const anchors = new Set(authorities.map(({ fingerprint256 }) => fingerprint256));
  const issuers = [...authorities, ...sent];
  const seen = new Set<string>();
  /** @param below how many authorities there are below the issuer */
  const leads = (issued: X509Certificate, below: number): boolean => {
    if (below > MAX_DEPTH || seen.has(issued.fingerprint256)) return false;
    seen.add(issued.fingerprint256);
    return issuers.some((issuer) => {
      if (!hasIssued(issuer, issued) || !mayIssue(issuer, below, now)) return false;
      return anchors.has(issuer.fingerprint256) || leads(issuer, below + 1);
    });
  };
  return leads(leaf, 0);
}

function mayIssue(issuer: X509Certificate, below: number, now: number): boolean {
  const { maxPathLength, maySign, unknown } = constraintsOf(issuer);
  return issuer.ca && maySign && below <= maxPathLength && unknown.length === 0 && isValidAt(now, issuer);
}

function isValidAt(now: number, { validFrom, validTo }: X509Certificate): boolean {
  return parseCertificateDate(validFrom) <= now && now < parseCertificateDate(validTo);
}

function refusal(why: string): TlsError {
  return new TlsError('ERR_TLS_PEER', `The peer is refused: ${why}`);
}
