// `redis` (node-redis) with the username and password of a mounted Secret: open connections authenticate again when
// they change, new ones use what is then current.
import { createClient } from 'redis';

/**
 * @param login `credentials('/etc/redis')`
 * @param options of `createClient()`, without username and password
 */
export function connect(login, options) {
  const client = createClient({ ...options, credentialsProvider: credentialsProvider(login) });
  client.on('error', () => {}); // it connects again by itself, with the then current password
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
    // The file was ahead of the server. The connection stays authenticated as before.
    onReAuthenticationError: () => {},
  };
}
