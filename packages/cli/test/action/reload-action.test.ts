import { expect, onTestFinished, test, vi } from 'vitest';

import {
  commandAction,
  ReloadAction,
  webhookAction,
  type Action,
  type ActionUpdate,
  type ReloadActionOptions,
} from '../../src/action.js';
import client, { Registry } from 'prom-client';
import { healthOf, logTo } from 'resilient-watcher';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { FakeClock } from 'resilient-watcher/testing';

import { Outcome } from 'resilient-watcher/internal';

const update = (key: string): ActionUpdate => ({
  paths: [{ path: '/etc/app', added: [], changed: [key], removed: [], revision: `..${key}` }],
  cause: 'fs',
});

const keysIn = ({ paths }: ActionUpdate): string[] => paths.flatMap(({ changed }) => changed);

/** An action whose runs the test ends, and a record of them. */
function scene(options: Partial<ReloadActionOptions> = {}) {
  const clock = new FakeClock();
  const runs: { keys: string[]; signal: AbortSignal; outcome: Outcome<void> }[] = [];
  const events: string[] = [];
  const action: Action = {
    name: 'reload',
    run: (given, { signal }) => {
      const outcome = new Outcome<void>();
      runs.push({ keys: keysIn(given), signal, outcome });
      signal.addEventListener('abort', () => outcome.reject(new Error('stopped')));
      return outcome.promise;
    },
  };
  const reload = new ReloadAction({ action, clock, random: () => 0, ...options });
  onTestFinished(() => reload.close());
  reload.on('succeeded', ({ update: done }) => events.push(`succeeded ${keysIn(done).join()}`));
  reload.on('failed', ({ error, retryDelayMs }) => events.push(`${error.code} ${retryDelayMs}`));
  reload.on('rejected', ({ error }) => events.push(`rejected ${error.message}`));
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  };
  return { reload, runs, events, clock, settled };
}

test('a failure is retried with a growing delay until it succeeds, and a newer update is tried at once', async () => {
  const { reload, runs, events, clock, settled } = scene({ retryDelayMs: 1_000 });
  reload.trigger(update('a'));
  await settled();
  runs[0]?.outcome.reject(new Error('no'));
  await settled();
  expect([events, reload.state]).toEqual([['ERR_ACTION_FAILED 1000'], 'retrying']);
  await clock.advance(1_000);
  await settled();
  runs[1]?.outcome.reject(new Error('no'));
  await settled();
  expect(events).toEqual(['ERR_ACTION_FAILED 1000', 'ERR_ACTION_FAILED 2000']);
  reload.trigger(update('b'));
  await settled();
  expect(runs[2]?.keys).toEqual(['a', 'b']);
  runs[2]?.outcome.reject(new Error('no'));
  await settled();
  expect(events.at(-1), 'the first delay of a newer update').toBe('ERR_ACTION_FAILED 1000');
  await clock.advance(1_000);
  await settled();
  runs[3]?.outcome.resolve();
  await reload.idle();
  expect(events.at(-1)).toBe('succeeded a,b');
});

test('after a failed check nothing runs until the next update, which has the keys of both', async () => {
  let isGood = false;
  const check: Action = {
    name: 'check',
    run: () => (isGood ? Promise.resolve() : Promise.reject(new Error('bad configuration'))),
  };
  const { reload, runs, events, settled } = scene({ check });
  reload.trigger(update('a'));
  await reload.idle();
  expect([runs.length, events]).toEqual([0, ['rejected Action "check" failed: bad configuration']]);
  isGood = true;
  reload.trigger(update('b'));
  await settled();
  expect(runs.map(({ keys }) => keys)).toEqual([['a', 'b']]);
  runs[0]?.outcome.resolve();
  await reload.idle();
});

test('a run that does not stop is abandoned after stopTimeoutMs', async () => {
  const action: Action = { name: 'dead', run: () => new Promise(() => undefined) };
  const { reload, events, clock, settled } = scene({
    action,
    timeoutMs: 1_000,
    stopTimeoutMs: 5_000,
    maxAttempts: 1,
  });
  reload.trigger(update('a'));
  await settled();
  await clock.advance(6_000);
  await reload.idle();
  expect(events).toEqual(['ERR_ACTION_TIMEOUT null']);
});

