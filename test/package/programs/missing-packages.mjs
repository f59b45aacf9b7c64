// Uses each optional package once, and prints what came of it.
import { ResilientWatcher } from 'resilient-watcher';
import { tomlParser, yamlParser } from 'resilient-watcher/config';
import { tokenRequestClient } from 'resilient-watcher/kubernetes';

async function tell(name, work) {
  const outcome = await work().then(
    (value) => JSON.stringify(value),
    (error) => [name.length > 6 ? '' : error.code, error.message].join(' ').trim(),
  );
  console.log(`${name}: ${outcome}`);
}

delete process.env.KUBERNETES_SERVICE_HOST;
const signal = new AbortController().signal;
const client = tokenRequestClient({ namespace: 'ns', serviceAccount: 'account', kubeConfig: 'kubeconfig' });

await tell('parcel', async () => {
  const watcher = new ResilientWatcher('package.json', { backend: 'parcel' });
  const degraded = new Promise((resolve) => watcher.once('degraded', resolve));
  await watcher.start();
  const { error, cause } = await degraded;
  await watcher.close();
  throw error ?? cause;
});
await tell('yaml', async () => yamlParser.parse('a: 1'));
await tell('toml', async () => tomlParser.parse('a = 1'));
await tell('client-node', () => client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal }));
