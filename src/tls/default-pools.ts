/**
 * Pools of the clients that use the default CA list of Node.js, as far as public calls can replace them.
 *
 * | connection                   | a CA was removed                                                               |
 * |------------------------------|--------------------------------------------------------------------------------|
 * | of `https.globalAgent`       | new requests get a new agent; idle connections and those in their handshake are |
 * |                              | destroyed, others after their request, at the latest in 30 s                   |
 * | of undici's global dispatcher| new requests get a new one; the old one is closed, and destroyed in 30 s        |
 *
 * A global agent or dispatcher of another class than `Agent` stays: it has settings that only the application knows.
 */
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import type { Duplex } from 'node:stream';

import { endEach, isInHandshake } from './generation.js';

/** The dispatcher of `fetch()` and of undici, as undici documents it. */
interface Dispatcher {
  readonly constructor: new () => Dispatcher;
  close(): Promise<void>;
  destroy(): Promise<void>;
}

const GLOBAL_DISPATCHERS = ['undici.globalDispatcher.1', 'undici.globalDispatcher.2'].map((name) =>
  Symbol.for(name),
);

/** Replaces the pools. Returns how many connections of the agent end. */
export function replaceDefaultPools(): number {
  replaceDispatchers();
  return replaceAgent();
}

function replaceAgent(): number {
  const old = https.globalAgent;
  if (old.constructor !== https.Agent) return 0;
  https.globalAgent = new https.Agent(old.options);
  syncBuiltinESMExports();
  const inUse = socketsIn(old.sockets);
  const idle = socketsIn(old.freeSockets);
  // Before the listener of Node.js, which ignores destroyed connections.
  old.prependListener('free', (socket: Duplex) => socket.destroy());
  const isIdle = new Set(idle);
  return endEach(
    [...inUse, ...idle],
    (socket) => (isIdle.has(socket) || isInHandshake(socket)) && socket.destroy(),
  );
}

function replaceDispatchers(): void {
  const globals = globalThis as unknown as Record<symbol, Dispatcher | undefined>;
  const replaced = new Map<Dispatcher, Dispatcher>();
  for (const name of GLOBAL_DISPATCHERS) {
    const old = globals[name];
    if (old?.constructor.name !== 'Agent') continue;
    const replacement = replaced.get(old) ?? new old.constructor();
    replaced.set(old, replacement);
    globals[name] = replacement;
  }
  endEach([...replaced.keys()], (old) => old.close().catch(() => {}));
}

function socketsIn(pools: NodeJS.ReadOnlyDict<Duplex[]>): Duplex[] {
  return Object.values(pools).flatMap((sockets) => sockets ?? []);
}
