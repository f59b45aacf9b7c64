import { Agent, type RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';

import type { ReadingPorts } from '../fs/stable-read.js';
import type { ApiAccess } from './api-request.js';
import { readCertificates, type ClusterAccess } from './cluster-access.js';
import { KubernetesError } from './kubernetes-error.js';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Access to the API server from a pod: the address is in the environment, the CA in the volume of the ServiceAccount.
 * Needs no Kubernetes client.
 */
export class PodAccess implements ClusterAccess {
  readonly tokenFile = `${ACCOUNT}/token`;
  readonly token = undefined;
  readonly #server: string;
  readonly #ca: string;

  private constructor(server: string, ca: string) {
    this.#server = server;
    this.#ca = ca;
  }

  /** @throws {KubernetesError} `ERR_KUBECONFIG` outside of a pod, `ERR_KUBECONFIG_CA`. */
  static async read(ports: ReadingPorts, env = process.env): Promise<PodAccess> {
    const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
    if (!host || !port) {
      const missing = host ? 'KUBERNETES_SERVICE_PORT' : 'KUBERNETES_SERVICE_HOST';
      throw new KubernetesError(
        'ERR_KUBECONFIG',
        `There is no ${missing}, so this is not a pod: set the option kubeConfig`,
      );
    }
    const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
    if (!URL.canParse(server)) {
      throw new KubernetesError(
        'ERR_KUBECONFIG',
        `KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not form a URL: ${server}`,
      );
    }
    return new PodAccess(server, await readCertificates(`${ACCOUNT}/ca.crt`, ports));
  }

  /** Its own credentials are a token, too. */
  own(token = ''): ApiAccess {
    return this.bearer(token);
  }

  bearer(token: string): ApiAccess {
    return {
      server: this.#server,
      authenticate: (options: RequestOptions) => {
        options.agent = new Agent({ ca: this.#ca });
        options.headers = { Authorization: `Bearer ${token}` };
        return Promise.resolve();
      },
    };
  }
}
