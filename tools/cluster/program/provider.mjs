/**
 * Runs beside the CSI driver of the cluster test: the provider of its secrets. Hands out one file, as it is now.
 *
 *   FILE   which
 *   PORT   on the loopback interface
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename } from 'node:path';

const { FILE: file, PORT: port } = process.env;

const server = createServer(async (request, response) => {
  if (!request.headers.authorization?.startsWith('Bearer ')) {
    response.writeHead(401).end();
    return;
  }
  try {
    response.end(JSON.stringify({ files: { [basename(file)]: await readFile(file, 'utf8') } }));
  } catch (error) {
    response.writeHead(503).end(error.code);
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })));
process.on('SIGTERM', () => process.exit());
