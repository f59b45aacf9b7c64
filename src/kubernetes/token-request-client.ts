import type { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

import { TokenError } from '../core/errors.js';
import { fileSystem, hasMethods, matching, resolveOptions } from '../core/options.js';
import type { FileSystem } from '../core/file-system.js';
import type { TokenAnswer, TokenClient } from '../core/token-client.js';
import { statusOf, tokenFailure } from './api-failure.js';
import { freshKubeConfig, loadClientNode, type ClientNode, type KubeConfigSource } from './cluster-access.js';

/** The object that a token lives and dies with. */
export interface BoundObjectReference {
  /** `Pod`, `Secret` or `Node`. */
  readonly kind: string;
  readonly name: string;
  readonly apiVersion?: string;
  readonly uid?: string;
}

/** As much of `CoreV1Api` as asking for tokens takes. */
export type TokenApi = Pick<CoreV1Api, 'createNamespacedServiceAccountToken' | 'getAPIResources'>;

/** Options of `tokenRequestClient`. */
export interface TokenRequestClientOptions {
  /** Whose token it is to be. */
  readonly namespace: string;
  readonly serviceAccount: string;
  /**
   * How to reach the API server, and as whom: the path of a kubeconfig, or one that is loaded. Its files are read
   * anew for each request. Default: the pod's own.
   */
  readonly kubeConfig?: KubeConfig | string | undefined;
  /** Instead of `kubeConfig`: asks with this client. How long it keeps its credentials is then its own affair. */
  readonly api?: TokenApi | undefined;
  /** The token ends when this object does; default: it ends only by itself, or with the ServiceAccount. */
  readonly boundObjectRef?: BoundObjectReference | undefined;
  readonly fs?: FileSystem | undefined;
}

const name = matching<string>('', 'a name', (value) => typeof value === 'string' && value !== '');

const OPTIONS = {
  namespace: name,
  serviceAccount: name,
  kubeConfig: matching<KubeConfigSource>(
    undefined,
    'a path or a KubeConfig',
    (value) =>
      (typeof value === 'string' && value !== '' && !value.includes('\0')) ||
      hasMethods(value, ['makeApiClient', 'getCurrentCluster']),
  ),
  api: matching<TokenApi | undefined>(undefined, 'a CoreV1Api', (value) =>
    hasMethods(value, ['createNamespacedServiceAccountToken', 'getAPIResources']),
  ),
  boundObjectRef: matching<BoundObjectReference | undefined>(
    undefined,
    'an object with kind and name',
    (value) => {
      const { kind, name: of } = Object(value) as Record<string, unknown>;
      return typeof kind === 'string' && typeof of === 'string';
    },
  ),
  fs: fileSystem('open', 'read', 'close'),
};

/**
 * Asks the TokenRequest API for tokens of one ServiceAccount, by `@kubernetes/client-node`. What it rejects with
 * is a `TokenError`, and says by its `code` what to do:
 *
 * | code                     | the API server                                   | what helps                   |
 * |--------------------------|--------------------------------------------------|------------------------------|
 * | `ERR_TOKEN_UNAUTHORIZED` | does not take our credentials                    | newer ones; comes by itself  |
 * | `ERR_TOKEN_FORBIDDEN`    | does not let us                                  | RBAC                         |
 * | `ERR_TOKEN_NOT_FOUND`    | knows no such ServiceAccount, or bound object    | create it                    |
 * | `ERR_TOKEN_UNSUPPORTED`  | has no TokenRequest API: 404, and discovery too  | the projected file           |
 * | `ERR_TOKEN_INVALID`      | does not take the request                        | other options                |
 * | `ERR_TOKEN_THROTTLED`    | asks for quietPeriod: `retryAfterMs`                | waiting                      |
 * | `ERR_TOKEN_TIMEOUT`      | or something before it, took too long            | waiting                      |
 * | `ERR_TOKEN_NETWORK`      | was not reached, or is not trusted               | the network, the CA          |
 * | `ERR_TOKEN_REQUEST`      | failed otherwise (5xx); or `cause` tells         |                              |
 *
 * @throws {TypeError} for a wrong option.
 */
export function tokenRequestClient(options: TokenRequestClientOptions): TokenClient {
  const owner = 'tokenRequestClient';
  const resolved = resolveOptions(owner, options, OPTIONS);
  const { namespace, serviceAccount, kubeConfig, boundObjectRef, fs } = resolved;
  for (const [key, value] of Object.entries({ namespace, serviceAccount })) {
    if (value === '') throw new TypeError(`${owner}: option "${key}" must be a name, got undefined`);
  }
  if (kubeConfig !== undefined && resolved.api) {
    throw new TypeError(`${owner}: give "kubeConfig" or "api", not both`);
  }
  return {
    async requestToken({ audiences, expirationSeconds }, { signal }) {
      const spec = {
        audiences: [...audiences],
        expirationSeconds,
        ...(boundObjectRef && { boundObjectRef }),
      };
      try {
        const clientNode = await loadClientNode();
        const api =
          resolved.api ??
          (await freshKubeConfig(kubeConfig, clientNode, fs)).makeApiClient(clientNode.CoreV1Api);
        const abortable = abortableBy(signal, clientNode);
        const { status } = await api
          .createNamespacedServiceAccountToken({ namespace, name: serviceAccount, body: { spec } }, abortable)
          .catch(async (error: unknown) => {
            const isMissing = statusOf(error) === 404 && !(await hasTokenRequest(api, abortable));
            throw isMissing ? unsupported(error) : error;
          });
        // What is not there, the refresher finds missing.
        return (status ?? {}) as TokenAnswer;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw tokenFailure(`${namespace}/${serviceAccount}`, error);
      }
    },
  };
}

/** Whether the server has the API at all; a server that does not say is taken to have it. */
async function hasTokenRequest(api: TokenApi, options: CallOptions): Promise<boolean> {
  const list = await api.getAPIResources(undefined, options).catch(() => undefined);
  return !list || list.resources.some((resource) => resource.name === 'serviceaccounts/token');
}

function unsupported(cause: unknown): TokenError {
  return new TokenError(
    'ERR_TOKEN_UNSUPPORTED',
    'The API server has no TokenRequest API (serviceaccounts/token)',
    {
      cause,
    },
  );
}

type CallOptions = NonNullable<Parameters<TokenApi['createNamespacedServiceAccountToken']>[1]>;

function abortableBy(signal: AbortSignal, { Observable }: ClientNode): CallOptions {
  return {
    middlewareMergeStrategy: 'append',
    middleware: [
      {
        pre(request) {
          request.setSignal(signal);
          return new Observable(Promise.resolve(request));
        },
        post: (response) => new Observable(Promise.resolve(response)),
      },
    ],
  };
}
