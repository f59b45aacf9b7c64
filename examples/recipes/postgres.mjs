// `postgres` (postgres.js) with a password from a mounted Secret. The client requests it for each new connection.
// Open connections continue, because PostgreSQL checks the password only when they are opened.
import postgres from 'postgres';

import { retryLogin } from './retry-login.mjs';

const isRefused = ({ code }) => code === '28P01';

/**
 * @param password `new SecretFile('/etc/db/password')`
 * @param options of `postgres()`, without the password
 */
export function connect(password, options) {
  const sql = postgres({ ...options, password: async () => (await password.get()).value });
  return {
    sql,
    /** `run((sql) => sql`select 1`)`: repeated if the login was refused. */
    run: (work) => retryLogin(password, () => work(sql), isRefused),
  };
}
