import { createSecureContext, type SecureContext } from 'node:tls';

import { TlsError } from './tls-error.js';
import { describe } from '../core/options/options.js';
import type { TlsCredentials } from './tls-credentials.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';

type SniCallback = (
  servername: string,
  callback: (error: Error | null, context?: SecureContext) => void,
) => void;

/**
 * Creates an `SNICallback` for `createServer()` that selects the current certificate by host name. A name is
 * a host (`shop.example.com`) or a wildcard for one label (`*.example.com`); an exact name takes precedence. All other
 * names get the server's own certificate, as set by `serveTls()`.
 *
 * For these names, Node.js verifies client certificates with the CA bundle of their files, not with the `ca` of the
 * server. If the files have never had a bundle, it trusts none.
 *
 * The caller has to start the files. Until they have a usable set, handshakes for their names fail.
 *
 * ```ts
 * const SNICallback = sniCallback({ 'shop.example.com': shop, '*.example.org': other });
 * const server = https.createServer({ SNICallback });
 * await serveTls(server, files);
 * ```
 * @throws {TypeError} if `hosts` is not an object of `TlsFiles` by name.
 */
export function sniCallback(hosts: Readonly<Record<string, TlsFiles>>): SniCallback {
  if (typeof hosts !== 'object' || (hosts as unknown) === null) {
    throw new TypeError(`sniCallback: expected an object of TlsFiles by host name, got ${describe(hosts)}`);
  }
  for (const [name, files] of Object.entries(hosts)) checkTlsFiles('sniCallback', `"${name}"`, files);
  const byName = new Map(Object.entries(hosts).map(([name, files]) => [name.toLowerCase(), files]));
  return (servername, callback) => {
    const name = servername.toLowerCase();
    const files = byName.get(name) ?? byName.get(name.replace(/^[^.]+/, '*'));
    if (!files) {
      callback(null);
    } else if (files.current) {
      let context: SecureContext;
      try {
        context = contextOf(files.current);
      } catch (error) {
        callback(error as Error);
        return;
      }
      callback(null, context);
    } else {
      callback(new TlsError('ERR_TLS_UNAVAILABLE', `There is no usable certificate for ${servername} yet`));
    }
  };
}

const contexts = new WeakMap<TlsCredentials, SecureContext>();

/** Without a `ca`, Node.js would trust clients of all public authorities. */
function contextOf(credentials: TlsCredentials): SecureContext {
  if (credentials.ca) return credentials.secureContext;
  const context = contexts.get(credentials) ?? createSecureContext({ ...credentials.options, ca: [] });
  contexts.set(credentials, context);
  return context;
}
