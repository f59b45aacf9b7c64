/** Roots that a process has from its start. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { expect, test } from 'vitest';

import { createAuthority, createServerPair } from '../../support/certificates.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { secretOf } from '../../support/tls-sets.js';

const authority = createAuthority('authority');
const stranger = createAuthority('stranger');
const first = createServerPair(authority);
const ca = authority.cert;

test('a host of sniCallback() that has no CA bundle admits no client of the roots of Node.js', async () => {
  // `NODE_EXTRA_CA_CERTS` is read at the start of a process.
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'public.pem'), stranger.cert);
  for (const [name, text] of Object.entries(secretOf(first))) writeFileSync(join(directory, name), text);
  const client = createServerPair(stranger);
  const program = `
    import { connect, createServer } from 'node:tls';
    import { sniCallback, TlsFiles } from 'resilient-watcher/tls';
    const { directory, own, ca, client } = ${JSON.stringify({ directory, own: first, ca, client })};
    const files = new TlsFiles(directory);
    await files.ready();
    const SNICallback = sniCallback({ 'shop.example.com': files });
    const server = createServer({ ...own, ca, requestCert: true, rejectUnauthorized: false, SNICallback });
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      connect({ port, host: '127.0.0.1', servername: 'shop.example.com', rejectUnauthorized: false, ...client });
    });
    server.on('secureConnection', (socket) => {
      console.log(socket.authorized, socket.authorizationError);
      process.exit();
    });`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: join(import.meta.dirname, '../../..'),
    env: { ...process.env, NODE_EXTRA_CA_CERTS: join(directory, 'public.pem') },
  });
  expect(stdout).toMatch(/^false /);
});
