/** The recipes, with real servers where the system has them, else with a stand-in, which is said to be one. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Kafka, type SASLMechanismOptions } from 'kafkajs';
import pg from 'pg';
import { createClient } from 'redis';
import { credentials, SecretFile, TokenFile, type CredentialFiles } from 'resilient-watcher';
import { KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';
import { startPostgres, startRedis, withoutPostgres, withoutRedis } from '../support/database-servers.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { keepDoing } from '../support/tls-clients.js';

const ROTATIONS = rounds(6, 50);

/** A recipe; they are JavaScript, as users write it. */
async function recipe<T>(name: string): Promise<T> {
  return (await import(`../../examples/recipes/${name}.mjs`)) as T;
}

/** What kafkajs takes. */
type KafkaSasl = SASLMechanismOptions<'oauthbearer'> & { mechanism: 'oauthbearer' };

const newPassword = (): string => randomBytes(9).toString('hex');

function openVolume(): { volume: KubeletVolume; login: CredentialFiles } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'login'));
  const login = credentials(volume.directory);
  onTestFinished(() => login.close());
  return { volume, login };
}

interface SqlPool {
  query(text: string): Promise<{ rows: { who: string }[] }>;
  end(): Promise<void>;
}

describe.skipIf(withoutPostgres)(`PostgreSQL${withoutPostgres ? `: ${withoutPostgres}` : ''}`, () => {
  let port: number;
  beforeAll(async () => {
    const server = await startPostgres();
    port = server.port;
    return server.stop;
  });

  /** Runs SQL as one who may change roles. */
  async function administrator(): Promise<(sql: string) => Promise<unknown>> {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
    await client.connect();
    client.on('error', () => {});
    onTestFinished(() => client.end());
    return (sql) => client.query(sql);
  }

  test('pg: rotations between two roles, the server first, fail no query', async () => {
    const admin = await administrator();
    const { volume, login } = openVolume();
    let password = newPassword();
    await admin(`CREATE ROLE app_0 LOGIN PASSWORD '${password}'; CREATE ROLE app_1 LOGIN`);
    volume.publish({ username: 'app_0', password });
    const { createPool } = await recipe<{ createPool: (...args: unknown[]) => Promise<SqlPool> }>('pg');
    const pool = await createPool(login, { host: '127.0.0.1', port, database: 'postgres', max: 2 });
    onTestFinished(() => pool.end());
    const who = async (): Promise<string | undefined> =>
      (await pool.query('SELECT user AS who')).rows[0]?.who;
    const load = Array.from({ length: 4 }, () => keepDoing(who));
    for (let index = 1; index <= ROTATIONS; index += 1) {
      password = newPassword();
      const [old, next] = [`app_${(index + 1) % 2}`, `app_${index % 2}`];
      await admin(`ALTER ROLE ${next} LOGIN PASSWORD '${password}'`);
      const previous = login.current;
      volume.publish({ username: next, password });
      await login.changed({ previous });
      expect(await who()).toBe(next);
      await admin(`ALTER ROLE ${old} PASSWORD NULL`);
    }
    const seen = (await Promise.all(load.map(({ stop }) => stop()))).flat();
    expect(new Set(seen)).toEqual(new Set(['app_0', 'app_1']));
  });

  test.each([
    ['pg', 'the file first'],
    ['pg', 'the server first'],
    ['postgres', 'the file first'],
    ['postgres', 'the server first'],
  ])('%s: rotations of one role, %s, fail no query', async (name, order) => {
    const admin = await administrator();
    const { volume, login } = openVolume();
    let password = newPassword();
    const role = `app_${name}_${order.replaceAll(' ', '_')}`;
    await admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
    volume.publish({ username: role, password });
    const options = { host: '127.0.0.1', port, database: 'postgres' };
    const query = await (async (): Promise<() => Promise<unknown>> => {
      if (name === 'pg') {
        const { createPool } = await recipe<{ createPool: (...args: unknown[]) => Promise<SqlPool> }>('pg');
        const pool = await createPool(login, { ...options, max: 2 });
        onTestFinished(() => pool.end());
        return () => pool.query('SELECT 1');
      }
      const secret = new SecretFile(volume.path('password'));
      onTestFinished(() => secret.close());
      interface Sql {
        (strings: TemplateStringsArray): Promise<unknown>;
        end(): Promise<void>;
      }
      const { connect } = await recipe<{
        connect: (...args: unknown[]) => {
          sql: Sql;
          run: (work: (sql: Sql) => unknown) => Promise<unknown>;
        };
      }>('postgres');
      // No connection is kept for long, so that logins happen all the time.
      const { sql, run } = connect(secret, { ...options, username: role, max: 2, max_lifetime: 0.01 });
      onTestFinished(() => sql.end());
      return () => run((to) => to`SELECT 1`);
    })();
    const load = Array.from({ length: 2 }, () => keepDoing(query));
    for (let index = 1; index <= ROTATIONS; index += 1) {
      password = newPassword();
      const previous = login.current;
      const toServer = (): Promise<unknown> => admin(`ALTER ROLE ${role} PASSWORD '${password}'`);
      const toFile = async (): Promise<void> => {
        volume.publish({ username: role, password });
        await login.changed({ previous });
      };
      for (const step of order === 'the file first' ? [toFile, toServer] : [toServer, toFile]) await step();
      await query();
    }
    await Promise.all(load.map(({ stop }) => stop()));
  });
});

