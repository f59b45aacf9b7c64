import { Agent, type RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';
import { createSecureContext } from 'node:tls';

import type * as clientNode from '@kubernetes/client-node';
import type { KubeConfig, User } from '@kubernetes/client-node';

import { kubeconfigError, NotInPodError } from './kubernetes-error.js';
import {
  checkPath,
  fileSystem,
  hasMethods,
  isPath,
  matching,
  PORT_OPTIONS,
  type Resolved,
} from '../core/options/options.js';
import type { Clock } from '../core/ports/clock.js';
import { systemRandom } from '../core/ports/random.js';
import { READING_CALLS, type ReadingCalls } from '../fs/calls.js';
import { PackageError } from '../core/errors/package-error.js';
import { readFile } from '../fs/read-file.js';
import type { ReadingPorts } from '../fs/stable-read.js';
import type { ApiAccess } from './api-request.js';
import { ExecPlugins, type ExecCredential, type ExecPlugin } from './exec-plugins.js';
import { checkCertificates } from './kubeconfig.js';
import {
  LARGEST_BYTES,
  readKubeconfig,
  unusable,
  type KubeconfigCluster,
  type KubeconfigUser,
} from './kubeconfig-file.js';
import { isKnownProxy } from './proxy-tunnel.js';

const PACKAGE = '@kubernetes/client-node';
const VERSIONS = '1.3 or later; 2 needs Node 22.19';

/** What to install: by default npm takes version 2, whose import ends a process with an older Node.js. */
export function clientNodeFor(node: string): string {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 19) ? PACKAGE : `${PACKAGE}@1`;
}

/** Options of `clusterClient`. */
export interface ClusterClientOptions {
  /**
   * The API server and the credentials: the path of a kubeconfig, or several as in the variable `KUBECONFIG`, which are
   * merged as by kubectl, or a loaded kubeconfig. Its files are read again for each request. Default: those of the pod,
   * which do not need `@kubernetes/client-node`.
   */
  readonly kubeConfig?: KubeConfig | string | URL | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The file system. Default: `node:fs`. */
  readonly fs?: ReadingCalls | undefined;
}

/** The checks of the options, and the defaults. */
export const CLUSTER_OPTIONS = {
  kubeConfig: matching<KubeConfig | string | URL | undefined>(
    undefined,
    'a path or a KubeConfig',
    (value) => isPath(value) || hasMethods(value, ['makeApiClient', 'getCurrentCluster']),
  ),
  clock: PORT_OPTIONS.clock,
  fs: fileSystem(...READING_CALLS),
};

/** Authenticates requests of a `KubeConfig`; client-node does not export this type. */
export type Authenticator = Parameters<KubeConfig['addAuthenticator']>[0];

/**
 * Loads the optional peer dependency.
 * @throws {PackageError} when it cannot be loaded or is too old.
 */
export async function loadClientNode(): Promise<typeof clientNode> {
  let client: typeof clientNode;
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
  /** The plugin that gives its own credentials. */
  readonly plugin: ExecPlugin | undefined;
  /** Whether it is the API server of the pod that this process runs in, so that the pod's tokens are meant for it. */
  readonly isPods: boolean;
  /** Requests with its own credentials; `credential` is what its token file contains, or its plugin gave. */
  own(credential?: ExecCredential): ApiAccess;
  /** Requests with nothing but this token as credentials. */
  bearer(token: string): ApiAccess;
}

/** What reading a cluster needs; the plugins are those of one client. */
export interface ClusterPorts extends ReadingPorts {
  readonly plugins: ExecPlugins;
}

/** The cluster of a client. */
export interface Cluster {
  readonly ports: ClusterPorts;
  /** Whether `@kubernetes/client-node` reads it. */
  readonly needsPackage: boolean;
  /**
   * Reads it as it is now.
   * @throws {KubernetesError} (rejects) `ERR_KUBECONFIG`.
   * @throws {PackageError} (rejects) for a kubeconfig, when its package cannot be loaded.
   */
  access(): Promise<ClusterAccess>;
}

/** The cluster that checked options are about. */
export function clusterOf(
  owner: string,
  { kubeConfig, clock, fs }: Resolved<typeof CLUSTER_OPTIONS>,
): Cluster {
  const source = isPath(kubeConfig) ? checkPath(owner, 'option "kubeConfig"', kubeConfig) : kubeConfig;
  const ports = { fs, clock, random: systemRandom, plugins: new ExecPlugins(clock) };
  return {
    ports,
    needsPackage: source !== undefined,
    access: () => (source === undefined ? podAccess(ports) : kubeConfigAccess(source, ports)),
  };
}

