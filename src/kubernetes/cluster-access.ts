import { Agent, type RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';

import type * as clientNode from '@kubernetes/client-node';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';

import { errnoOf } from '../core/errors/errno.js';
import { KubernetesError, NotInPodError } from './kubernetes-error.js';
import { checkPath, hasMethods, isPath, matching } from '../core/options/options.js';
import { PackageError } from '../core/errors/package-error.js';
import { readFile } from '../fs/read-file.js';
import type { ReadingPorts } from '../fs/stable-read.js';
import type { ApiAccess } from './api-request.js';
import { boundPlugins } from './exec-plugins.js';
import { checkCertificates } from './kubeconfig.js';

const PACKAGE = '@kubernetes/client-node';
const VERSIONS = '1.3 or later; 2 needs Node 22.19';

/** What to install: by default npm takes version 2, whose import ends a process with an older Node.js. */
export function clientNodeFor(node: string): string {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 19) ? PACKAGE : `${PACKAGE}@1`;
}

export const KUBE_CONFIG_OPTION = matching<KubeConfig | string | URL | undefined>(
  undefined,
  'a path or a KubeConfig',
  (value) => isPath(value) || hasMethods(value, ['makeApiClient', 'getCurrentCluster']),
);

export type ClientNode = typeof clientNode;

/** Authenticates requests of a `KubeConfig`; client-node does not export this type. */
export type Authenticator = Parameters<KubeConfig['addAuthenticator']>[0];

/**
 * Loads the optional peer dependency.
 * @throws {PackageError} when it cannot be loaded or is too old.
 */
export async function loadClientNode(): Promise<ClientNode> {
  let client: ClientNode;
  try {
    client = await import('@kubernetes/client-node');
  } catch (cause) {
    throw new PackageError(clientNodeFor(process.versions.node), VERSIONS, cause);
  }
  // Versions 0.x have other signatures, and no authenticators.
  const { addAuthenticator } = client.KubeConfig.prototype as Partial<KubeConfig>;
  if (addAuthenticator === undefined) throw new PackageError(PACKAGE, VERSIONS);
  return client;
}

/** A cluster, and the credentials that come with it. */
export interface ClusterAccess {
  /** The file with its own token; undefined if it has other credentials. */
  readonly tokenFile: string | undefined;
  /** Its own token, if it is known without reading a file. */
  readonly token: string | undefined;
  /** Requests with its own credentials; `token` is what its token file contains. */
  own(token?: string): ApiAccess;
  /** Requests with nothing but this token as credentials. */
  bearer(token: string): ApiAccess;
}

/** Which cluster: a path of a kubeconfig, or a loaded one; undefined: that of the pod. */
export type ClusterChoice = KubeConfig | string | undefined;

/** The value of `KUBE_CONFIG_OPTION`, with its path as a string. */
export function clusterChoice(owner: string, given: KubeConfig | string | URL | undefined): ClusterChoice {
  return isPath(given) ? checkPath(owner, 'option "kubeConfig"', given) : given;
}

/**
 * A cluster as it is now: files are read again.
 * @throws {KubernetesError} (rejects) `ERR_KUBECONFIG`.
 * @throws {PackageError} (rejects) for a kubeconfig, when its package cannot be loaded.
 */
export async function accessTo(choice: ClusterChoice, ports: ReadingPorts): Promise<ClusterAccess> {
  return choice === undefined ? podAccess(ports) : kubeConfigAccess(choice, ports);
}

/** The current cluster and user of a kubeconfig. A token file of the user is not read yet. */
async function kubeConfigAccess(source: KubeConfig | string, ports: ReadingPorts): Promise<ClusterAccess> {
  const client = await loadClientNode();
  const { kubeConfig, cluster, user } = await freshKubeConfig(source, client, ports);
  const through = (config: KubeConfig): ApiAccess => ({
    server: cluster.server,
    authenticate: (options, signal) => {
      boundPlugins(config, signal);
      return config.applyToHTTPSOptions(options);
    },
  });
  return {
    tokenFile: tokenFileOf(user),
    token: user.token,
    own(token) {
      // The other fields of the user, such as a client certificate or the user to impersonate, are kept.
      if (token !== undefined)
        replaceUser(kubeConfig, { ...user, authProvider: undefined, exec: undefined, token });
      return through(kubeConfig);
    },
    bearer(token) {
      const bare = new client.KubeConfig();
      bare.loadFromClusterAndUser(cluster, { name: 'projected-token', token });
      return through(bare);
    },
  };
}

/** Where kubelet mounts the volume of the ServiceAccount. */
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * The URL of the API server, as the environment of a pod has it.
 * @throws {NotInPodError} outside a pod, as `rest.InClusterConfig` of client-go. A file that is missing is another matter:
 * a sidecar may be about to write it.
 */
export function podServer(): string {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port) {
    const missing = host ? 'KUBERNETES_SERVICE_PORT' : 'KUBERNETES_SERVICE_HOST';
    throw new NotInPodError(`There is no ${missing}, so this is not a pod: set the option kubeConfig`);
  }
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  if (!URL.canParse(server)) {
    throw new NotInPodError(
      `KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not form a URL: ${server}`,
    );
  }
  return server;
}

/**
 * Access to the API server from a pod: the address is in the environment, the CA in the volume of the ServiceAccount.
 * Needs no Kubernetes client.
 * @throws {KubernetesError} (rejects) `ERR_KUBECONFIG` outside a pod, or when its CA cannot be read.
 */
