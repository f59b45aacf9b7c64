// Sequelize with the username and password of a mounted Secret: each new connection asks for them.
import { retryLogin, type CredentialFiles } from 'resilient-watcher';
import { type ConnectionError, type Options, Sequelize } from 'sequelize';

/** PostgreSQL; MySQL and MariaDB say it by name. */
const isRefused = (error: unknown): boolean => {
  const { name, parent } = error as ConnectionError;
  return name === 'SequelizeAccessDeniedError' || (parent as { code?: string } | undefined)?.code === '28P01';
};

/**
 * `run((db) => db.query('…'))` is repeated if the login was refused; `work` is one query or one transaction.
 *
 * @param options of `Sequelize`, without username and password
 */
export function connect(
  login: CredentialFiles,
  options: Options,
): { readonly db: Sequelize; readonly run: <T>(work: (db: Sequelize) => Promise<T>) => Promise<T> } {
  const db = new Sequelize(options);
  db.addHook('beforeConnect', async (config) => {
    const { username, password } = await login.get();
    Object.assign(config, { username, password });
  });
  return { db, run: (work) => retryLogin(login, () => work(db), { isRefused }) };
}
