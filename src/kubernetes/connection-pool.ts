import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';

import type { KubeConfig } from '@kubernetes/client-node';

import { nodeUtil } from '../core/ports/builtins.js';

/** The transport of client-node: a dispatcher of undici in version 2, an `https.Agent` in version 1. */
interface Pool {
  /** Dispatcher only: resolves when the requests in flight have finished. */
  close?(): Promise<unknown>;
  /** Agent only: the idle connections. */
  readonly freeSockets?: Readonly<Record<string, readonly { destroy(): unknown }[] | undefined>>;
  keepAlive?: boolean;
}

/** The options that identify the client. */
interface ClientIdentity {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly passphrase?: string;
}

/** What client-node creates its transports with; version 2 uses agents for WebSockets only. */
const METHODS = ['createDispatcher', 'createAgent'] as const;

type MakePool = (cluster: unknown, options: object) => Pool | undefined;
type Owner = Partial<Record<(typeof METHODS)[number], MakePool>> & {
  /** Of version 2: an agent for each cluster and user, whatever their certificates. */
  readonly agentCache?: Map<string, unknown>;
};

/**
 * Makes the requests of a `KubeConfig` share their connections: by itself, client-node creates a pool, and with it a
 * connection, for each request, and keeps the first agent for its WebSockets (exec, attach, port-forward) forever.
 * client-node also reads the certificates for each request; when they differ, a new pool is created, and requests in
 * flight, including watches, finish in the old one. A client certificate and a key that do not match, read in the middle
 * of a rotation, do not replace the pool. Redirects do not leak credentials: a dispatcher does not send them to another
 * origin, and an agent does not follow redirects at all.
 *
 * @returns a function that closes the pools when requests in flight have finished. Later requests do not use them.
 */
export function poolConnections(kubeConfig: KubeConfig): () => Promise<void> {
  const owner = kubeConfig as unknown as Owner;
  const closes = METHODS.map((name) => share(owner, name));
  return async () => {
    await Promise.all(closes.map((close) => close()));
  };
}

function share(owner: Owner, name: (typeof METHODS)[number]): () => Promise<void> {
  const make = owner[name]?.bind(owner);
  if (!make) return () => Promise.resolve();
  const isAgent = name === 'createAgent';
  let current: { readonly key: unknown; readonly pool: Pool | undefined; readonly used: unknown } | undefined;
  owner[name] = (cluster, options) => {
    const key = structuredClone({ cluster, options: { ...options } });
    if (!nodeUtil.isDeepStrictEqual(current?.key, key) && !(current && isMismatched(options))) {
      void retire(current?.pool);
      if (isAgent) owner.agentCache?.clear();
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

/** Whether there are a certificate and a key that do not match, so that no handshake can succeed. */
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
  // From now on, the agent closes connections as soon as they are idle.
  if ('keepAlive' in pool) pool.keepAlive = false;
  for (const idle of Object.values(pool.freeSockets ?? {})) idle?.forEach((socket) => socket.destroy());
  // Rejects if the dispatcher was destroyed meanwhile: nothing is left to close.
  await pool.close?.().catch(() => {});
}

/** The method with which Node.js sends a request through an agent; the types lack it. */
interface RequestingAgent {
  addRequest(request: ClientRequest, ...rest: unknown[]): void;
}

/**
 * Makes an agent refuse redirects, and returns it. client-node 1.x follows redirects, sends the bearer token to any port
 * of the host, and has no option to prevent that. Without its `Location` header, a redirect is handled like any other
 * failure.
 */
function guardedAgent(agent: Agent): Agent {
  const usual = agent as unknown as RequestingAgent;
  const guard: RequestingAgent = {
    addRequest(request, ...rest) {
      request.once('response', dropLocation);
      usual.addRequest(request, ...rest);
    },
  };
  return Object.assign(Object.create(agent) as Agent, guard);
}

function dropLocation({ headers, rawHeaders }: IncomingMessage): void {
  delete headers.location;
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (rawHeaders[at]?.toLowerCase() === 'location') rawHeaders.splice(at, 2);
  }
}
