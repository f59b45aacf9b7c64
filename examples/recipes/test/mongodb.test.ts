/** The recipes of MongoDB. Its server is not in Debian; a stand-in speaks as much of its protocol as a login needs. */
import { MongoClient } from 'mongodb';
import { expect, onTestFinished, test } from 'vitest';

import { oidc, x509 } from '../mongodb.js';
import { createAuthority } from '../../../test/support/certificates.js';
import { tlsScene, tokenScene } from './mounted-files.js';
import { startMongodb } from './mongodb-stand-in.js';

test('mongodb: each connection logs in as the subject of the current certificate', async () => {
  const authority = createAuthority('CA');
  const { files, publish } = await tlsScene(authority);
  const { port, disconnect } = await startMongodb(authority);
  const client = new MongoClient(`mongodb://localhost:${port}`, x509(files));
  onTestFinished(() => client.close());
  const user = async (): Promise<unknown> => {
    const { authInfo } = await client.db('admin').command({ connectionStatus: 1 });
    return (authInfo as { authenticatedUsers: { user: string }[] }).authenticatedUsers[0]?.user;
  };
  expect(await user()).toBe('CN=client-0');
  await publish('client-1');
  expect(await user()).toBe('CN=client-0'); // the open connection continues
  disconnect();
  await expect.poll(() => user().catch(() => undefined)).toBe('CN=client-1');
});

test('mongodb: the OIDC callback gives the current token', async () => {
  const { token, rotate, value } = await tokenScene();
  const client = new MongoClient('mongodb://localhost', oidc(token));
  const ask = client.options.credentials?.mechanismProperties.OIDC_CALLBACK;
  const question = { timeoutContext: new AbortController().signal, version: 1 } as const;
  expect(await ask?.(question)).toMatchObject({ accessToken: value });
  const next = await rotate();
  expect(await ask?.(question)).toMatchObject({ accessToken: next });
});
