import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

import { describe } from '../core/options/options.js';
import { systemClock } from '../core/ports/clock.js';
import { validityOf } from './certificates.js';

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

/**
 * The SPIFFE ID of the peer of a connection, such as `request.socket`, as the X.509-SVID specification reads it: the
 * only URI of its certificate. Undefined if the peer has none, if OpenSSL has not verified its certificate or it has
 * expired since, and for a connection that has ended.
 * @throws {TypeError} if `socket` is not an object.
 */
export function spiffeIdOf(socket: Socket): SpiffeId | undefined {
  if (typeof socket !== 'object' || (socket as unknown) === null)
    throw new TypeError(`spiffeIdOf: socket must be that of a connection, got ${describe(socket)}`);
  const certificate = verifiedCertificate(socket as Partial<TLSSocket>);
  // The connection may be older than the certificate is valid.
  if (!certificate || validityOf(certificate).expiresAt <= systemClock.now()) return undefined;
  return spiffeIdIn(certificate);
}

function verifiedCertificate(socket: Partial<TLSSocket>): X509Certificate | undefined {
  try {
    return socket.authorized ? socket.getPeerX509Certificate?.() : undefined;
  } catch (error) {
    // The socket of an HTTP/2 session that has ended throws whatever is asked.
    if ((error as NodeJS.ErrnoException).code === 'ERR_HTTP2_SOCKET_UNBOUND') return undefined;
    throw error;
  }
}

function spiffeIdIn({ ca, subjectAltName = '' }: X509Certificate): SpiffeId | undefined {
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