test('a run that ignores its signal has failed for status, probes and metrics when its time is up', async () => {
  const ended = new Outcome<void>();
  onTestFinished(() => ended.resolve());
  const action: Action = { name: 'deaf', run: () => ended.promise };
  const { reload, events, clock, settled } = scene({ action, timeoutMs: 1_000, stopTimeoutMs: 5_000 });
  reload.trigger(update('a'));
  await settled();
  await clock.advance(1_000);
  await settled();
  expect(reload.status()).toMatchObject({
    state: 'running',
    lastSuccessful: false,
    lastError: { code: 'ERR_ACTION_TIMEOUT' },
  });
  expect(healthOf(reload).ready).toBe(false);
  ended.resolve();
  await reload.idle();
  expect([events, reload.status().lastSuccessful]).toEqual([['succeeded a'], true]);
});

test('a first delay above the longest one is refused', () => {
  expect(() => scene({ retryDelayMs: 60_001 })).toThrow(
    'option "retryDelayMs" must be at most "maxRetryDelayMs" (ms), got 60001 and 60000',
  );
});

test('several actions run one after another, and a retry begins with the one that failed', async () => {
  const order: string[] = [];
  let isDown = true;
  const first: Action = { name: 'first', run: () => Promise.resolve(void order.push('first')) };
  const second: Action = {
    name: 'second',
    run: () => {
      order.push('second');
      return isDown ? Promise.reject(new Error('down')) : Promise.resolve();
    },
  };
  const { reload, clock } = scene({ action: [first, second] });
  reload.trigger(update('a'));
  await clock.advance(0);
  isDown = false;
  await clock.advance(1_000);
  await reload.idle();
  expect(order).toEqual(['first', 'second', 'second']);
});

test('with a check, an update that comes while an action runs is checked before the next action', async () => {
  const order: string[] = [];
  const outcome = new Outcome<void>();
  const named = (name: string, ended = Promise.resolve()): Action => ({
    name,
    run: (given) => {
      order.push(`${name} ${keysIn(given).join()}`);
      return ended;
    },
  });
  const action = [named('first', outcome.promise), named('second')];
  const { reload, events, settled } = scene({ action, check: named('check') });
  reload.trigger(update('a'));
  await settled();
  reload.trigger(update('b'));
  outcome.resolve();
  await reload.idle();
  expect(order).toEqual(['check a', 'first a', 'check a,b', 'first a,b', 'second a,b']);
  expect(events).toEqual(['succeeded a,b']);
});

test('an update after a success waits for the cooldown, and the newest of several wins', async () => {
  const { reload, runs, clock, settled } = scene({ cooldownMs: 10_000 });
  reload.trigger(update('a'));
  await settled();
  expect(runs).toHaveLength(1);
  runs[0]?.outcome.resolve();
  await settled();
  for (const key of ['b', 'c']) {
    await clock.advance(4_000);
    reload.trigger(update(key));
    await settled();
    expect([runs.length, reload.state]).toEqual([1, 'waiting']);
  }
  await clock.advance(2_000);
  await settled();
  expect(runs.map(({ keys }) => keys)).toEqual([['a'], ['b', 'c']]);
  runs[1]?.outcome.resolve();
  await settled();
  await clock.advance(10_000);
  reload.trigger(update('d'));
  await settled();
  expect(runs).toHaveLength(3);
});

test('close() during the splay ends the wait, and idle() resolves', async () => {
  const { reload, runs, clock, settled } = scene({ splayMs: 1_000, random: () => 0.5, maxAttempts: 1 });
  reload.trigger(update('a'));
  await clock.advance(500);
  runs[0]?.outcome.reject(new Error('no'));
  await settled();
  // What failed is part of the next update, which waits.
  reload.trigger(update('b'));
  await settled();
  await reload.close();
  await expect(reload.idle()).resolves.toBeUndefined();
  expect([runs.length, clock.pending]).toEqual([1, 0]);
});

test('close() stops the run under way, waits for it, and nothing runs afterwards', async () => {
  const { reload, runs } = scene();
  reload.trigger(update('a'));
  reload.trigger(update('b'));
  await Promise.resolve();
  await reload.close();
  expect(runs.every(({ signal }) => signal.aborted)).toBe(true);
  expect(() => reload.trigger(update('c'))).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }));
});

const get = (): Promise<string> => Promise.resolve('secret');

