// `redis` (node-redis) with the username and password of a mounted Secret: when they change, open
// connections authenticate again, and new ones use the current ones.
import { createClient } from 'redis';

/**
 * @param login `credentials('/etc/redis')`
 * @param options of `createClient()`, without username and password
 */
export function connect(login, options) {
  const client = createClient({ ...options, credentialsProvider: credentialsProvider(login) });
  client.on('error', () => {}); // the client reconnects by itself, with the password that is current then
  return client.connect();
}

function credentialsProvider(login) {
  return {
    type: 'streaming-credentials-provider',
    async subscribe({ onNext }) {
      const onChange = ({ current: { username, password } }) => onNext({ username, password });
      login.on('change', onChange);
      const { username, password } = await login.get();
      return [{ username, password }, { dispose: () => login.off('change', onChange) }];
    },
    // The file is ahead of the server. The connection stays authenticated as before.
    onReAuthenticationError: () => {},
  };
}
