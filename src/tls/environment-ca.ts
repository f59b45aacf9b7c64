import { readFileSync } from 'node:fs';

import { parseCertificates } from './certificates.js';
import { defaultCaCalls, followDefaultCa, setDefaultCa, type DefaultCa } from './default-ca.js';
import { TlsFiles } from './tls-files.js';

/**
 * Follows the CA bundle that the environment variable `RESILIENT_WATCHER_CA` names; undefined without the variable. A
 * missing or invalid bundle causes a process warning, and is used as soon as it is valid.
 */
export const environmentCa: Promise<DefaultCa> | undefined = followEnvironmentCa();

/** @throws {TlsError} `ERR_TLS_UNSUPPORTED` before Node.js 22.19 and 24.5. */
function followEnvironmentCa(): Promise<DefaultCa> | undefined {
  const path = process.env['RESILIENT_WATCHER_CA'];
  if (path === undefined || path === '') return undefined;
  const calls = defaultCaCalls();
  try {
    // At once, because the first line of the program may open a connection.
    setDefaultCa(calls, parseCertificates(path, readFileSync(path), 'ERR_TLS_CA'));
  } catch {
    // Reported when the bundle is read again.
  }
  return follow(new TlsFiles({ ca: path }, { name: 'RESILIENT_WATCHER_CA', persistent: false }));
}

async function follow(files: TlsFiles): Promise<DefaultCa> {
  const warn = ({ error }: { readonly error: Error }): void => process.emitWarning(error);
  files.on('rejected', warn);
  files.on('unreadable', warn);
  // Not `ready()`, which would keep a program alive that has ended, as long as there is no bundle.
  await files.changed();
  return followDefaultCa(files);
}
