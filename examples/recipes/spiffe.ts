// The files of spiffe-helper: an X.509-SVID with its key and bundle, and a JWT-SVID.
import { join } from 'node:path';

import { TokenFile } from 'resilient-watcher';
import { TlsFiles } from 'resilient-watcher/tls';

/** spiffe-helper writes the three files one after the other; a set that does not match is not used. */
export function x509Svid(directory: string): TlsFiles {
  const at = (name: string): string => join(directory, name);
  return new TlsFiles({ cert: at('svid.pem'), key: at('svid_key.pem'), ca: at('svid_bundle.pem') });
}

export function jwtSvid(directory: string): TokenFile {
  return new TokenFile(join(directory, 'jwt_svid.token'));
}
