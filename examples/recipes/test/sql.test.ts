/** The recipes of SQL databases, with the servers of the system: no query is lost in a rotation under load. */
import { PrismaPg } from '@prisma/adapter-pg';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { SecretFile } from 'resilient-watcher';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';

import { connect as connectKnex } from '../knex.js';
import { createPool as createMysqlPool } from '../mysql2.js';
import { RotatingPool } from '../pg.js';
import { connect as connectPostgres } from '../postgres.js';
import { connect as connectSequelize } from '../sequelize.js';
import { createDataSource } from '../typeorm.js';
import { startMariadb, startPostgres, withoutMariadb, withoutPostgres } from './database-servers.js';
import {
  alternateUnderLoad,
  loginScene,
  newPassword,
  ORDERS,
  rotateUnderLoad,
  withOrders,
  type LoginScene,
} from './login-scene.js';

const USERS = ['app_0', 'app_1'] as const;

describe.skipIf(withoutPostgres)(`PostgreSQL${withoutPostgres ? `: ${withoutPostgres}` : ''}`, () => {
  const address = { host: '127.0.0.1', port: 0, database: 'postgres' };
  beforeAll(async () => {
    const server = await startPostgres();
    address.port = server.port;
    return server.stop;
  });

  /** Runs SQL as one who may change roles. */
  async function administrator(): Promise<(sql: string) => Promise<unknown>> {
    const client = new pg.Client({ ...address, user: 'postgres' });
    await client.connect();
    client.on('error', () => {});
    onTestFinished(() => client.end());
    return (sql) => client.query(sql);
  }

  function openPool({ login }: LoginScene): RotatingPool {
    const pool = new RotatingPool(login, { ...address, max: 2 });
    onTestFinished(() => pool.end());
    return pool;
  }

  /** Does one query or one transaction, with each client. */
  const clients: Readonly<
    Record<
      string,
      (scene: LoginScene, user: string) => Promise<() => Promise<unknown>> | (() => Promise<unknown>)
    >
  > = {
    pg: (scene) => {
      const pool = openPool(scene);
      return () => pool.query('SELECT 1');
    },
    'transactions of pg': (scene) => {
      const pool = openPool(scene);
      return async () => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await client.query('SELECT pg_sleep(0.001)');
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
    },
    // No connection is kept for long, so that logins happen all the time.
    postgres: ({ passwordPath }, username) => {
      const secret = new SecretFile(passwordPath);
      onTestFinished(() => secret.close());
      const { sql, run } = connectPostgres(secret, { ...address, username, max: 2, max_lifetime: 0.01 });
      // Without a timeout it can wait forever for a connection whose lifetime ended at the same moment.
      onTestFinished(() => sql.end({ timeout: 5 }));
      return () => run((to) => to`SELECT 1`.execute());
    },
    knex: ({ login }) => {
      const db = connectKnex(login, { client: 'pg', connection: address, pool: { max: 2 } });
      onTestFinished(() => db.destroy());
      return () => db.transaction((transaction) => transaction.raw('SELECT 1'));
    },
    typeorm: async ({ login }) => {
      const source = await createDataSource(login, { ...address, poolSize: 2 }).initialize();
      onTestFinished(() => source.destroy());
      return () => source.transaction((manager) => manager.query('SELECT 1'));
    },
    sequelize: ({ login }) => {
      const options = {
        ...address,
        dialect: 'postgres',
        logging: false,
        pool: { max: 2, maxUses: 3 },
      } as const;
      const { db, run } = connectSequelize(login, options);
      onTestFinished(() => db.close());
      return () => run((to) => to.transaction((transaction) => to.query('SELECT 1', { transaction })));
    },
    'driver adapter of Prisma': async (scene) => {
      const adapter = await new PrismaPg(openPool(scene)).connect();
      return async () => {
        const transaction = await adapter.startTransaction();
        await transaction.queryRaw({ sql: 'SELECT 1', args: [], argTypes: [] });
        await transaction.commit();
      };
    },
  };

  test.each(withOrders(Object.keys(clients)))(
    '%s: rotations of one role, %s, lose nothing',
    async (name, order) => {
      const admin = await administrator();
      const scene = loginScene();
      const role = `app_${name}_${order}`.replaceAll(' ', '_').toLowerCase();
      const password = newPassword();
      await admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
      await scene.publish(role, password);
      const work = await clients[name]?.(scene, role);
      if (!work) throw new Error(`no client ${name}`);
      await rotateUnderLoad(
        scene,
        order,
        role,
        (next) => admin(`ALTER ROLE ${role} PASSWORD '${next}'`),
        work,
      );
    },
  );

  test('pg: rotations between two roles lose nothing, and connections follow', async () => {
    const admin = await administrator();
    const scene = loginScene();
    const password = newPassword();
    await admin(`CREATE ROLE app_0 LOGIN PASSWORD '${password}'; CREATE ROLE app_1`);
    await scene.publish('app_0', password);
    const pool = openPool(scene);
    const seen = await alternateUnderLoad(
      scene,
      USERS,
      {
        open: (user, next) => admin(`ALTER ROLE ${user} LOGIN PASSWORD '${next}'`),
        lock: (user) => admin(`ALTER ROLE ${user} NOLOGIN`),
      },
      async () => (await pool.query<{ who: string }>('SELECT user AS who')).rows[0]?.who,
    );
    expect(new Set(seen)).toEqual(new Set(USERS));
  });

  test('pg: a transaction in flight keeps its connection, and a wrong query is not repeated', async () => {
    const admin = await administrator();
    const scene = loginScene();
    await admin(`CREATE ROLE slow LOGIN PASSWORD 'first'`);
    await scene.publish('slow', 'first');
    const pool = openPool(scene);
    const client = await pool.connect();
    await client.query('BEGIN');
    await admin(`ALTER ROLE slow PASSWORD 'second'`);
    await scene.publish('slow', 'second');
    await pool.query('SELECT 1');
    await expect(client.query('SELECT 1')).resolves.toMatchObject({ rowCount: 1 });
    await client.query('COMMIT');
    client.release();
    await expect(pool.query('SELECT nothing')).rejects.toMatchObject({ code: '42703' });
  });
});