/** The current cluster and user of a kubeconfig. A token file of the user is not read yet. */
async function kubeConfigAccess(source: KubeConfig | string, ports: ReadingPorts): Promise<ClusterAccess> {
  const client = await loadClientNode();
  const name = typeof source === 'string' ? source : 'the kubeconfig';
  const given =
    typeof source === 'string' ? await readKubeconfig(source, client, ports) : currentOf(source, name);
  const { cluster, proxy } = await usableCluster(given.cluster, name, ports);
  const user = await usableUser(given.user, name, ports);
  const tokenFile = tokenFileOf(user);
  const plugin = user.token === undefined ? pluginOf(user, cluster, proxy) : undefined;
  const through = (as: KubeconfigUser): ApiAccess => ({
    server: cluster.server,
    proxy,
    async authenticate(options) {
      // Without caches: client-node keeps what it reads for a minute, or longer if the clock is set back.
      const config = new client.KubeConfig();
      config.loadFromClusterAndUser(cluster, as);
      if (as === user) for (const added of authenticatorsOf(source)) config.addAuthenticator(added);
      options.headers = { ...as.impersonation };
      await config.applyToHTTPSOptions(options);
    },
  });
  return {
    tokenFile,
    token: user.token,
    plugin,
    // Behind a proxy, the same name and address are those of another cluster.
    isPods: !given.cluster.proxyUrl && isServerOfPod(cluster.server),
    own(credential) {
      if (!credential) return through(user);
      const { token, cert, key } = credential;
      const pair =
        cert === undefined || key === undefined ? {} : { certData: base64(cert), keyData: base64(key) };
      // The other fields of the user, such as a client certificate or the user to impersonate, are kept.
      const without = { ...user, authProvider: undefined, exec: undefined };
      return through({ ...without, ...pair, ...(token !== undefined && { token }) });
    },
    bearer: (token) => through({ name: 'projected-token', token }),
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

/** Whether this process runs in a pod whose API server this is. */
function isServerOfPod(server: string): boolean {
  try {
    const [own, given] = [new URL(podServer()), new URL(server)];
    const isNamed = /^kubernetes\.default(?:\.svc(?:\.cluster\.local)?)?$/.test(given.hostname);
    return own.protocol === given.protocol && (isNamed || own.host === given.host);
  } catch {
    return false;
  }
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
    proxy: undefined,
    authenticate: (options: RequestOptions) => {
      options.agent = new Agent({ ca });
      options.headers = { Authorization: `Bearer ${token}` };
      return Promise.resolve();
    },
  });
  // Its own credentials are a token, too.
  const own = { tokenFile: `${ACCOUNT}/token`, token: undefined, plugin: undefined, isPods: true };
  return { ...own, own: (credential) => bearer(credential?.token), bearer };
}

/** @throws {KubernetesError} `ERR_KUBECONFIG`. */
function currentOf(source: KubeConfig, name: string): { cluster: KubeconfigCluster; user: KubeconfigUser } {
  const cluster = source.getCurrentCluster();
  const user = source.getCurrentUser();
  if (cluster && user) return { cluster, user };
  throw unusable(name, `its current context names no existing ${cluster ? 'user' : 'cluster'}`);
}

/** The authenticators that a program has added to its `KubeConfig`, which has no public way to ask for them. */
function authenticatorsOf(source: KubeConfig | string): readonly Authenticator[] {
  const { custom_authenticators: added = [] } = Object(source) as {
    custom_authenticators?: readonly Authenticator[];
  };
  return added;
}

/** With the contents of its files. A proxy that is known here is not left to client-node. */
async function usableCluster(
  given: KubeconfigCluster,
  name: string,
  ports: ReadingPorts,
): Promise<{ readonly cluster: KubeconfigCluster; readonly proxy: string | undefined }> {
  const { caFile, proxyUrl, ...cluster } = given;
  if (!URL.canParse(cluster.server)) throw unusable(name, 'the server of its cluster is not a URL');
  if (proxyUrl && !URL.canParse(proxyUrl)) throw unusable(name, 'the proxy-url of its cluster is not a URL');
  if (cluster.caData && !caFile) {
    checkCertificates(Buffer.from(cluster.caData, 'base64'), `certificate-authority-data of ${name}`);
  }
  const ca = caFile ? { caData: base64(await readCertificates(caFile, ports)) } : {};
  const proxy = proxyUrl && isKnownProxy(proxyUrl) ? proxyUrl : undefined;
  return { cluster: { ...cluster, ...ca, ...(proxyUrl && !proxy && { proxyUrl }) }, proxy };
}

