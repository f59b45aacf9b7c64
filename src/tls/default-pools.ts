/**
 * Pools of the clients that use the default CA list of Node.js, as far as public calls can replace them.
 *
 * | connection                   | a CA was removed                                                               |
 * |------------------------------|--------------------------------------------------------------------------------|
 * | of `https.globalAgent`       | new requests get a new agent with the same settings; idle connections and those |
 * |                              | in their handshake are destroyed, others after their request, at the latest in  |
 * |                              | 30 s; requests that wait for one get a new one                                  |
 * | of undici's global dispatcher| new requests get a new one; the old one is closed, and destroyed in 30 s        |
 *
 * A global agent or dispatcher of another class than `Agent` stays: it has settings that only the application knows. So
 * does one that cannot be replaced, which holds up no other.
 */
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import type { Duplex } from 'node:stream';

import { endEach, isInHandshake } from './generation.js';

/** The dispatcher of `fetch()` and of undici, as undici documents it. */
interface Dispatcher {
  readonly constructor: new (wrapped?: Dispatcher) => Dispatcher;
  close(): Promise<void>;
  destroy(): Promise<void>;
}

/** The second one is that of the `fetch()` of Node.js: for undici 8, a `Dispatcher1Wrapper` of the first one. */
const GLOBAL_DISPATCHERS = ['undici.globalDispatcher.2', 'undici.globalDispatcher.1'].map((name) =>
  Symbol.for(name),
);

/** What became of the pools. */
interface Replacement {
  /** How many connections of the agent end. */
  readonly ended: number;
  /** Why a pool stays, for each that could not be replaced. */
  readonly failures: readonly unknown[];
}

export function replaceDefaultPools(): Replacement {
  const failures: unknown[] = [];
  let ended = 0;
  for (const replace of [replaceDispatchers, () => (ended = replaceAgent())]) {
    try {
      replace();
    } catch (error) {
      failures.push(error);
    }
  }
  return { ended, failures };
}

function replaceAgent(): number {
  const old = https.globalAgent;
  if (old.constructor !== https.Agent) return 0;
  https.globalAgent = successorOf(old);
  syncBuiltinESMExports();
  const idle = new Set(socketsIn(old.freeSockets));
  const ending = new Set([...socketsIn(old.sockets), ...idle]);
  // Before the listener of Node.js, which ignores destroyed connections. Requests that wait get new ones, without a
  // session.
  old.prependListener('free', (socket: Duplex) => ending.has(socket) && socket.destroy());
  old.options.session = undefined;
  return endEach([...ending], (socket) => (idle.has(socket) || isInHandshake(socket)) && socket.destroy());
}

/** Events that the agent itself listens to, with functions of its own. */
const OF_AGENT = ['free', 'newListener'];
const COUNTS = ['totalSocketCount', '_eventsCount'];

/** A new agent with the options, and with what the application has set or changed since. */
function successorOf(old: https.Agent): https.Agent {
  const agent = new https.Agent(old.options);
  for (const event of old.eventNames()) {
    if (OF_AGENT.includes(String(event))) continue;
    for (const listener of old.rawListeners(event)) agent.on(event, listener as () => void);
  }
  for (const key of Reflect.ownKeys(old)) {
    const property = Object.getOwnPropertyDescriptor(old, key);
    // Objects that every agent has, such as lists of sockets, are its state, and others are settings.
    const isState = COUNTS.includes(String(key)) || Object(property?.value) === property?.value;
    if (property && !(isState && Object.hasOwn(agent, key))) Object.defineProperty(agent, key, property);
  }
  return agent;
}

function replaceDispatchers(): void {
  const globals = globalThis as unknown as Record<symbol, Dispatcher | undefined>;
  const replaced = new Map<Dispatcher, Dispatcher>();
  let last: Dispatcher | undefined;
  for (const name of GLOBAL_DISPATCHERS) {
    const old = globals[name];
    const kind = old?.constructor.name;
    if (!old || (kind !== 'Agent' && !(kind === 'Dispatcher1Wrapper' && last))) continue;
    const next = replaced.get(old) ?? new old.constructor(kind === 'Agent' ? undefined : last);
    globals[name] = next;
    replaced.set(old, next);
    last = next;
  }
  const endings = [...replaced.keys()].map((old) => ({
    close: () => old.close().catch(() => {}),
    destroy: () => old.destroy().catch(() => {}),
  }));
  endEach(endings, (old) => old.close());
}

function socketsIn(pools: NodeJS.ReadOnlyDict<Duplex[]>): Duplex[] {
  return Object.values(pools).flatMap((sockets) => sockets ?? []);
}
