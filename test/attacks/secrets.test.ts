/**
 * What others throw may hold a secret anywhere in itself; no error of the library or of its packages carries it along.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import {
  atomicWriteFile,
  BackendError,
  credentials,
  ListenerError,
  SecretFile,
  TargetError,
  TokenError,
  TokenFile,
  WriteError,
} from 'resilient-watcher';
import { commandAction, ReloadAction, webhookAction, type Action } from '@resilient-watcher/cli/action';
import { KubernetesError } from 'resilient-watcher/kubernetes';
import type { EventEmitter } from 'eventemitter3';
import { FakeClock, mintTestToken, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { shownBy } from '../support/shown-by.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const jwt = mintTestToken({ jti: 'stolen' });
const password = 'correct+horse/battery=staple';

/** An error as HTTP clients throw it: with the request, and so the credentials. */
function revealing(secret: string): Error {
  return Object.assign(new Error(`401 for ${secret}`, { cause: { secret } }), {
    config: { headers: { authorization: `Bearer ${secret}` } },
    [inspect.custom]: () => secret,
    toJSON: () => secret,
  });
}

test('an error of this library has a copy of a foreign cause, without the fields that may hold a secret', () => {
  const options = { cause: revealing(jwt) };
  const errors = [
    new TokenError('ERR_TOKEN_REQUEST', 'x', options),
    new TargetError('ERR_TARGET_IO', '/x', 'x', options),
    new BackendError('ERR_BACKEND_DOWN', 'fs', 'x', options),
    new WriteError('ERR_WRITE_IO', 'x', { path: '/x', step: 'rename', published: false }, options),
    new KubernetesError('ERR_KUBECONFIG', 'x', options),
    new ListenerError('change', revealing(jwt)),
    new ListenerError('change', new TokenError('ERR_TOKEN_REQUEST', jwt, options)),
  ];
  for (const error of errors) {
    expect(shownBy(error)).not.toContain(jwt);
    expect((error.cause as Error).message).toMatch(/^401 for \[redacted\]$|^\[redacted\]$/);
  }
});

test.each(['throws', 'rejects'])(
  'a listener that %s with the secret that it received does not reveal it',
  async (how) => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'login'));
    writeFileSync(join(directory, 'password'), password);
    writeFileSync(join(directory, 'token'), 'opaque-t0ken-of-a-cloud\n');
    writeFileSync(join(directory, 'login', 'username'), 'app');
    writeFileSync(join(directory, 'login', 'password'), password);
    const ports = { clock: new FakeClock(), backend: new ScriptedBackend() };
    const sources = [
      new SecretFile(join(directory, 'password'), ports),
      credentials(join(directory, 'login'), ports),
      new TokenFile(join(directory, 'token'), { ...ports, format: 'opaque' }),
    ];
    for (const source of sources) {
      onTestFinished(() => source.close());
      const emitter = source as unknown as EventEmitter<Record<string, unknown[]>>;
      const failed = new Promise<Error>((resolve) => emitter.on('error', (error) => resolve(error as Error)));
      const fail = ({ current }: Record<string, object | undefined>): unknown => {
        const value = Object(current) as { value?: string; password?: string };
        const error = revealing(value.value ?? value.password ?? '');
        if (how === 'throws') throw error;
        return Promise.reject(error);
      };
      emitter.on('change', fail as never);
      await source.start();
      const error = await failed;
      expect(error).toBeInstanceOf(ListenerError);
      expect(shownBy(error)).not.toMatch(/horse|battery|t0ken/);
      expect(JSON.stringify(source.status())).not.toMatch(/horse|battery|t0ken/);
    }
  },
);

test('a source of data that quotes a token does not put it into the error of the write', async () => {
  const source = async function* (): AsyncGenerator<Buffer> {
    await Promise.resolve();
    throw revealing(jwt);
  };
  const error = await atomicWriteFile(join(temporaryDirectory(), 'file'), source()).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'ERR_WRITE_SOURCE' });
  expect(shownBy(error as Error)).not.toContain(jwt);
});

test.each<[string, () => Action]>([
  ['of the application', () => ({ name: 'own', run: () => Promise.reject(revealing(jwt)) })],
  [
    'that is a program which does not exist',
    () => commandAction({ command: '/no/such/program', args: [`--token=${jwt}`] }),
  ],
  [
    'that is a webhook whose token fits no header',
    () => webhookAction({ url: 'http://127.0.0.1:1/', token: { get: () => Promise.resolve(`${jwt}\n€`) } }),
  ],
  [
    'that is a webhook with a header that fits none',
    () => webhookAction({ url: 'http://127.0.0.1:1/', headers: { 'x-api-key': `${password}\n€` } }),
  ],
  [
    'that is a webhook with a header of two lines, which is quoted',
    () => webhookAction({ url: 'http://127.0.0.1:1/', headers: { 'x-api-key': `${password}\nx` } }),
  ],
])('an action %s does not show secrets when it fails', async (_which, makeAction) => {
  const reload = new ReloadAction({ action: makeAction(), clock: new FakeClock() });
  onTestFinished(() => reload.close());
  const failed = new Promise<Error>((resolve) => reload.on('failed', ({ error }) => resolve(error)));
  reload.trigger({ paths: [], cause: 'fs' });
  const error = await failed;
  expect(error).toMatchObject({ name: 'ActionError' });
  expect(shownBy(error)).not.toMatch(/eyJ|horse|battery/);
});