interface RedisClient {
  ping(): Promise<string>;
  destroy?(): void;
  disconnect?(): void;
}

describe.skipIf(withoutRedis)(`Redis${withoutRedis ? `: ${withoutRedis}` : ''}`, () => {
  test.each([
    ['node-redis', 'the server first'],
    ['node-redis', 'the file first'],
    ['ioredis', 'the server first'],
    ['ioredis', 'the file first'],
  ])('%s: rotations, %s, fail no command, and the connection follows', async (name, order) => {
    const port = await startRedis();
    const admin = await createClient({ socket: { port } }).connect();
    onTestFinished(() => admin.destroy());
    const acl = (...rules: string[]): Promise<unknown> =>
      admin.sendCommand(['ACL', 'SETUSER', 'app', 'on', '~*', '+@all', ...rules]);
    const { volume, login } = openVolume();
    let password = newPassword();
    await acl(`>${password}`);
    volume.publish({ username: 'app', password });
    const { connect } = await recipe<{ connect: (...args: unknown[]) => Promise<RedisClient> }>(name);
    const options = name === 'ioredis' ? { port } : { socket: { port } };
    const open = async (): Promise<RedisClient> => {
      const client = await connect(login, options);
      onTestFinished(() => (client.destroy ?? client.disconnect)?.call(client));
      return client;
    };
    const client = await open();
    const load = Array.from({ length: 2 }, () => keepDoing(() => client.ping()));
    for (let index = 1; index <= ROTATIONS; index += 1) {
      const [old, previous] = [password, login.current];
      password = newPassword();
      const toServer = (): Promise<unknown> => acl(`>${password}`);
      const toFile = async (): Promise<void> => {
        volume.publish({ username: 'app', password });
        await login.changed({ previous });
      };
      if (order === 'the server first') {
        await toServer();
        await toFile();
      } else {
        await toFile();
        await toServer();
      }
      expect(await client.ping()).toBe('PONG');
      await acl(`<${old}`);
    }
    expect(new Set((await Promise.all(load.map(({ stop }) => stop()))).flat())).toEqual(new Set(['PONG']));
    // A connection that the server drops comes back with the current password.
    await admin.sendCommand(['CLIENT', 'KILL', 'USER', 'app']);
    await expect.poll(() => client.ping().catch(() => '')).toBe('PONG');
    expect(await (await open()).ping()).toBe('PONG');
  });
});

