import { absolutePath, within } from '../fs/absolute-path.js';
import { sharedBytesOf } from '../fs/snapshot.js';
import { checkPath } from '../core/options.js';
import { parseCertificates } from './certificates.js';
import { spiffeIdIn } from './spiffe-id.js';
import { TlsError } from './tls-error.js';
import { TlsFiles, type TlsFilesOptions } from './tls-files.js';
import type { TlsLayout, TlsPlace } from './tls-paths.js';

const CREDENTIALS = 'credential-bundle.private-key.x509.pem';
const TRUST_BUNDLE = '.spiffe-trust-bundle.x509.pem';

/**
 * Follows a SPIFFE credential folder: `credential-bundle.private-key.x509.pem`, and
 * `<trust domain>.spiffe-trust-bundle.x509.pem` of the trust domain in its certificate. Other files are ignored: peers of
 * other trust domains are not admitted. A folder that cannot be used is `rejected`, and the last good identity and bundle
 * stay in use.
 *
 * Experimental, because the proposal is not final.
 * @throws {TypeError | RangeError} for a wrong path or option.
 */
export function spiffeFolder(directory: string | URL, options?: TlsFilesOptions): TlsFiles {
  const path = absolutePath(checkPath('spiffeFolder', 'directory', directory));
  return new TlsFiles(path, options, () => spiffeLayout(path));
}

function spiffeLayout(path: string): TlsLayout {
  return {
    target: path,
    locate: ({ files }) => {
      const place = (name: string): TlsPlace => ({ path: within(path, name), file: files.get(name) });
      const bundle = place(CREDENTIALS);
      const content = bundle.file && sharedBytesOf(bundle.file);
      // Whatever is wrong with the file is said when the set is parsed.
      if (!content) return { cert: bundle, key: bundle };
      const [leaf] = parseCertificates(bundle.path, content, 'ERR_TLS_PEM');
      const id = leaf && spiffeIdIn(leaf);
      if (!id) throw new TlsError('ERR_TLS_PEM', `The certificate in "${bundle.path}" has no SPIFFE ID`);
      const ca = { ...place(`${id.trustDomain}${TRUST_BUNDLE}`), mayBeEmpty: false };
      return { cert: bundle, key: bundle, ca };
    },
  };
}