/**
 * The certificates in a file.
 * @throws {KubernetesError} `ERR_KUBECONFIG`.
 */
export async function readCertificates(path: string, ports: ReadingPorts): Promise<string> {
  const bytes = await readFile(path, LARGEST_BYTES, ports, (why, cause) =>
    kubeconfigError(`Cannot read the CA in ${path}: ${why}`, cause),
  );
  return checkCertificates(bytes, path);
}

/**
 * With the contents of its files. Checks the client certificate and its key before a connection uses them, because the
 * error of the connection would look like a network failure.
 * @throws {KubernetesError} `ERR_KUBECONFIG`; the message quotes neither.
 */
async function usableUser(given: KubeconfigUser, name: string, ports: ReadingPorts): Promise<KubeconfigUser> {
  const { certFile, keyFile, ...user } = given;
  // As in client-node, the file takes precedence over the data.
  const bytesOf = async (file: string | undefined, data: string | undefined): Promise<Buffer | undefined> => {
    if (!file) return data ? Buffer.from(data, 'base64') : undefined;
    return readFile(file, LARGEST_BYTES, ports, (why, cause) =>
      unusable(name, `the file "${file}" of its user "${user.name}" cannot be read: ${why}`, cause),
    );
  };
  refuseCommand(user, name);
  const cert = await bytesOf(certFile, user.certData);
  const key = await bytesOf(keyFile, user.keyData);
  if (!cert && !key) return user;
  if (!cert || !key)
    throw unusable(name, `its user "${user.name}" has only one of client certificate and key`);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const why = `the client certificate and key of its user "${user.name}" cannot be parsed or do not match`;
    throw unusable(name, why, cause);
  }
  return { ...user, certData: cert.toString('base64'), keyData: key.toString('base64') };
}

interface AuthProvider {
  readonly name?: unknown;
  readonly config?: Readonly<Record<string, unknown>> | null;
}

/** @throws {KubernetesError} for a command that client-node would run synchronously, without any limit. */
function refuseCommand({ name: user, authProvider }: KubeconfigUser, name: string): void {
  const { name: provider, config } = Object(authProvider) as AuthProvider;
  if ((provider !== 'gcp' && provider !== 'azure') || !config?.['cmd-path']) return;
  const why = `the auth-provider "${provider}" of its user "${user}" was removed from Kubernetes 1.26`;
  throw unusable(name, `${why}: use a plugin (exec), gke-gcloud-auth-plugin or kubelogin`);
}

/** The file that this user's token is read from. */
export function tokenFileOf(user: KubeconfigUser): string | undefined {
  const { config } = Object(user.authProvider) as AuthProvider;
  const { tokenFile = config?.['tokenFile'] } = user;
  return typeof tokenFile === 'string' ? tokenFile : undefined;
}

/** The plugin that gives this user's credentials, in the field `exec` or as client-node also finds it. */
function pluginOf(
  { exec, authProvider }: KubeconfigUser,
  { server, tlsServerName, skipTLSVerify, caData, pluginConfig: config }: KubeconfigCluster,
  proxy: string | undefined,
): ExecPlugin | undefined {
  const found: unknown = exec ?? (Object(authProvider) as AuthProvider).config?.['exec'];
  if (typeof found !== 'object' || found === null) return undefined;
  const plugin = found as ExecPlugin & { readonly provideClusterInfo?: unknown };
  if (plugin.provideClusterInfo !== true) return plugin;
  const cluster = {
    server,
    'tls-server-name': tlsServerName,
    'insecure-skip-tls-verify': skipTLSVerify || undefined,
    'certificate-authority-data': caData,
    'proxy-url': proxy,
    config,
  };
  return { ...plugin, cluster };
}

export function replaceUser(kubeConfig: KubeConfig, user: User): void {
  kubeConfig.users = kubeConfig.users.map((other) => (other.name === user.name ? user : other));
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
