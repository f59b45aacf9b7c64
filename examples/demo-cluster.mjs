/**
 * The second part of the demo: an API server on a real HTTPS socket gets a new signing key, which makes every token
 * worthless at once. Two refreshers keep a kubeconfig each; one watches its projected token, one has only a timer.
 */
import { join } from 'node:path';

import { AuthenticationV1Api, KubeConfig } from '@kubernetes/client-node';
import { TokenRefresher } from 'resilient-watcher';
import { kubeconfigSink, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { LocalApiServer } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';

const NAMESPACE = 'kube-system';
const PLUGIN = `system:serviceaccount:${NAMESPACE}:cni-plugin`;
/** How long kubelet takes here to project a valid token, ms. In a cluster it takes minutes. */
const KUBELET_MS = 400;
/** The random delay that spreads the requests of a fleet, ms; the default of 5 s is too long for a demo. */
const WAKE_JITTER_MS = 500;
/** How often the client with the kubeconfig sends a request, ms. */
const PERIOD_MS = 25;
/** Much longer than any step takes, ms. */
const PATIENCE_MS = 15_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => Number(process.hrtime.bigint()) / 1e6;

/** @param directory an empty one, for the volume and the kubeconfigs. */
export async function showCluster(directory, { scene, line }) {
  const server = await LocalApiServer.start();
  server.addServiceAccount(NAMESPACE, 'cni-plugin');
  const volume = new KubeletVolume(join(directory, 'serviceaccount'));
  const project = async () => {
    const { token } = await server.mint(NAMESPACE, 'cni-node');
    volume.publish({ token, 'ca.crt': server.caPem });
  };
  await project();

  const tokenFile = volume.path('token');
  const caFile = volume.path('ca.crt');
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'local', server: server.url, caFile, skipTLSVerify: false },
    { name: 'pod', authProvider: { name: 'tokenFile', config: { tokenFile } } },
  );
  const client = tokenRequestClient({ kubeConfig, namespace: NAMESPACE, serviceAccount: 'cni-plugin' });
  const refresherOf = (path, options) =>
    new TokenRefresher({
      ...options,
      client,
      wakeJitterMs: WAKE_JITTER_MS,
      sinks: [kubeconfigSink({ path, server: server.url, caFile })],
    });
  const watchingPath = join(directory, 'kubeconfig');
  const watching = refresherOf(watchingPath, { tokenFile });
  const timerPath = join(directory, 'kubeconfig-of-a-timer');
  const timerOnly = refresherOf(timerPath, { tokenFile: false });
  await Promise.all([watching.start(), timerOnly.start()]);

  scene('Two refreshers ask for a token and write a kubeconfig');
  const { issuedAt, expiresAt } = watching.status();
  const life = `for ${hours(expiresAt - issuedAt)}`;
  line(
    (await whoAmI(watchingPath)) === PLUGIN,
    undefined,
    `one watches the projected token: ${PLUGIN}, ${life}`,
  );
  line((await whoAmI(timerPath)) === PLUGIN, undefined, 'one has only a timer: the same');

  scene('The API server gets a new signing key');
  const plannedMs = timerOnly.status().nextRefreshAt - Date.now();
  await server.rotateSigningKey();
  const refused = await askUntil(watchingPath, 401);
  line(
    refused !== undefined,
    undefined,
    '401: the token in the kubeconfig is worthless, a day before it expires',
  );

  scene(`kubelet projects a new token, here after ${KUBELET_MS} ms`);
  const mending = askUntil(watchingPath, PLUGIN);
  await sleep(KUBELET_MS);
  const projectedAt = now();
  await project();
  const mended = await mending;
  const { lastWakeReason: reason } = watching.status();
  line(
    mended !== undefined && reason === 'file',
    mended && mended.at - projectedAt,
    `seen (${reason}), token requested, kubeconfig rewritten: it works again`,
  );
  const stillRefused = (await whoAmI(timerPath)) === 401;
  line(stillRefused, undefined, 'the kubeconfig of the timer: still 401');

  await Promise.all([watching.close(), timerOnly.close()]);
  await server.close();
  const outageMs = mended && refused && mended.at - refused.at;
  const outage = outageMs === undefined ? 'until the end' : `for ${seconds(outageMs)}`;
  console.log(`\nNo valid token ${outage}: ${mended?.refusals ?? 'all'} requests got 401.`);
  console.log(
    `With only a timer: ${hours(plannedMs)}, the time to its next planned refresh (not waited for).`,
  );
  console.log(
    'In a cluster kubelet takes longer: about 8 min for a projected token that lasts 10 min. wakeJitterMs',
  );
  console.log('(5 s by default, so that not all nodes ask at the same time) is half a second here.');
}

const hours = (ms) => `${(ms / 3_600_000).toFixed(1)} h`;
const seconds = (ms) => `${(ms / 1_000).toFixed(2)} s`;

/** The user that this kubeconfig authenticates now, or the status of the refusal. */
async function whoAmI(path) {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(path);
  const api = kubeConfig.makeApiClient(AuthenticationV1Api);
  return api.createSelfSubjectReview({ body: {} }).then(
    ({ status }) => status.userInfo.username,
    (error) => error.code,
  );
}

/** Asks until the answer is the expected one, and returns when that was; undefined if it never is. */
async function askUntil(path, wanted) {
  const deadline = now() + PATIENCE_MS;
  for (let refusals = 0; now() < deadline;) {
    const answer = await whoAmI(path);
    if (answer === wanted) return { at: now(), refusals };
    if (answer === 401) refusals += 1;
    await sleep(PERIOD_MS);
  }
  return undefined;
}
