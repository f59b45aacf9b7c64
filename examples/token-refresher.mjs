// A token that is always valid, delivered to a kubeconfig. A fake API server and a volume stand in for a cluster:
// when the projected token changes, a new token is requested and written. Run: node examples/token-refresher.mjs
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { fileSink, TokenRefresher } from 'resilient-watcher';
import { FakeTokenClient, KubeletVolume, mintTestToken } from 'resilient-watcher/testing';

const root = mkdtempSync(join(tmpdir(), 'token-refresher-'));
const kubeconfig = join(root, 'kubeconfig');
const volume = new KubeletVolume(join(root, 'serviceaccount'));
volume.publish({ token: mintTestToken({ jti: 'projected 1' }) });

const client = new FakeTokenClient(); // in a cluster: { requestToken({ audiences, expirationSeconds }, { signal }) }
const refresher = new TokenRefresher({
  client,
  tokenFile: volume.path('token'),
  wakeJitterMs: 500, // default 5 000, for a fleet
  sinks: [
    fileSink(kubeconfig, {
      render: (token) =>
        JSON.stringify({ kind: 'Config', users: [{ name: 'me', user: { token: token.value } }] }),
    }),
  ],
});
refresher.on('token', ({ token, reason }) => console.log(`${reason}: ${token}`));
refresher.on('retry', ({ error, delayMs }) =>
  console.log(`no token yet, again in ${delayMs} ms: ${error.message}`),
);

await refresher.start();
client.rotateSigningKey();
console.log('signing key rotated; the token is accepted:', client.accepts((await refresher.get()).value));

volume.publish({ token: mintTestToken({ jti: 'projected 2' }) });
await once(refresher, 'delivered');
const written = JSON.parse(readFileSync(kubeconfig, 'utf8')).users[0].user.token;
console.log('kubeconfig rewritten; its token is accepted:', client.accepts(written));

const { state, healthy, nextRefreshAt } = refresher.status();
console.log({ state, healthy, nextRefreshAt: new Date(nextRefreshAt).toISOString() });
await refresher.close();
rmSync(root, { recursive: true });
