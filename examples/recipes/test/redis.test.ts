/** The recipes of Redis, with the server of the system: no command is lost in a rotation under load. */
import { Queue, QueueEvents, Worker } from 'bullmq';
import { createClient } from 'redis';
import { describe, expect, onTestFinished, test } from 'vitest';

import { connect as connectCluster } from '../ioredis-cluster.js';
import { connect as connectIoredis } from '../ioredis.js';
import { connect as connectNodeRedis } from '../node-redis.js';
import { startRedis, withoutRedis } from './database-servers.js';
import { loginScene, newPassword, rotateUnderLoad, withOrders, type LoginScene } from './login-scene.js';

interface Client {
  ping(): Promise<string>;
}

const CLUSTER = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'];

const clients: Readonly<Record<string, (scene: LoginScene, port: number) => Promise<Client>>> = {
  'node-redis': async ({ login }, port) => {
    const client = await connectNodeRedis(login, { socket: { port } });
    onTestFinished(() => client.destroy());
    return client;
  },
  ioredis: async ({ login }, port) => {
    const client = await connectIoredis(login, { port });
    onTestFinished(() => client.disconnect());
    return client;
  },
  'a duplicate of ioredis': async ({ login }, port) => {
    const first = await connectIoredis(login, { port });
    onTestFinished(() => first.disconnect());
    const client = first.duplicate();
    onTestFinished(() => client.disconnect());
    return client;
  },
  'a cluster of ioredis': async ({ login }, port) => {
    const client = await connectCluster(login, [{ host: '127.0.0.1', port }]);
    onTestFinished(() => client.disconnect());
    return client;
  },
};

interface Server {
  readonly port: number;
  readonly send: (...command: string[]) => Promise<unknown>;
}

/** A server whose user `app` may do everything, once it has a password. */
async function startServer(...options: string[]): Promise<Server> {
  const port = await startRedis(...options);
  const admin = await createClient({ socket: { port } }).connect();
  onTestFinished(() => admin.destroy());
  const send = (...command: string[]): Promise<unknown> => admin.sendCommand(command);
  await send('ACL', 'SETUSER', 'app', 'on', '~*', '&*', '+@all');
  return { port, send };
}

/** Redis takes several passwords: the one before stays valid until the next rotation. */
function rotation(send: Server['send'], first: string): (next: string) => Promise<void> {
  const passwords = [first];
  return async (next) => {
    await send('ACL', 'SETUSER', 'app', `>${next}`);
    passwords.push(next);
    if (passwords.length > 2) await send('ACL', 'SETUSER', 'app', `<${passwords.shift() ?? ''}`);
  };
}

describe.skipIf(withoutRedis)(`Redis${withoutRedis ? `: ${withoutRedis}` : ''}`, () => {
  test.each(withOrders(Object.keys(clients)))(
    '%s: rotations, %s, lose no command, and the connection follows',
    async (name, order) => {
      const { port, send } = await startServer(...(name.includes('cluster') ? CLUSTER : []));
      if (name.includes('cluster')) {
        await send('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
        await expect.poll(() => send('CLUSTER', 'INFO')).toContain('cluster_state:ok');
      }
      const scene = loginScene();
      const password = newPassword();
      await send('ACL', 'SETUSER', 'app', `>${password}`);
      await scene.publish('app', password);
      const client = await clients[name]?.(scene, port);
      if (!client) throw new Error(`no client ${name}`);
      await client.ping();
      const seen = await rotateUnderLoad(scene, order, 'app', rotation(send, password), () => client.ping());
      expect(new Set(seen)).toEqual(new Set(['PONG']));
      // After a change of the user, an open connection is one of the next user.
      await send('ACL', 'SETUSER', 'next', 'on', '~*', '&*', '+@all', '>of-next');
      await scene.publish('next', 'of-next');
      await expect
        .poll(() => send('CLIENT', 'LIST'))
        .toSatisfy((list) => !String(list).includes('user=app') && String(list).includes('user=next'));
      // A connection that the server drops comes back with the current login.
      await send('ACL', 'DELUSER', 'app');
      await send('CLIENT', 'KILL', 'USER', 'next');
      await expect.poll(() => client.ping().catch(() => '')).toBe('PONG');
    },
  );

  test('BullMQ: each job is done once, while the password rotates and connections are dropped', async () => {
    const { port, send } = await startServer();
    const scene = loginScene();
    const password = newPassword();
    await send('ACL', 'SETUSER', 'app', `>${password}`);
    await scene.publish('app', password);
    const connection = await connectIoredis(scene.login, { port, maxRetriesPerRequest: null });
    onTestFinished(() => connection.disconnect());
    const queue = new Queue('work', { connection });
    const events = new QueueEvents('work', { connection });
    const worker = new Worker('work', ({ data }) => Promise.resolve(data as number), { connection });
    // Of connections that the server dropped.
    queue.on('error', () => {});
    events.on('error', () => {});
    worker.on('error', () => {});
    for (const part of [queue, events, worker]) onTestFinished(() => part.close());
    await Promise.all([worker.waitUntilReady(), events.waitUntilReady()]);
    let serial = 0;
    const work = async (): Promise<boolean> => {
      const wanted = (serial += 1);
      const job = await queue.add('job', wanted);
      return (await job.waitUntilFinished(events)) === wanted;
    };
    const seen = await rotateUnderLoad(scene, 'the server first', 'app', rotation(send, password), work);
    expect(new Set(seen)).toEqual(new Set([true]));
    // Its blocked connections, duplicates all, come back with the current password.
    await send('CLIENT', 'KILL', 'USER', 'app');
    await expect(work()).resolves.toBe(true);
    await expect.poll(() => send('CLIENT', 'LIST')).toMatch(/cmd=bzpopmin user=app/);
  });
});
