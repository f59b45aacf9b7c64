/** `retryLogin`: a login that the server refuses while its password is rotated. */
import { join } from 'node:path';

import { credentials, retryLogin, type ClosedError, type CredentialFiles } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';

import { outcomeOf } from '../support/outcome-of.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const refused = new Error('wrong password');
const isRefused = (error: unknown): boolean => error === refused;

interface Scene {
  readonly login: CredentialFiles;
  readonly clock: FakeClock;
  readonly publish: (password: string) => Promise<void>;
  /** What the server accepts. May change. */
  readonly server: { password: string };
  /** Rejects while the server has another password. */
  readonly work: (login: { password: string }) => Promise<string>;
  /** The passwords that were tried. */
  readonly tried: string[];
}

async function openScene(): Promise<Scene> {
  const clock = new FakeClock();
  const volume = new KubeletVolume(join(temporaryDirectory(), 'db'));
  const login = credentials(volume.directory, {
    backend: new ScriptedBackend(),
    resyncIntervalMs: 0,
    clock,
  });
  onTestFinished(() => login.close());
  const publish = async (password: string): Promise<void> => {
    volume.publish({ username: 'app', password });
    await login.check();
  };
  await publish('first');
  const server = { password: 'first' };
  const tried: string[] = [];
  const work = async ({ password }: { password: string }): Promise<string> => {
    tried.push(password);
    await Promise.resolve();
    if (password !== server.password) throw refused;
    return password;
  };
  return { login, clock, publish, server, work, tried };
}

test('a server that has the next password before the file gets the login as soon as the file has it', async () => {
  const { login, clock, publish, server, work, tried } = await openScene();
  server.password = 'second';
  const result = retryLogin(login, work, { isRefused, clock });
  await expect.poll(() => tried).toEqual(['first']);
  await publish('second');
  // Without any time.
  expect(await result).toBe('second');
  expect(tried).toEqual(['first', 'second']);
});

test('a server that gets the password after the file is asked again until it has it, and no pause waits any longer', async () => {
  const { login, clock, publish, server, work, tried } = await openScene();
  const changed = vi.spyOn(login, 'changed');
  await publish('second');
  const result = retryLogin(login, work, { isRefused, clock });
  await expect.poll(() => tried).toEqual(['second']);
  await clock.advance(10_000);
  server.password = 'second';
  expect(await outcomeOf(result, clock)).toBe('second');
  const pauses = changed.mock.calls.map(([options]) => options?.signal?.aborted);
  expect(pauses.length).toBeGreaterThan(5);
  expect(new Set(pauses)).toEqual(new Set([true]));
});

test('a server that keeps refusing is asked less and less often', async () => {
  const { login, clock, publish, work } = await openScene();
  const times: number[] = [];
  const noting = (given: { password: string }): Promise<string> => {
    times.push(clock.monotonic());
    return work(given);
  };
  await publish('second');
  await expect(
    outcomeOf(retryLogin(login, noting, { isRefused, timeoutMs: 5_000, clock }), clock),
  ).rejects.toBe(refused);
  const [first = 0, second = 0] = times;
  const [last = 0, before = 0] = times.toReversed();
  // Eight times as long at least: from 50 ms to 1 s, of which chance may take half.
  expect(last - before).toBeGreaterThanOrEqual(8 * (second - first));
});

test('after timeoutMs it rejects with the error of the server', async () => {
  const { login, clock, publish, work } = await openScene();
  await publish('second');
  const began = clock.now();
  await expect(
    outcomeOf(retryLogin(login, work, { isRefused, timeoutMs: 5_000, clock }), clock),
  ).rejects.toBe(refused);
  expect(clock.now() - began).toBeGreaterThanOrEqual(5_000);
});

test('an error that is no refusal is thrown, and the work is not repeated', async () => {
  const { login, clock, tried } = await openScene();
  const failure = new Error('syntax error');
  const work = ({ password }: { password: string }): never => {
    tried.push(password);
    throw failure;
  };
  await expect(retryLogin(login, work, { isRefused, clock })).rejects.toBe(failure);
  expect(tried).toEqual(['first']);
});

test('closing the files ends the wait', async () => {
  const { login, clock, publish, work, tried } = await openScene();
  await publish('second');
  const result = retryLogin(login, work, { isRefused, clock });
  await expect.poll(() => tried).toEqual(['second']);
  await login.close();
  await expect(result).rejects.toMatchObject({ code: 'ERR_CLOSED' } satisfies Partial<ClosedError>);
});

test('wrong options are refused', async () => {
  const { login, work } = await openScene();
  const call = (options: unknown): Promise<unknown> => retryLogin(login, work, options as never);
  await expect(call({ isRefused: true })).rejects.toThrow(
    'retryLogin: option "isRefused" must be a function',
  );
  await expect(call({})).rejects.toThrow(/isRefused/);
  await expect(call({ isRefused, timeoutMs: -1 })).rejects.toThrow(RangeError);
  await expect(call({ isRefused, retries: 3 })).rejects.toThrow('retries');
});
