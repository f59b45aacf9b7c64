/** The recipes for services that are not in Debian, with a stand-in. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { expect, onTestFinished, test } from 'vitest';

import { bearer } from '../otlp.js';
import { x509Svid } from '../spiffe.js';
import { followRendered } from '../vault-agent.js';
import { assertion, awsCredentials, googleCredentials } from '../web-identity.js';
import { createAuthority, createServerPair } from '../../../test/support/certificates.js';
import { tokenScene } from './mounted-files.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { listen } from '../../../test/support/tls-clients.js';

/** A service that keeps what it is asked: the header `Authorization` and the body. */
async function startService(answer: string): Promise<{
  readonly url: string;
  readonly asked: { readonly authorization: string | undefined; readonly form: URLSearchParams }[];
}> {
  const asked: { authorization: string | undefined; form: URLSearchParams }[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      asked.push({ authorization: request.headers.authorization, form: new URLSearchParams(body) });
      response
        .setHeader('content-type', answer.startsWith('<') ? 'text/xml' : 'application/json')
        .end(answer);
    });
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, asked };
}

test('OTLP: each request has the current token', async () => {
  const { token, rotate, value } = await tokenScene();
  const { url, asked } = await startService('{}');
  const exporter = new OTLPTraceExporter({ url, headers: bearer(token) });
  onTestFinished(() => exporter.shutdown());
  const send = (): Promise<unknown> => new Promise((resolve) => exporter.export([], resolve));
  await send();
  const next = await rotate();
  await send();
  expect(asked.map(({ authorization }) => authorization)).toEqual([`Bearer ${value}`, `Bearer ${next}`]);
});

test('AWS: each exchange takes the current token', async () => {
  const { token, rotate, value } = await tokenScene();
  const { url, asked } = await startService(
    `
    <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
      <AssumeRoleWithWebIdentityResult>
        <Credentials>
          <AccessKeyId>id</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken>
          <Expiration>2099-01-01T00:00:00Z</Expiration>
        </Credentials>
      </AssumeRoleWithWebIdentityResult>
    </AssumeRoleWithWebIdentityResponse>`.trim(),
  );
  const clientConfig = { endpoint: url, region: 'us-east-1' };
  const provide = awsCredentials(token, { roleArn: 'arn:aws:iam::1:role/app', clientConfig });
  expect(await provide()).toMatchObject({ accessKeyId: 'id', secretAccessKey: 'secret' });
  const next = await rotate();
  await provide();
  expect(asked.map(({ form }) => form.get('WebIdentityToken'))).toEqual([value, next]);
});

test('Google Cloud: each exchange takes the current token', async () => {
  const { token, rotate, value } = await tokenScene();
  // At once to be exchanged again.
  const { url, asked } = await startService(
    '{"access_token":"of-google","token_type":"Bearer","expires_in":1}',
  );
  const client = googleCredentials(token, { audience: 'pool', token_url: url });
  const { token: first } = await client.getAccessToken();
  const next = await rotate();
  await client.getAccessToken();
  expect(first).toBe('of-google');
  expect(asked.map(({ form }) => form.get('subject_token'))).toEqual([value, next]);
});

test('Azure: each assertion is the current token', async () => {
  const { token, rotate, value } = await tokenScene();
  const ask = assertion(token);
  expect(await ask()).toBe(value);
  const next = await rotate();
  expect(await ask()).toBe(next);
});

test('SPIFFE: a set that is written file by file is used when it fits together', async () => {
  const directory = temporaryDirectory();
  const authority = createAuthority('spiffe');
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  const publish = async (name: string, between = (): Promise<void> => Promise.resolve()): Promise<void> => {
    const { cert, key } = createServerPair(authority, { name });
    write('svid.pem', cert);
    await between();
    write('svid_key.pem', key);
    write('svid_bundle.pem', authority.cert);
  };
  await publish('first');
  const svid = x509Svid(directory);
  onTestFinished(() => svid.close());
  await svid.start();
  const subject = (): string | undefined => svid.current?.certificate?.subject;
  expect(subject()).toBe('CN=first');
  await publish('second', async () => {
    await expect.poll(() => svid.status().rejections).toBe(1);
    expect(subject()).toBe('CN=first');
  });
  await expect.poll(subject).toBe('CN=second');
});

test('Vault Agent: what does not fit together is not applied', async () => {
  const directory = temporaryDirectory();
  const paths = ['user', 'password'].map((name) => join(directory, name));
  const [user = '', password = ''] = paths;
  const applied: string[] = [];
  const rejected: string[] = [];
  writeFileSync(user, 'v1');
  const validate = ([one = '', other]: readonly string[]): string => {
    if (one !== other) throw new Error('of two leases');
    return one;
  };
  const watcher = await followRendered(
    paths,
    validate,
    (value) => applied.push(value),
    (error) => rejected.push((error as Error).message),
  );
  onTestFinished(() => watcher.close());
  expect(rejected).toEqual([`not rendered yet: ${password}`]);
  writeFileSync(password, 'v1');
  await expect.poll(() => applied).toEqual(['v1']);
  writeFileSync(password, 'v2');
  await expect.poll(() => rejected.at(-1)).toBe('of two leases');
  writeFileSync(user, 'v2');
  await expect.poll(() => applied).toEqual(['v1', 'v2']);
});
