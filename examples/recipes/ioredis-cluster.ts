// `ioredis` in cluster mode with the username and password of a mounted Secret: each connection to a node is made with
// the current ones, and open ones authenticate again.
import { Cluster, type ClusterNode, type ClusterOptions, type Redis } from 'ioredis';
import type { CredentialFiles } from 'resilient-watcher';

/** @param options of `Cluster`, without username and password */
export async function connect(
  login: CredentialFiles,
  nodes: ClusterNode[],
  options: ClusterOptions = {},
): Promise<Cluster> {
  const { username, password } = await login.get();
  const cluster = new Cluster(nodes, {
    ...options,
    redisOptions: { ...options.redisOptions, replyMapping: 'legacy', username, password },
  });
  const set = (node: Redis): void => {
    const { username: user, password: secret = '' } = login.current ?? {};
    Object.assign(node.options, { username: user, password: secret });
    // Refused, because the file is ahead of the server. The connection stays authenticated as before.
    if (node.status === 'ready') node.auth(user ?? 'default', secret).catch(() => {});
  };
  const onChange = (): void => cluster.nodes().forEach(set);
  login.on('change', onChange);
  cluster.on('+node', set); // before it connects
  cluster.on('error', () => {}); // the client reconnects by itself
  cluster.once('end', () => login.off('change', onChange));
  return cluster;
}
