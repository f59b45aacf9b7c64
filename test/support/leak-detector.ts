/**
 * Finds secrets in what the library publishes: no payload of a diagnostics channel, and no status that can be had
 * through one, may contain what a listener was given in confidence: a token, or the contents of a file.
 */
import { subscribe } from 'node:diagnostics_channel';

import { EventEmitter } from 'eventemitter3';

import type { ComponentMessage } from '../../src/core/telemetry/telemetry-messages.js';
import { followNames, operationChannel } from '../../src/core/telemetry/telemetry.js';

/** Shorter ones, such as "one", are in other words too. */
const SHORTEST = 12;
/** Of one event; a tree may have thousands of files. */
const MOST_FILES = 20;
const MOST_SECRETS = 100;

/** As JSON has them, with its escapes. */
const secrets = new Set<string>();
const leaks: string[] = [];

function plant(secret: unknown): void {
  if (!(typeof secret === 'string' || Buffer.isBuffer(secret)) || secret.length > 10_000) return;
  const text = secret.toString().trim();
  // What a test writes as content may be a path or the name of a revision, which is no secret.
  if (text.length < SHORTEST || /^(\/|\.\.\d)/.test(text)) return;
  secrets.add(JSON.stringify(text).slice(1, -1));
  if (secrets.size <= MOST_SECRETS) return;
  const [oldest = ''] = secrets;
  secrets.delete(oldest);
}

/** What an event gives to its listeners. */
interface Confidence {
  readonly token?: { readonly value?: unknown };
  readonly current?: {
    readonly value?: unknown;
    readonly files?: unknown;
  };
}

const isMap = (value: unknown): value is ReadonlyMap<string, { readonly content?: unknown }> =>
  Object.prototype.toString.call(value) === '[object Map]';

const { emit } = EventEmitter.prototype;
EventEmitter.prototype.emit = function (this: EventEmitter, event: never, ...args: never[]): boolean {
  const { token, current } = Object(args[0]) as Confidence;
  plant(token?.value);
  plant(current?.value);
  if (isMap(current?.files))
    for (const { content } of [...current.files.values()].slice(0, MOST_FILES)) plant(content);
  return emit.call(this, event, ...args);
} as typeof emit;

function search(channel: string, payload: unknown): void {
  const text = JSON.stringify(payload);
  if (/eyJ[\w-]{10,}\.[\w-]{10,}\./.test(text)) leaks.push(`${channel}: a JWT in ${text}`);
  for (const secret of secrets) {
    if (text.includes(secret)) leaks.push(`${channel}: ${secret} in ${text}`);
  }
}

followNames('events', (name) => {
  subscribe(`resilient-watcher:${name}`, (message) => {
    const { component } = message as ComponentMessage;
    search(`resilient-watcher:${name}`, [message, component.status()]);
  });
});
followNames('operations', (name) => {
  // Of a check only its cause and its result are published, and one that nobody observes takes a shorter way.
  if (name === 'check') return;
  const listener = (message: object): void => search(`resilient-watcher.${name}`, message);
  operationChannel(name).subscribe({
    start: listener,
    end() {},
    asyncStart() {},
    asyncEnd: listener,
    error() {},
  });
});

/** What was published in confidence since the last call, and by whom. */
export function takeLeaks(): string[] {
  secrets.clear();
  return leaks.splice(0);
}
