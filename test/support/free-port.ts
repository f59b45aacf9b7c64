import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A port of this machine that nothing listens on. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const server = createServer();
  await once(server.listen(0, host), 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
