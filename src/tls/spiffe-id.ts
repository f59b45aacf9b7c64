import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';

/** The SPIFFE ID of a workload, such as `spiffe://example.org/ns/default/sa/web`. */
export interface SpiffeId {
  readonly uri: string;
  /** Such as `example.org`. */
  readonly trustDomain: string;
  /** Such as `/ns/default/sa/web`; never empty, because that is the ID of an authority. */
  readonly path: string;
}

const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[a-zA-Z0-9._-]+)+)$/;
const MAX_LENGTH = 2_048;

/** The only URI of a certificate, if it is the SPIFFE ID of a workload; otherwise undefined. */
export function spiffeIdIn({ ca, subjectAltName = '' }: X509Certificate): SpiffeId | undefined {
  // Node.js quotes a name that contains a comma or a quote; a SPIFFE ID never does, and one that hides in another name
  // is not an ID.
  if (ca || subjectAltName.includes('"')) return undefined;
  const uris = subjectAltName.split(', ').filter((name) => name.startsWith('URI:'));
  const uri = uris[0]?.slice('URI:'.length) ?? '';
  const [, trustDomain, path] = SPIFFE_ID.exec(uri) ?? [];
  if (uris.length !== 1 || uri.length > MAX_LENGTH || trustDomain === undefined || path === undefined)
    return undefined;
  const isDotted = path.split('/').some((segment) => segment === '.' || segment === '..');
  return isDotted ? undefined : { uri, trustDomain, path };
}

/** The SPIFFE ID of the peer of an accepted connection, such as `request.socket`; undefined if it has none. */
export function spiffeIdOf(socket: Pick<TLSSocket, 'getPeerCertificate'>): SpiffeId | undefined {
  const { raw } = socket.getPeerCertificate() as { readonly raw?: Buffer };
  return raw && spiffeIdIn(new X509Certificate(raw));
}
