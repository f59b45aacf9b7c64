import type { X509Certificate } from 'node:crypto';

import { removedFrom } from './certificate-set.js';
import type { TlsCredentials } from './tls-credentials.js';

/**
 * What a server or client trusts: the last CA bundle. A later set without one does not replace it, because with the
 * roots of Node.js instead, a peer with a certificate of any public authority would be trusted.
 */
export class Trust {
  #bundle: Pick<TlsCredentials, 'ca' | 'authorities'> = { ca: undefined, authorities: [] };

  get ca(): Buffer | undefined {
    return this.#bundle.ca;
  }

  get authorities(): readonly X509Certificate[] {
    return this.#bundle.authorities;
  }

  /** The certificate and key of a set, with this bundle. */
  optionsOf({ options }: TlsCredentials): TlsCredentials['options'] {
    return { ...options, ...(this.ca && { ca: this.ca }) };
  }

  /** Returns whether a CA was removed: then every connection made before has to end. */
  update({ ca, authorities }: TlsCredentials): boolean {
    if (!ca) return false;
    const isRemoved = removedFrom(this.authorities, authorities).length > 0;
    this.#bundle = { ca, authorities };
    return isRemoved;
  }
}
