// `redis` (node-redis) with the username and password of a mounted Secret: when they change, open
// connections authenticate again, and new ones use the current ones.
import { createClient, type RedisClientOptions, type RedisClientType } from 'redis';
import type { CredentialFiles, Credentials } from 'resilient-watcher';

/** @param options of `createClient()`, without username and password */
export async function connect(login: CredentialFiles, options: RedisClientOptions): Promise<RedisClientType> {
  const client = createClient({
    ...options,
    credentialsProvider: {
      type: 'streaming-credentials-provider',
      async subscribe({ onNext }) {
        const onChange = ({ current: { username, password } }: { current: Credentials }): void =>
          onNext({ username, password });
        login.on('change', onChange);
        const { username, password } = await login.get();
        return [{ username, password }, { dispose: () => login.off('change', onChange) }];
      },
      // The file is ahead of the server. The connection stays authenticated as before.
      onReAuthenticationError: () => {},
    },
  });
  client.on('error', () => {}); // the client reconnects by itself, with the password that is current then
  return client.connect();
}
