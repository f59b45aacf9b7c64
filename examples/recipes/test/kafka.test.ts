/** The recipes of kafkajs, with a stand-in that speaks as much of Kafka's protocol as a login needs. */
import { createServer } from 'node:tls';

import { Kafka, logLevel, type KafkaConfig } from 'kafkajs';
import { expect, test } from 'vitest';

import { oauth, password } from '../kafkajs-sasl.js';
import { tls } from '../kafkajs.js';
import { createAuthority, createServerPair } from '../../../test/support/certificates.js';
import { startKafka } from './kafka-stand-in.js';
import { loginScene } from './login-scene.js';
import { tlsScene, tokenScene } from './mounted-files.js';
import { listen } from '../../../test/support/tls-clients.js';

/** Connects each time it is called. */
function connector(port: number, options: Partial<KafkaConfig>): () => Promise<void> {
  const kafka = new Kafka({
    brokers: [`localhost:${port}`],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
    ...options,
  });
  return async () => {
    const admin = kafka.admin();
    await admin.connect();
    await admin.disconnect();
  };
}

test.each(['plain', 'scram-sha-256', 'scram-sha-512'] as const)(
  'kafkajs: with SASL %s each connection logs in with the current username and password',
  async (mechanism) => {
    const passwords = new Map([['app_0', 'first']]);
    const seen: string[] = [];
    const port = await startKafka({ passwords, onLogin: (by, who) => seen.push(`${by} ${who}`) });
    const scene = loginScene();
    await scene.publish('app_0', 'first');
    const connect = connector(port, { sasl: password(scene.login, mechanism) });
    await connect();
    passwords.delete('app_0');
    await expect(connect()).rejects.toThrow('refused');
    passwords.set('app_1', 'second');
    await scene.publish('app_1', 'second');
    await connect();
    expect(seen).toEqual([`${mechanism.toUpperCase()} app_0`, `${mechanism.toUpperCase()} app_1`]);
  },
);

test('kafkajs: with SASL/OAUTHBEARER each connection logs in with the current token', async () => {
  const { token, rotate, value } = await tokenScene();
  const seen: string[] = [];
  const port = await startKafka({ passwords: new Map(), onLogin: (_, who) => seen.push(who) });
  const connect = connector(port, { sasl: oauth(token) });
  await connect();
  const next = await rotate();
  await connect();
  expect(seen).toEqual([value, next]);
});

test('kafkajs: each connection shows the current certificate', async () => {
  const authority = createAuthority('CA');
  const seen: (string | undefined)[] = [];
  const server = createServer({
    ...createServerPair(authority),
    ca: authority.cert,
    requestCert: true,
  });
  server.on('secureConnection', (socket) => {
    seen.push(socket.getPeerX509Certificate()?.subject);
    socket.destroy();
  });
  const { files, publish } = await tlsScene(authority);
  const connect = connector(await listen(server), tls(files));
  for (const name of ['first', 'second']) {
    await publish(name);
    // This stand-in knows no protocol of Kafka.
    await expect(connect()).rejects.toThrow();
    expect(seen.at(-1)).toBe(`CN=${name}`);
  }
});
