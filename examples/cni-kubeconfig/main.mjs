// Keeps the kubeconfig of a CNI plugin valid, as Calico's cni-config-monitor does, but for any plugin. The file is
// written atomically, and after a rotation of the signing key it is repaired within seconds of kubelet's new token.
//
//   CALICO_CNI_SERVICE_ACCOUNT   the ServiceAccount of the plugin; default calico-cni-plugin
//   CNI_TOKEN_REFRESH_INTERVAL   the maximum time between two tokens, a Go duration (12h, 90m); default by expiry
//   CNI_KUBECONFIG               the file to write; default /host/etc/cni/net.d/calico-kubeconfig
//   SERVICE_ACCOUNT_DIR          the directory in which kubelet projects this pod's token, CA and namespace
//   HEALTH_PORT                  the port that serves /healthz for a liveness probe; default: none
//   KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, as kubelet sets them
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { KubeConfig } from '@kubernetes/client-node';
import { TokenRefresher } from 'resilient-watcher';
import { kubeconfigSink, tokenRequestClient } from 'resilient-watcher/kubernetes';

// Charts render a value that nobody has set as an empty variable.
const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));

const {
  CALICO_CNI_SERVICE_ACCOUNT: serviceAccount = 'calico-cni-plugin',
  CNI_TOKEN_REFRESH_INTERVAL: interval,
  CNI_KUBECONFIG: path = '/host/etc/cni/net.d/calico-kubeconfig',
  SERVICE_ACCOUNT_DIR: directory = '/var/run/secrets/kubernetes.io/serviceaccount',
  HEALTH_PORT: healthPort,
  KUBERNETES_SERVICE_HOST: host,
  KUBERNETES_SERVICE_PORT: port = '443',
} = given;

if (!host) throw new Error('KUBERNETES_SERVICE_HOST is not set: this is to run in a pod');
const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
const tokenFile = join(directory, 'token');
const caFile = join(directory, 'ca.crt');
const namespace = (await readFile(join(directory, 'namespace'), 'utf8')).trim();

const kubeConfig = new KubeConfig();
kubeConfig.loadFromClusterAndUser(
  { name: 'local', server, caFile, skipTLSVerify: false },
  { name: 'pod', authProvider: { name: 'tokenFile', config: { tokenFile } } },
);

const refresher = new TokenRefresher({
  client: tokenRequestClient({ kubeConfig, namespace, serviceAccount }),
  tokenFile,
  refreshIntervalMs: interval && durationMs(interval),
  sinks: [
    kubeconfigSink({
      path,
      server,
      caFile,
      clusterName: 'local',
      user: 'calico',
      contextName: 'calico-context',
    }),
  ],
});

refresher.on('delivered', ({ sink, token }) => log('written', { sink, token }));
refresher.on('undelivered', ({ error }) => log('not written', { error: error.message }));
refresher.on('retry', ({ error, delayMs }) => log('no token', { error: error.message, delayMs }));
refresher.on('unhealthy', () => log('unhealthy'));
refresher.on('healthy', () => log('healthy'));
refresher.on('skew', ({ aheadMs }) =>
  log('the clocks of this node and of the API server differ', { aheadMs }),
);

const health = createServer((_request, response) => {
  const { healthy } = refresher.status();
  response.writeHead(healthy ? 200 : 503).end(healthy ? 'ok' : 'no good token');
});
if (healthPort) health.listen(Number(healthPort));

for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => {
    health.close();
    void refresher.close();
  });
}

await refresher.start();

/** Prints one line of JSON. Tokens show only their subject and their dates. */
function log(message, details = {}) {
  console.log(JSON.stringify({ at: new Date().toISOString(), message, ...details }));
}

/** A Go duration such as `1h30m`, ms. */
function durationMs(text) {
  const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) {
    throw new RangeError(`CNI_TOKEN_REFRESH_INTERVAL must be a duration such as 12h or 90m, got ${text}`);
  }
  const parts = text.matchAll(/([\d.]+)(ms|s|m|h)/g);
  return [...parts].reduce((sum, [, amount, unit]) => sum + Number(amount) * units[unit], 0);
}
