/** The recipes of MQTT and NATS, with the servers of the system: what happens to messages while files rotate. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, onTestFinished, test } from 'vitest';

import { connect as connectMqtt } from '../mqtt.js';
import { connect as connectNats } from '../nats.js';
import { createAuthority, createServerPair, type Authority } from '../../../test/support/certificates.js';
import { loginScene } from './login-scene.js';
import { startMosquitto, startNats, withoutMosquitto, withoutNats } from './message-servers.js';
import { tlsScene } from './mounted-files.js';
import { rounds } from '../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const ROTATIONS = rounds(4, 30);

/** The files of a server at `localhost`. */
function serverFiles(authority: Authority): { cert: string; key: string; ca: string } {
  const directory = temporaryDirectory();
  const pair = createServerPair(authority);
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  return { cert: write('cert', pair.cert), key: write('key', pair.key), ca: write('ca', authority.cert) };
}

describe.skipIf(withoutMosquitto)(`mosquitto${withoutMosquitto ? `: ${withoutMosquitto}` : ''}`, () => {
  test('mqtt: no message is lost, and each connection shows the current certificate', async () => {
    const authority = createAuthority('CA');
    const server = await startMosquitto(serverFiles(authority));
    const { files, publish } = await tlsScene(authority);
    const url = `mqtts://localhost:${server.port}`;
    const options = { reconnectPeriod: 20, clean: false, clientId: 'app' };
    const client = await connectMqtt(files, url, options);
    onTestFinished(() => client.endAsync(true));
    await client.subscribeAsync('work', { qos: 1 });
    const received = new Set<string>();
    client.on('message', (_, payload) => received.add(String(payload)));
    const sent: string[] = [];
    const send = async (): Promise<void> => {
      const text = String(sent.push(''));
      sent[sent.length - 1] = text;
      await client.publishAsync('work', text, { qos: 1 });
    };
    for (let index = 1; index <= ROTATIONS; index += 1) {
      await publish(`client-${index}`);
      const sending = [send(), send()];
      const connected = new Promise<unknown>((resolve) => client.once('connect', resolve));
      client.stream.destroy();
      await connected;
      await Promise.all([...sending, send()]);
      await server.said(new RegExp(`New client connected.*u'client-${index}'`));
    }
    await expect.poll(() => [...received].sort()).toEqual([...sent].sort());
  });
});

describe.skipIf(withoutNats)(`NATS${withoutNats ? `: ${withoutNats}` : ''}`, () => {
  test('nats: requests go on over TLS, and each connection has the current login', async () => {
    const authority = createAuthority('CA');
    const server = await startNats(serverFiles(authority), 'app', 'first');
    const { files, publish } = await tlsScene(authority);
    const scene = loginScene();
    await scene.publish('app', 'first');
    const connection = await connectNats(
      scene.login,
      { servers: `localhost:${server.port}`, reconnectTimeWait: 20, waitOnFirstConnect: true },
      files,
    );
    onTestFinished(() => connection.close());
    connection.subscribe('work', { callback: (_, message) => message.respond(message.data) });
    await connection.flush();
    for (let index = 1; index <= ROTATIONS; index += 1) {
      await publish(`client-${index}`);
      const password = `password-${index}`;
      const toServer = (): void => server.setPassword(password);
      const toFile = (): Promise<void> => scene.publish('app', password);
      if (index % 2 === 0) toServer();
      await toFile();
      if (index % 2 === 1) toServer();
      // The server ends connections of the old password.
      await expect
        .poll(async () => {
          const answer = await connection.request('work', String(index)).catch(() => undefined);
          return answer?.string();
        })
        .toBe(String(index));
    }
  });
});
