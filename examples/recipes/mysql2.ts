// `mysql2` (MySQL, MariaDB) with the username and password of a mounted Secret.
import mysql from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';
import { retryLogin, type CredentialFiles, type Credentials } from 'resilient-watcher';

/** Wrong password, or the account is locked (MySQL, MariaDB). Numbers, because mysql2 has no code for the last. */
const isRefused = (error: unknown): boolean =>
  [1045, 3118, 4151].includes((error as mysql.QueryError).errno ?? 0);

/** A pool whose connections have the current login. Older ones end when they are free; transactions finish. */
export function createPool(login: CredentialFiles, options: mysql.PoolOptions): PromisePool {
  const pool = mysql.createPool(options);
  // What new connections copy. The types do not show it.
  const { connectionConfig } = pool.config as unknown as { connectionConfig: mysql.ConnectionOptions };
  const original = pool.getConnection.bind(pool);

  async function connect({ username: user, password }: Credentials): Promise<mysql.PoolConnection> {
    Object.assign(connectionConfig, { user, password });
    const connection = await new Promise<mysql.PoolConnection>((resolve, reject) => {
      original((error, made) => (error ? reject(error) : resolve(made)));
    });
    if (connection.config.user === user && connection.config.password === password) return connection;
    connection.destroy();
    return connect(await login.get());
  }
  // `query`, `execute` and the pool of promises use it too.
  pool.getConnection = (done) => {
    const connected = retryLogin(login, connect, { isRefused });
    connected.then((connection) => void done(null, connection), done as () => void);
  };
  return pool.promise();
}
