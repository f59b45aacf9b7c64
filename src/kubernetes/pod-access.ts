import { Agent, type RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';

import type { ReadingPorts } from '../fs/stable-read.js';
import type { ApiAccess } from './api-request.js';
import { readCertificates, type ClusterAccess } from './cluster-access.js';
import { NotInPodError } from './kubernetes-error.js';

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
export async function podAccess(ports: ReadingPorts): Promise<ClusterAccess> {
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
