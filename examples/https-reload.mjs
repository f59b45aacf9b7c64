// An HTTPS server whose certificate is a mounted Secret of type kubernetes.io/tls: each new pair is used from the next
// handshake on, and no connection is dropped. If a set cannot be used, the last good one stays in use.
//
//   TLS_DIRECTORY   the mount of the Secret, such as /etc/tls, with tls.crt and tls.key
//   PORT            default 0: a free port, which is printed
import { once } from 'node:events';
import { createServer } from 'node:https';

import { serveTls, TlsFiles } from 'resilient-watcher/tls';

const { TLS_DIRECTORY: directory, PORT: port = '0' } = process.env;
if (!directory) throw new Error('TLS_DIRECTORY is not set');

const server = createServer((request, response) => response.end('hello\n'));
const files = new TlsFiles(directory, { persistent: true });
files.on('rejected', ({ error }) => {
  console.log(files.current ? 'kept the last good pair:' : 'no pair yet:', error.message);
});
files.on('change', ({ current }) => console.log('serving', current.fingerprint256));
files.on('expiring', ({ remainingMs }) => console.log('expires in', remainingMs / 3_600_000, 'hours'));
process.once('SIGTERM', () => {
  void files.close();
  server.close(); // requests in flight are answered, idle connections end
});

await files.start();
console.log('watching', directory);
await files.ready();
await serveTls(server, files);
await once(server.listen(Number(port)), 'listening');
console.log('listening on port', server.address().port);
