// `ioredis` with the username and password of a mounted Secret. It takes them once, so here each connection is made with
// the current ones, and an open one authenticates again. BullMQ duplicates the client, which keeps this:
//
//   const connection = await connect(login, { host, maxRetriesPerRequest: null });
//   new Worker('mail', send, { connection });
import { Redis, type RedisOptions } from 'ioredis';
import type { CredentialFiles, Credentials } from 'resilient-watcher';

type Options = RedisOptions & { replyMapping?: 'legacy' };

/** @param options of `Redis`, without username and password */
export async function connect(login: CredentialFiles, options: Options): Promise<Redis> {
  await login.get();

  class RotatingRedis extends Redis {
    constructor(own: Options) {
      super(own);
      const onChange = ({ current: { username, password } }: { current: Credentials }): void => {
        // Refused, because the file is ahead of the server. The connection stays authenticated as before.
        if (this.status === 'ready') this.auth(username, password).catch(() => {});
      };
      login.on('change', onChange);
      this.once('end', () => login.off('change', onChange));
      this.on('error', () => {}); // the client reconnects by itself, with the password that is current then
    }

    override connect(done?: () => void): Promise<void> {
      const { username, password } = login.current ?? {};
      Object.assign(this.options, { username, password });
      return super.connect(done);
    }

    override duplicate(override: RedisOptions = {}): never {
      return new RotatingRedis({ ...this.options, ...override } as Options) as never;
    }
  }
  return new RotatingRedis(options);
}
