// Requests with the pod's own token, always the current one. A small server stands in for the API server.
// Run: node examples/token-file.mjs
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { fetchWithToken, TokenFile } from 'resilient-watcher';
import { KubeletVolume, mintTestToken } from 'resilient-watcher/testing';

const root = mkdtempSync(join(tmpdir(), 'token-file-'));
const volume = new KubeletVolume(root);
const tokens = [mintTestToken({ jti: '1' }), mintTestToken({ jti: '2' })];
volume.publish({ token: tokens[0] });

let accepted = tokens[0];
const server = createServer((request, response) => {
  const isKnown = request.headers.authorization === `Bearer ${accepted}`;
  response.writeHead(isKnown ? 200 : 401).end(isKnown ? 'welcome' : 'who are you?');
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const url = `http://127.0.0.1:${server.address().port}/`;

const token = new TokenFile(volume.path('token')); // in a pod: /var/run/secrets/kubernetes.io/serviceaccount/token
const fetch = fetchWithToken(token);
console.log('at first:', (await fetch(url)).status);

accepted = tokens[1];
volume.publish({ token: tokens[1] });
console.log('after a rotation:', (await fetch(url)).status, String(await token.get()));

await token.close();
server.close();
rmSync(root, { recursive: true });
