/** The check of a peer that OpenSSL has verified with the bundle of the own trust domain. */
import { callback, describe, required } from '../core/options.js';
import { redactError } from '../core/resilient-error.js';
import { TlsError } from './tls-error.js';
import { spiffeIdIn, type SpiffeId } from './spiffe-id.js';
import type { TlsFiles } from './tls-files.js';

/** Which peers a server or client talks to. */
export interface SpiffePeerOptions {
  /** Whether the peer with this ID is admitted. */
  readonly authorize: (id: SpiffeId) => boolean;
}

/** The check of `authorize`. */
export const AUTHORIZE = {
  authorize: required(callback<SpiffePeerOptions['authorize']>(() => false)),
};

/** Why a peer is refused; undefined if it is admitted. Never throws, whatever the peer has sent. */
export function refusalOf(
  readId: () => SpiffeId | undefined,
  folder: TlsFiles,
  authorize: SpiffePeerOptions['authorize'],
): Error | undefined {
  try {
    const id = readId();
    if (!id) return refusal('its certificate has no SPIFFE ID of a workload, or several URIs');
    const own = folder.current?.certificate && spiffeIdIn(folder.current.certificate);
    if (id.trustDomain !== own?.trustDomain) return refusal(`${id.uri} is of another trust domain`);
    const isAuthorized: unknown = authorize(id);
    // A promise is not an answer, and it would be true.
    if (typeof isAuthorized !== 'boolean')
      return refusal(`authorize must return a boolean, got ${describe(isAuthorized)}`);
    return isAuthorized ? undefined : refusal(`${id.uri} is not authorized`);
  } catch (error) {
    return error instanceof Error ? error : redactError(error);
  }
}

function refusal(why: string): TlsError {
  return new TlsError('ERR_TLS_PEER', `The peer is refused: ${why}`);
}