test.each<[string, () => Action, RegExp]>([
  ['no command', () => commandAction({} as never), /option "command" must be a non-empty string/],
  [
    'an unknown option',
    () => commandAction({ command: 'a', timeout: 1 } as never),
    /unknown option "timeout"/,
  ],
  ['no such signal', () => commandAction({ command: 'a', stopSignal: 'HUP' as never }), /"stopSignal"/],
  [
    'arguments that a shell ignores',
    () => commandAction({ command: 'a', args: ['b'], shell: true }),
    /"args"/,
  ],
  ['no URL', () => webhookAction({} as never), /"url" must be an http\(s\) URL/],
  ['a URL of another protocol', () => webhookAction({ url: 'ftp://a/' }), /"url" must be an http\(s\) URL/],
  [
    'a token and a header',
    () => webhookAction({ url: 'http://a/', token: { get }, headers: { Authorization: 'Basic eA==' } }),
    /give one of "token"/,
  ],
  [
    'a token and a password',
    () => webhookAction({ url: 'http://u:p@a/', token: { get } }),
    /give one of "token"/,
  ],
])('an action with %s is refused', (_what, make, says) => {
  expect(make).toThrow(says);
});

test('what was not handled is kept, whatever happened to it, until a run succeeds', async () => {
  const { reload, runs, clock, settled } = scene({ maxAttempts: 1 });
  const left = (): string[] | undefined => reload.unhandled && keysIn(reload.unhandled);
  expect(left()).toBeUndefined();
  reload.trigger(update('a'));
  await settled();
  expect(left()).toEqual(['a']);
  reload.trigger(update('b'));
  expect(left()).toEqual(['a', 'b']);
  runs[0]?.outcome.reject(new Error('no'));
  await settled();
  expect([runs.length, left()]).toEqual([2, ['a', 'b']]);
  const atSuccess: unknown[] = [];
  reload.on('succeeded', () => atSuccess.push(left()));
  runs[1]?.outcome.resolve();
  await reload.idle();
  expect(atSuccess).toEqual([undefined]);
  reload.trigger(update('c'));
  await settled();
  reload.trigger(update('d'));
  await reload.close();
  expect([left(), clock.pending]).toEqual([['c', 'd'], 0]);
});

test('the error of an action of another copy of the package keeps its code', async () => {
  const { reload, runs, events, settled } = scene({ maxAttempts: 1 });
  vi.resetModules();
  const { ActionError } = await import('@resilient-watcher/cli/action');
  reload.trigger(update('a'));
  await settled();
  runs[0]?.outcome.reject(new ActionError('ERR_ACTION_TIMEOUT', 'It took too long'));
  await settled();
  expect(events).toEqual(['ERR_ACTION_TIMEOUT null']);
});

test('a reload is ready unless its last action failed, and its runs are counted by their result', async () => {
  const registry = new Registry();
  using _metrics = collectMetrics({ client, registry });
  const { reload, runs, settled } = scene({ maxAttempts: 1 });
  const runOnce = async (end: (outcome: Outcome<void>) => void): Promise<boolean> => {
    reload.trigger(update('a'));
    await settled();
    end(runs.at(-1)?.outcome ?? new Outcome());
    await settled();
    return healthOf(reload).ready;
  };
  expect(healthOf(reload).ready).toBe(true);
  expect(await runOnce((outcome) => outcome.reject(new Error('no')))).toBe(false);
  expect(await registry.metrics()).toMatch(/resilient_watcher_action_failing\{target="[^"]*"\} 1/);
  expect(await runOnce((outcome) => outcome.resolve())).toBe(true);
  const text = await registry.metrics();
  for (const result of ['succeeded', 'error'])
    expect(text).toMatch(
      new RegExp(`actions_total\\{target="[^"]*",action="custom",result="${result}"\\} 1`),
    );
  expect(text).toMatch(/resilient_watcher_action_failing\{target="[^"]*"\} 0/);
});

test('a log has one line for each attempt and its outcome, with what the update was', async () => {
  const lines: [text: string, fields: object][] = [];
  const log = (fields: object, text: string): void => void lines.push([text, fields]);
  using _log = logTo({ debug: log, info: log, warn: log, error: log });
  const { reload, runs, clock, settled } = scene({ retryDelayMs: 1_000 });
  await reload.start();
  reload.trigger(update('a'));
  await settled();
  runs[0]?.outcome.reject(new Error('no'));
  await settled();
  await clock.advance(1_000);
  await settled();
  runs[1]?.outcome.resolve();
  await settled();
  expect(lines.map(([text]) => text.replace('ReloadAction "reload": ', ''))).toEqual([
    'started',
    'attempt 1',
    'Action "reload" failed: no; next attempt in 1000 ms',
    'attempt 2',
    'done in 0 ms',
  ]);
  expect(lines[2]?.[1]).toMatchObject({
    event: 'failed',
    name: 'reload',
    update: update('a'),
    error: { code: 'ERR_ACTION_FAILED' },
    retryDelayMs: 1_000,
  });
});
