/** Errors where two copies of the library are in one process, as two packages of a program may bring them. */
import * as library from 'resilient-watcher';
import * as config from 'resilient-watcher/config';
import * as kubernetes from 'resilient-watcher/kubernetes';
import * as tls from 'resilient-watcher/tls';
import { expect, test, vi } from 'vitest';

type ErrorClass = (abstract new (...args: never[]) => Error) & { readonly prototype: Error };

const classesOf = (...entryPoints: object[]): [name: string, type: ErrorClass][] =>
  entryPoints
    .flatMap((entryPoint) => Object.entries(entryPoint) as [string, ErrorClass][])
    .filter(([name]) => name.endsWith('Error'));

async function anotherCopy() {
  vi.resetModules();
  const copy = await import('resilient-watcher');
  expect(copy.TokenError).not.toBe(library.TokenError);
  return {
    ...copy,
    classes: classesOf(
      copy,
      await import('resilient-watcher/config'),
      await import('resilient-watcher/kubernetes'),
      await import('resilient-watcher/tls'),
    ),
  };
}

test('an error of another copy is an instance of its class, of the base of all, and of no other class', async () => {
  const { classes } = await anotherCopy();
  const own = classesOf(library, config, kubernetes, tls);
  expect(own.length).toBeGreaterThan(9);
  for (const [name, { prototype }] of classes) {
    const error = Object.setPrototypeOf(new Error('a'), prototype) as Error;
    const known = own.filter(([, type]) => error instanceof type).map(([known]) => known);
    expect(known.sort()).toEqual(name === 'ResilientError' ? [name] : ['ResilientError', name].sort());
    expect(Object.create(prototype) instanceof library.ResilientError).toBe(true);
  }
});

test('a class that a program derives has its own instances only', () => {
  class Own extends library.TokenError {}
  const args = ['ERR_TOKEN_REQUEST', 'no'] as const;
  expect(new Own(...args)).toBeInstanceOf(Own);
  expect(new Own(...args)).toBeInstanceOf(library.TokenError);
  expect(new library.TokenError(...args)).not.toBeInstanceOf(Own);
  expect(new Error('no')).not.toBeInstanceOf(library.ResilientError);
  for (const value of [null, undefined, 'no', { name: 'TokenError' }]) {
    expect(value instanceof library.ResilientError).toBe(false);
  }
});

test('a refresher keeps the code of the error of a client of another copy, and how long to wait', async () => {
  const { TokenError } = await anotherCopy();
  const error = new TokenError('ERR_TOKEN_THROTTLED', 'Too many requests', { retryAfterMs: 7_000 });
  await using refresher = new library.TokenRefresher({
    client: { requestToken: () => Promise.reject(error) },
    tokenFile: false,
  });
  const retry = new Promise((resolve) => refresher.once('retry', resolve));
  const started = refresher.start().catch(() => undefined);
  expect(await retry).toMatchObject({
    error: { name: 'TokenError', code: 'ERR_TOKEN_THROTTLED', retryAfterMs: 7_000 },
  });
  await refresher.close();
  await started;
});