describe('with a stand-in for the server', () => {
  async function tokenScene(): Promise<{ token: TokenFile; rotate: () => Promise<string>; value: string }> {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'token'));
    let serial = 0;
    const publish = (): string => {
      const value = mintTestToken({ jti: String((serial += 1)) });
      volume.publish({ token: value });
      return value;
    };
    const value = publish();
    const token = new TokenFile(volume.path('token'));
    onTestFinished(() => token.close());
    await token.get();
    const rotate = async (): Promise<string> => {
      const next = publish();
      await expect.poll(async () => (await token.get()).value).toBe(next);
      return next;
    };
    return { token, rotate, value };
  }

  test('mongodb: the OIDC callback gives the current token', async () => {
    const { token, rotate, value } = await tokenScene();
    interface Client {
      options: {
        credentials: { mechanismProperties: { OIDC_CALLBACK: () => Promise<{ accessToken: string }> } };
      };
    }
    const { createClient: create } = await recipe<{ createClient: (uri: string, file: TokenFile) => Client }>(
      'mongodb',
    );
    const { OIDC_CALLBACK: ask } = create('mongodb://localhost', token).options.credentials
      .mechanismProperties;
    expect(await ask()).toMatchObject({ accessToken: value });
    const next = await rotate();
    expect(await ask()).toMatchObject({ accessToken: next });
  });

  test('kafkajs: the provider of SASL/OAUTHBEARER gives the current token', async () => {
    const { token, rotate, value } = await tokenScene();
    const { sasl } = await recipe<{ sasl: (file: TokenFile) => KafkaSasl }>('kafkajs');
    const options = sasl(token);
    // The client takes it.
    new Kafka({ brokers: ['localhost:9092'], sasl: options });
    expect(await options.oauthBearerProvider()).toEqual({ value });
    const next = await rotate();
    expect(await options.oauthBearerProvider()).toEqual({ value: next });
  });

  test('AWS and Azure: each exchange takes the current token', async () => {
    const { token, rotate, value } = await tokenScene();
    class Assertion {
      readonly ask: () => Promise<string>;
      constructor(_tenant: string, _client: string, ask: () => Promise<string>) {
        this.ask = ask;
      }
    }
    const { awsCredentials, azureCredential } = await recipe<{
      awsCredentials: (...args: unknown[]) => () => Promise<unknown>;
      azureCredential: (...args: unknown[]) => Assertion;
    }>('web-identity');
    const exchange =
      ({ webIdentityToken }: { webIdentityToken: string }) =>
      () =>
        Promise.resolve(webIdentityToken);
    const aws = awsCredentials(token, exchange, {});
    const azure = azureCredential(token, Assertion, { tenantId: 't', clientId: 'c' });
    expect([await aws(), await azure.ask()]).toEqual([value, value]);
    const next = await rotate();
    expect([await aws(), await azure.ask()]).toEqual([next, next]);
  });

  test('SPIFFE: a set that is written file by file is used when it fits together', async () => {
    interface Svid {
      start(): Promise<void>;
      check(): Promise<void>;
      close(): Promise<void>;
      readonly current: { readonly certificate?: { readonly subject: string } } | undefined;
      status(): { rejections: number };
    }
    const directory = temporaryDirectory();
    const authority = await createAuthority('spiffe');
    const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
    const publish = async (name: string, between = (): Promise<void> => Promise.resolve()): Promise<void> => {
      const { cert, key } = await createServerPair(authority, { name });
      write('svid.pem', cert);
      await between();
      write('svid_key.pem', key);
      write('svid_bundle.pem', authority.cert);
    };
    await publish('first');
    const { x509Svid } = await recipe<{ x509Svid: (directory: string) => Svid }>('spiffe');
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
    const { followRendered } = await recipe<{ followRendered: (...args: unknown[]) => Promise<TokenFile> }>(
      'vault-agent',
    );
    writeFileSync(user, 'v1');
    const validate = (texts: Record<string, string>): string => {
      if (texts[user] !== texts[password]) throw new Error('of two leases');
      return texts[user] ?? '';
    };
    const watcher = await followRendered(
      paths,
      validate,
      (value: string) => applied.push(value),
      (error: Error) => rejected.push(error.message),
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
});
