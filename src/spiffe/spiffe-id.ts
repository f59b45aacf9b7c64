import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';

import { extensionsOf } from './extensions.js';

/** The SPIFFE ID of a workload, such as `spiffe://example.org/ns/default/sa/web`. */
export interface SpiffeId {
  readonly uri: string;
  /** Such as `example.org`. */
  readonly trustDomain: string;
  /** Such as `/ns/default/sa/web`; never empty, because that is the ID of an authority. */
  readonly path: string;
}

const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/;
const PATH = /^(?:\/[a-zA-Z0-9._-]+)+$/;
const SCHEME = 'spiffe://';

/** The only URI of a certificate, if it is the SPIFFE ID of a workload; otherwise undefined. */
export function spiffeIdIn(certificate: X509Certificate): SpiffeId | undefined {
  const { uris } = extensionsOf(certificate);
  const [uri] = uris;
  if (uris.length !== 1 || !uri?.startsWith(SCHEME) || uri.length > 2_048) return undefined;
  const rest = uri.slice(SCHEME.length);
  const slash = rest.indexOf('/');
  const [trustDomain, path] = [rest.slice(0, slash), rest.slice(slash)];
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
