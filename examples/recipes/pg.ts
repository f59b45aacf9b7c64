// `pg` with the username and password of a mounted Secret.
import pg from 'pg';
import { retryLogin, type CredentialFiles, type Credentials } from 'resilient-watcher';

type OnConnect = Parameters<pg.Pool['connect']>[0];

/** The password is wrong, or the role may not log in (any more). */
const isRefused = (error: unknown): boolean => /^(28P01|28000)$/.test((error as pg.DatabaseError).code ?? '');

/** A `pg.Pool` whose connections have the current login. Older ones end when they are free; transactions finish. */
export class RotatingPool extends pg.Pool {
  readonly #login: CredentialFiles;

  constructor(login: CredentialFiles, options: pg.PoolConfig = {}) {
    const Client = class extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super({ ...config, user: login.current?.username, password: login.current?.password });
      }
    };
    super({ ...options, Client });
    this.#login = login;
    this.on('error', () => {}); // an idle connection was lost; the next query opens another one
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(done: OnConnect): void;
  override connect(done?: OnConnect): Promise<pg.PoolClient> | undefined {
    const connected = retryLogin(this.#login, (login) => this.#connect(login), { isRefused });
    if (!done) return connected;
    connected.then((client) => done(undefined, client, client.release.bind(client)), done as () => void);
    return undefined;
  }

  async #connect({ username, password }: Credentials): Promise<pg.PoolClient> {
    const client = (await super.connect()) as pg.PoolClient & Pick<pg.Client, 'user' | 'password'>;
    if (client.user === username && client.password === password) return client;
    client.release(true);
    return this.#connect(await this.#login.get());
  }
}
