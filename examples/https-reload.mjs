// An HTTPS server whose certificate is a mounted Secret of type kubernetes.io/tls: each new pair serves from the next
// handshake on, and no connection is dropped. A pair that is missing or does not match leaves the last good one.
//
//   TLS_DIRECTORY   where the Secret is mounted, such as /etc/tls; holds tls.crt and tls.key
//   PORT            default 0: any free one, printed
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';

import { ResilientWatcher } from 'resilient-watcher';

const { TLS_DIRECTORY: directory, PORT: port = '0' } = process.env;
if (!directory) throw new Error('TLS_DIRECTORY is not set');

const server = createServer((request, response) => response.end('hello\n'));

/** Serves with this pair from now on, or throws and changes nothing. */
function use(files) {
  // Both are of one revision.
  const cert = files.get('tls.crt')?.content;
  const key = files.get('tls.key')?.content;
  if (!cert || !key) throw new Error(`${cert ? 'tls.key' : 'tls.crt'} is missing`);
  const certificate = new X509Certificate(cert);
  // `setSecureContext` lets an RSA key pass beside an EC certificate; then every handshake fails.
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error('tls.key is not the key of tls.crt');
  server.setSecureContext({ cert, key });
  return certificate.fingerprint256;
}

const watcher = new ResilientWatcher(directory);
watcher.on('unreadable', ({ error }) => console.log('cannot read:', error.message));
process.once('SIGTERM', () => void watcher.close());
await watcher.start();
console.log('watching', directory);

for await (const { current } of watcher) {
  try {
    console.log('serving', use(current.files));
  } catch (error) {
    console.log(server.listening ? 'kept the last good pair:' : 'no pair yet:', error.message);
    continue;
  }
  if (server.listening) continue;
  await once(server.listen(Number(port)), 'listening');
  console.log('listening on port', server.address().port);
}
server.close(); // requests under way are answered, idle connections end
