/** What a user's program says of types; compiled against the packed declarations. */
import { on, once } from 'node:events';

import {
  AtomicVolume,
  atomicWriteFile,
  ResilientWatcher,
  TokenFile,
  fetchWithToken,
  type Change,
  type Snapshot,
} from 'resilient-watcher';
import { ConfigLoader } from 'resilient-watcher/config';
import { kubeconfigSink, withTokenFile } from 'resilient-watcher/kubernetes';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { KubeConfig } from '@kubernetes/client-node';

export async function main(path: string): Promise<void> {
  const watcher = new ResilientWatcher(path, { clock: new FakeClock(), backend: new ScriptedBackend() });
  watcher.on('change', ({ current, added }) => {
    const snapshot: Snapshot = current;
    const keys: readonly string[] = added;
    const bytes: Uint8Array | undefined = snapshot.files.get('a')?.content;
    if (snapshot.kind === 'file') console.log(snapshot.realPath, keys, bytes?.length);
    // @ts-expect-error -- the content of a missing file is undefined
    snapshot.content.toString();
  });
  watcher.on('error', (error) => {
    const code: 'ERR_LISTENER' = error.code;
    console.log(code, error.event);
  });
  watcher.on('degraded', ({ error }) => {
    const code: `ERR_BACKEND_${string}` = error.code;
    console.log(code, error.sysctl);
  });
  // @ts-expect-error -- there is no such event
  watcher.on('changed', () => undefined);
  // @ts-expect-error -- a duration is a number
  new ResilientWatcher(path, { settleMs: '50' });
  for await (const { current } of watcher) {
    const kind: 'file' | 'missing' | 'volume' | 'directory' | 'group' | 'tree' = current.kind;
    // @ts-expect-error -- were it any, this would compile
    const wrong: number = current;
    console.log(kind, wrong);
  }

  const [change] = (await once(watcher, 'change')) as [Change];
  for await (const [{ current }] of on(watcher, 'change') as AsyncIterable<[Change]>) {
    if (current.kind === change.current.kind) break;
  }
  // @ts-expect-error -- a component is no emitter of Node.js
  watcher.prependListener('change', () => undefined);

  const loader = new ConfigLoader({ sources: [{ values: { level: 'info' } }] });
  await once(loader, 'rejected');
  loader.on('change', ({ current }) => console.log(current));
  await atomicWriteFile(path, 'data', { mode: 0o600 });
  const { revision } = await new AtomicVolume(path).write({ a: 'b' });
  const response: Response = await fetchWithToken(new TokenFile(path))(`https://localhost/${revision}`);
  console.log(response.status, kubeconfigSink({ path, server: 'https://localhost' }));
  withTokenFile(new KubeConfig());
}