describe.skipIf(withoutMariadb)(`MariaDB${withoutMariadb ? `: ${withoutMariadb}` : ''}`, () => {
  let port: number;
  let socketPath: string;
  beforeAll(async () => {
    const server = await startMariadb();
    ({ port, socketPath } = server);
    return server.stop;
  });

  async function administrator(): Promise<(sql: string) => Promise<unknown>> {
    const connection = await mysql.createConnection({ socketPath, user: 'root' });
    onTestFinished(() => connection.end());
    return (sql) => connection.query(sql);
  }

  function openPool({ login }: LoginScene): mysql.Pool {
    const pool = createMysqlPool(login, { host: '127.0.0.1', port, connectionLimit: 2 });
    onTestFinished(() => pool.end());
    return pool;
  }

  test.each(ORDERS)('mysql2: rotations of one user, %s, lose no transaction', async (order) => {
    const admin = await administrator();
    const scene = loginScene();
    const user = `app_${order.replaceAll(' ', '_')}`;
    const password = newPassword();
    await admin(`CREATE USER ${user} IDENTIFIED BY '${password}'`);
    await scene.publish(user, password);
    const pool = openPool(scene);
    await rotateUnderLoad(
      scene,
      order,
      user,
      (next) => admin(`ALTER USER ${user} IDENTIFIED BY '${next}'`),
      async () => {
        const connection = await pool.getConnection();
        await connection.beginTransaction();
        await connection.execute('SELECT ?', [1]);
        await connection.commit();
        connection.release();
        await pool.query('SELECT 1');
      },
    );
  });

  test('mysql2: rotations between two users lose nothing, and connections follow', async () => {
    const admin = await administrator();
    const scene = loginScene();
    const password = newPassword();
    await admin(`CREATE USER app_0 IDENTIFIED BY '${password}'`);
    await admin('CREATE USER app_1 ACCOUNT LOCK');
    await scene.publish('app_0', password);
    const pool = openPool(scene);
    const seen = await alternateUnderLoad(
      scene,
      USERS,
      {
        open: (user, next) => admin(`ALTER USER ${user} IDENTIFIED BY '${next}' ACCOUNT UNLOCK`),
        lock: (user) => admin(`ALTER USER ${user} ACCOUNT LOCK`),
      },
      async () => {
        const [rows] = await pool.query<mysql.RowDataPacket[]>('SELECT USER() AS who');
        return String(rows[0]?.['who']).split('@')[0];
      },
    );
    expect(new Set(seen)).toEqual(new Set(USERS));
  });
});
