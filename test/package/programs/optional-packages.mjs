// Uses each package that is loaded on first use, and tells what came of it.
import { ConfigLoader, jsonParser, tomlParser, yamlParser } from 'resilient-watcher/config';
import { tokenRequestClient } from 'resilient-watcher/kubernetes';
import * as otel from 'resilient-watcher/otel';
import * as prometheus from 'resilient-watcher/prometheus';
import { TlsFiles, undiciDispatcher } from 'resilient-watcher/tls';

const codeOf = (promise) => promise.then(String, ({ code }) => code);

export async function useAll() {
  delete process.env.KUBERNETES_SERVICE_HOST;
  const signal = new AbortController().signal;
  const client = tokenRequestClient({ namespace: 'ns', serviceAccount: 'account', kubeConfig: 'kubeconfig' });
  const files = new TlsFiles('/no/such/certificates');
  const used = {
    json: await jsonParser.parse('{"a":1}'),
    yaml: await yamlParser.parse('a: 1'),
    toml: await tomlParser.parse('a = 1'),
    loader: await new ConfigLoader({ sources: [{ values: { a: 1 } }] }).load(),
    client: await codeOf(client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal })),
    undici: await codeOf(undiciDispatcher(files)),
    others: [otel, prometheus].map((entry) => Object.keys(entry).length > 0),
  };
  await files.close();
  console.log(JSON.stringify(used));
}
