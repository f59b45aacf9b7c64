import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Agent } from 'node:http';
import { isDeepStrictEqual } from 'node:util';

import type { KubeConfig } from '@kubernetes/client-node';

import { guardedAgent } from './guarded-agent.js';

/** What client-node sends requests through: a dispatcher of undici in version 2, an `https.Agent` in version 1. */
interface Pool {
  /** Of a dispatcher: resolves when the requests in flight have finished. */
  close?(): Promise<unknown>;
  /** Of an agent: its idle connections. */
  readonly freeSockets?: Readonly<Record<string, readonly { destroy(): unknown }[] | undefined>>;
  keepAlive?: boolean;
}

/** What of the options says who the client is. */
interface ClientIdentity {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly passphrase?: string;
}

type MakePool = (cluster: unknown, options: object) => Pool | undefined;

/**
 * Makes the requests of a `KubeConfig` share their connections: client-node makes a pool, and with it a connection,
 * for each request. The pool is made anew when the certificates, which client-node reads for each request, differ;
 * requests in flight, watches among them, finish in the old one. A client certificate and a key that do not belong
 * together, read in the middle of a rotation, leave the pool as it is. No redirect takes their credentials elsewhere: a
 * dispatcher does not send them to another origin, an agent does not follow one at all.
 *
 * @returns what closes the pool when requests in flight have finished. Later requests are sent as without it.
 */
export function poolConnections(kubeConfig: KubeConfig): () => Promise<void> {
  const owner = kubeConfig as unknown as Record<string, MakePool | undefined>;
  const name = typeof owner['createDispatcher'] === 'function' ? 'createDispatcher' : 'createAgent';
  const make = owner[name]?.bind(kubeConfig);
  if (!make) return () => Promise.resolve();
  let current: { readonly key: unknown; readonly pool: Pool | undefined; readonly used: unknown } | undefined;
  owner[name] = (cluster, options) => {
    const key = structuredClone({ cluster, options: { ...options } });
    if (!isDeepStrictEqual(current?.key, key) && !(current && isMismatched(options))) {
      void retire(current?.pool);
      const isAgent = name === 'createAgent';
      const pool = make(cluster, isAgent ? { ...options, keepAlive: true } : options);
      current = { key, pool, used: isAgent && pool ? guardedAgent(pool as Agent) : pool };
    }
    return current?.used as Pool | undefined;
  };
  return async () => {
    owner[name] = make;
    await retire(current?.pool);
  };
}

/** Whether there is a certificate and a key, and no handshake can succeed with them. */
function isMismatched({ cert, key, passphrase }: ClientIdentity): boolean {
  if (!cert || !key) return false;
  try {
    return !new X509Certificate(cert).checkPrivateKey(createPrivateKey({ key, passphrase }));
  } catch {
    return true;
  }
}

async function retire(pool: Pool | undefined): Promise<void> {
  if (!pool) return;
  // An agent closes connections that become idle from now on.
  if ('keepAlive' in pool) pool.keepAlive = false;
  for (const idle of Object.values(pool.freeSockets ?? {})) idle?.forEach((socket) => socket.destroy());
  // A dispatcher that was destroyed meanwhile has nothing left to close.
  await pool.close?.().catch(() => {});
}
