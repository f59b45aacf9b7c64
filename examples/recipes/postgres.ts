// `postgres` (postgres.js) with a password from a mounted Secret. The client requests it for each new connection.
// Open connections continue, because PostgreSQL checks the password only when they are opened. To close the client, use
// `sql.end({ timeout: 5 })`: without a timeout it can wait forever for a connection that is just ending.
import postgres, { type Options, type PostgresError, type Sql } from 'postgres';
import { retryLogin, type SecretFile } from 'resilient-watcher';

const isRefused = (error: unknown): boolean => (error as PostgresError).code === '28P01';

/**
 * `run((sql) => sql`select 1`)` is repeated if the login was refused; `work` is one query or one transaction.
 *
 * @param password `new SecretFile('/etc/db/password')`
 */
export function connect(
  password: SecretFile,
  options: Omit<Options<Record<string, never>>, 'password'>,
): { readonly sql: Sql; readonly run: <T>(work: (sql: Sql) => Promise<T>) => Promise<T> } {
  const sql = postgres({ ...options, password: async () => (await password.get()).value });
  return { sql, run: (work) => retryLogin(password, () => work(sql), { isRefused }) };
}