async function podAccess(ports: ReadingPorts): Promise<ClusterAccess> {
  const server = podServer();
  const ca = await readCertificates(`${ACCOUNT}/ca.crt`, ports);
  const bearer = (token = ''): ApiAccess => ({
    server,
    authenticate: (options: RequestOptions) => {
      options.agent = new Agent({ ca });
      options.headers = { Authorization: `Bearer ${token}` };
      return Promise.resolve();
    },
  });
  // Its own credentials are a token, too.
  return { tokenFile: `${ACCOUNT}/token`, token: undefined, own: bearer, bearer };
}

/**
 * A `KubeConfig` without caches: files are read and plugins are run again. client-node caches what it reads for a
 * minute, or longer if the clock is set back.
 */
async function freshKubeConfig(
  source: KubeConfig | string,
  { KubeConfig }: ClientNode,
  ports: ReadingPorts,
): Promise<{ kubeConfig: KubeConfig; cluster: Cluster; user: User }> {
  const fresh = new KubeConfig();
  const name = typeof source === 'string' ? source : 'the kubeconfig';
  if (typeof source === 'string') await loadFromFile(fresh, source, ports);
  else copy(source, fresh);
  const cluster = fresh.getCurrentCluster();
  const user = fresh.getCurrentUser();
  if (!cluster || !user) {
    throw unusable(name, `its current context names no existing ${cluster ? 'user' : 'cluster'}`);
  }
  if (!URL.canParse(cluster.server)) throw unusable(name, 'the server of its cluster is not a URL');
  if (cluster.caFile) await readCertificates(cluster.caFile, ports);
  else if (cluster.caData) {
    checkCertificates(Buffer.from(cluster.caData, 'base64'), `certificate-authority-data of ${name}`);
  }
  await checkClientCertificate(user, name, ports);
  return { kubeConfig: fresh, cluster, user };
}

/** Kubeconfigs, bundles and keys have some KiB. */
export const LARGEST_BYTES = 4 * 1024 * 1024;

/**
 * The certificates in a file.
 * @throws {KubernetesError} `ERR_KUBECONFIG`.
 */
export async function readCertificates(path: string, ports: ReadingPorts): Promise<string> {
  const bytes = await readFile(
    path,
    LARGEST_BYTES,
    ports,
    (why, cause) => new KubernetesError('ERR_KUBECONFIG', `Cannot read the CA in ${path}: ${why}`, { cause }),
  );
  return checkCertificates(bytes, path);
}

/**
 * Checks the client certificate and its key before a connection uses them, because the error of the connection would
 * look like a network failure.
 * @throws {KubernetesError} `ERR_KUBECONFIG`; the message quotes neither.
 */
async function checkClientCertificate(user: User, name: string, ports: ReadingPorts): Promise<void> {
  // As in client-node, the file takes precedence over the data.
  const bytesOf = async (file: string | undefined, data: string | undefined): Promise<Buffer | undefined> => {
    if (!file) return data ? Buffer.from(data, 'base64') : undefined;
    return readFile(file, LARGEST_BYTES, ports, (why, cause) =>
      unusable(name, `the file "${file}" of its user "${user.name}" cannot be read: ${why}`, cause),
    );
  };
  const cert = await bytesOf(user.certFile, user.certData);
  const key = await bytesOf(user.keyFile, user.keyData);
  if (!cert && !key) return;
  if (!cert || !key)
    throw unusable(name, `its user "${user.name}" has only one of client certificate and key`);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const why = `the client certificate and key of its user "${user.name}" cannot be parsed or do not match`;
    throw unusable(name, why, cause);
  }
}

/** The file that client-node would read this user's token from. */
export function tokenFileOf(user: User): string | undefined {
  const { config } = (user.authProvider ?? {}) as { config?: { tokenFile?: unknown } };
  return typeof config?.tokenFile === 'string' ? config.tokenFile : undefined;
}

export function replaceUser(kubeConfig: KubeConfig, user: User): void {
  kubeConfig.users = kubeConfig.users.map((other) => (other.name === user.name ? user : other));
}

async function loadFromFile(fresh: KubeConfig, path: string, ports: ReadingPorts): Promise<void> {
  const bytes = await readFile(path, LARGEST_BYTES, ports, (why, cause) => unusable(path, why, cause));
  try {
    fresh.loadFromString(bytes.toString('utf8'));
    fresh.makePathsAbsolute(dirname(path));
  } catch (cause) {
    // The parser's message quotes the text, which may be a secret.
    throw unusable(
      path,
      errnoOf(cause) === undefined ? 'it is not a kubeconfig in YAML' : 'a file that it names cannot be read',
    );
  }
}

/** Copies the public parts and the added authenticators, but not the built-in ones, which cache what they read. */
function copy(source: KubeConfig, fresh: KubeConfig): void {
  const { clusters, users, contexts, currentContext } = source;
  fresh.loadFromOptions({ clusters, users, contexts, currentContext });
  const { custom_authenticators: added = [] } = source as unknown as {
    custom_authenticators?: readonly Authenticator[];
  };
  for (const authenticator of added) fresh.addAuthenticator(authenticator);
}

function unusable(name: string, why: string, cause?: unknown): KubernetesError {
  return new KubernetesError('ERR_KUBECONFIG', `Cannot use ${name}: ${why}`, { cause });
}
