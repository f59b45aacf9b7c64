// `postgres` (postgres.js) with a password from a mounted Secret. It asks for the password of each new connection;
// open ones go on, since PostgreSQL looks at the password only then.
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
    /** `run((sql) => sql`select 1`)`: again when the login was refused. */
    run: (work) => retryLogin(password, () => work(sql), isRefused),
  };
}
