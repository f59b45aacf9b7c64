import { isMainThread } from 'node:worker_threads';

import { nodeFileSystem } from '../core/ports/builtins.js';
import { addDefaultCa, defaultCaCalls, followDefaultCa, type DefaultCa } from './default-ca.js';
import { parseCertificates } from './pem.js';
import { TlsFiles } from './tls-files.js';

/**
 * Follows the CA bundle that the environment variable `RESILIENT_WATCHER_CA` names; undefined if that is empty, or not
 * set, which causes a process warning. A missing or invalid bundle causes one, too, and is used as soon as it is valid.
 * What is in use is said on stderr.
 */
export const environmentCa: Promise<DefaultCa> | undefined = followEnvironmentCa();

/** @throws {TlsError} `ERR_TLS_UNSUPPORTED` before Node.js 22.19 and 24.5. */
function followEnvironmentCa(): Promise<DefaultCa> | undefined {
  const path = process.env['RESILIENT_WATCHER_CA'];
  if (path === undefined) {
    process.emitWarning('resilient-watcher/trust does nothing: RESILIENT_WATCHER_CA is not set');
  }
  if (!path) return undefined;
  const calls = defaultCaCalls();
  const files = new TlsFiles({ ca: path }, { name: 'RESILIENT_WATCHER_CA', persistent: false });
  try {
    // At once, because the first line of the program may open a connection.
    addDefaultCa(calls, files, parseCertificates(path, nodeFileSystem.readFileSync(path), 'ERR_TLS_CA'));
  } catch {
    // Reported when the bundle is read again.
  }
  return follow(files);
}

async function follow(files: TlsFiles): Promise<DefaultCa> {
  const warn = ({ error }: { readonly error: Error }): void => process.emitWarning(error);
  files.on('rejected', warn);
  files.on('unreadable', warn);
  files.on('warning', ({ message }) => process.emitWarning(message));
  // Not `ready()`, which would keep a program alive that has ended, as long as there is no bundle.
  await files.changed();
  const followed = await followDefaultCa(files);
  if (isMainThread) {
    say(files);
    files.on('change', () => say(files));
  }
  return followed;
}

function say({ current, path }: TlsFiles): void {
  const count = current?.authorities.length;
  const trusted = count === 1 ? '1 CA' : `${count} CAs`;
  process.stderr.write(
    `resilient-watcher: ${trusted} of ${path} ${count === 1 ? 'is' : 'are'} trusted by default\n`,
  );
}
