// `pg` with the username and password of a mounted Secret. PostgreSQL has one password for each role, so a rotation
// without a gap uses two roles in turn: both are in the Secret's next revision.
import pg from 'pg';

import { retryLogin } from './retry-login.mjs';

/** PostgreSQL: the password is wrong, or the role may not log in (any more). */
const isRefused = ({ code }) => code === '28P01' || code === '28000';

/**
 * A pool whose connections are made with the current login. After a change queries use new connections; those in
 * flight finish on theirs.
 *
 * @param login `credentials('/etc/db')`
 * @param options of `pg.Pool`, without user and password
 */
export async function createPool(login, options) {
  const open = ({ username, password }) => {
    const pool = new pg.Pool({ ...options, user: username, password });
    pool.on('error', () => {}); // an idle connection was lost; the next query opens another one
    return { pool, running: 0, retired: false };
  };
  let current = open(await login.get());
  const onChange = ({ current: next }) => {
    retire(current);
    current = open(next);
  };
  login.on('change', onChange);

  async function query(...args) {
    const used = current;
    used.running += 1;
    try {
      return await used.pool.query(...args);
    } finally {
      used.running -= 1;
      if (used.retired) retire(used);
    }
  }
  return {
    query: (...args) => retryLogin(login, () => query(...args), isRefused),
    end: async () => {
      login.off('change', onChange);
      await current.pool.end();
    },
  };
}

/** `pool.end()` would leave queued queries without an answer, so it waits for them. */
function retire(generation) {
  generation.retired = true;
  if (generation.running === 0 && !generation.pool.ending) void generation.pool.end();
}
