// `ioredis` with the username and password of a mounted Secret. The client takes them only once, so they are set for the
// next connection, and the open one authenticates again.
import { Redis } from 'ioredis';

/**
 * @param login `credentials('/etc/redis')`
 * @param options of `Redis`, without username and password
 */
export async function connect(login, options) {
  const { username, password } = await login.get();
  const client = new Redis({ ...options, username, password });
  client.on('error', () => {}); // the client reconnects by itself, with the password that is current then
  const onChange = ({ current }) => {
    client.options.username = current.username;
    client.options.password = current.password;
    // Refused, because the file is ahead of the server. The connection stays authenticated as before.
    if (client.status === 'ready') client.auth(current.username, current.password).catch(() => {});
  };
  login.on('change', onChange);
  client.once('end', () => login.off('change', onChange));
  return client;
}
