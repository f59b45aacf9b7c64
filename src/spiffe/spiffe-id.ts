import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';

/** A SPIFFE ID, such as `spiffe://example.org/ns/default/sa/web`. */
export interface SpiffeId {
  readonly uri: string;
  /** Such as `example.org`. */
  readonly trustDomain: string;
  /** Such as `/ns/default/sa/web`; empty for the trust domain itself. */
  readonly path: string;
}

const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/;
const PATH = /^(?:\/[a-zA-Z0-9._-]+)*$/;
const SCHEME = 'spiffe://';

/** The only URI of a certificate, if it is a SPIFFE ID; otherwise undefined. */
export function spiffeIdIn({
  subjectAltName,
}: Pick<X509Certificate, 'subjectAltName'>): SpiffeId | undefined {
  // Node.js quotes a name that contains a comma.
  const uris = (subjectAltName ?? '').split(', ').filter((name) => name.startsWith('URI:'));
  const uri = uris[0]?.slice('URI:'.length);
  if (uris.length !== 1 || !uri?.startsWith(SCHEME) || uri.length > 2_048) return undefined;
  const rest = uri.slice(SCHEME.length);
  const slash = rest.indexOf('/');
  const trustDomain = slash === -1 ? rest : rest.slice(0, slash);
  const path = slash === -1 ? '' : rest.slice(slash);
  const isDotted = path.split('/').some((segment) => segment === '.' || segment === '..');
  if (!isTrustDomain(trustDomain) || !PATH.test(path) || isDotted) return undefined;
  return { uri, trustDomain, path };
}

export function isTrustDomain(name: string): boolean {
  return TRUST_DOMAIN.test(name);
}

/** The SPIFFE ID of the peer of an accepted connection, such as `request.socket`; undefined if it has none. */
export function spiffeIdOf(socket: Pick<TLSSocket, 'getPeerCertificate'>): SpiffeId | undefined {
  const { raw } = socket.getPeerCertificate() as { readonly raw?: Buffer };
  return raw && spiffeIdIn(new X509Certificate(raw));
}
