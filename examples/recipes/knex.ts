// Knex with the username and password of a mounted Secret: it asks for them when they have changed.
import knex, { type Knex } from 'knex';
import type { CredentialFiles } from 'resilient-watcher';

/** @param options of `knex()`; `connection` without user and password */
export function connect(
  login: CredentialFiles,
  options: Omit<Knex.Config, 'connection'> & { readonly connection: object },
): Knex {
  return knex({
    acquireConnectionTimeout: 90_000, // kubelet takes up to a minute to project a changed Secret
    ...options,
    connection: async () => {
      const current = await login.get();
      return {
        ...options.connection,
        user: current.username,
        password: current.password,
        expirationChecker: () => login.current !== current,
      };
    },
    // A refused login is tried again until `acquireConnectionTimeout`.
    pool: { min: 0, ...options.pool, propagateCreateError: false },
  });
}
