import type { KubeConfig } from '@kubernetes/client-node';

import type { Clock } from '../core/clock.js';
import { TokenError } from '../core/token-error.js';
import {
  fileSystem,
  isNonEmptyString,
  matching,
  oneOf,
  PORT_OPTIONS,
  required,
  resolveOptions,
} from '../core/options.js';
import type { ReadingCalls } from '../fs/calls.js';
import { redactError } from '../core/resilient-error.js';
import { systemRandom } from '../core/random.js';
import type { TokenAnswer, TokenClient } from '../core/token-client.js';
import { READING_CALLS } from '../fs/calls.js';
import { statusOf, tokenFailure } from './api-failure.js';
import { requestApi, type ApiAccess } from './api-request.js';
import { KUBE_CONFIG_OPTION, loadClientNode } from './cluster-access.js';
import { credentialsOf, type CredentialUse } from './request-credentials.js';

/** The object that a token is bound to: the token is valid only while the object exists. */
export interface BoundObjectReference {
  /** `Pod`, `Secret` or `Node`. */
  readonly kind: string;
  readonly name: string;
  readonly apiVersion?: string;
  readonly uid?: string;
}

/** Options of `tokenRequestClient`. */
export interface TokenRequestClientOptions {
  /** The ServiceAccount of the token. */
  readonly namespace: string;
  readonly serviceAccount: string;
  /**
   * The API server and the credentials: the path of a kubeconfig, or a loaded kubeconfig. Its files are read again for
   * each request. Default: those of the pod, which do not need `@kubernetes/client-node`.
   */
  readonly kubeConfig?: KubeConfig | string | URL | undefined;
  /**
   * When to authenticate with the projected token that the refresher last saw (its `tokenFile`) instead of the
   * kubeconfig's own credentials. `auto` (default): first for a pod's own kubeconfig, and after a 401 for a kubeconfig
   * whose token has the same issuer. `always`: first. `never`: not at all.
   */
  readonly credential?: CredentialUse | undefined;
  /** The token is valid only while this object exists; default: while the ServiceAccount exists. */
  readonly boundObjectRef?: BoundObjectReference | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The file system. Default: `node:fs`. */
  readonly fs?: ReadingCalls | undefined;
}

const name = required(matching<string | undefined>(undefined, 'a name', isNonEmptyString));

const OPTIONS = {
  namespace: name,
  serviceAccount: name,
  kubeConfig: KUBE_CONFIG_OPTION,
  credential: oneOf<CredentialUse>('auto', ['auto', 'always', 'never']),
  boundObjectRef: matching<BoundObjectReference | undefined>(
    undefined,
    'an object with kind and name',
    (value) => {
      const { kind, name: of } = Object(value) as Record<string, unknown>;
      return typeof kind === 'string' && typeof of === 'string';
    },
  ),
  clock: PORT_OPTIONS.clock,
  fs: fileSystem(...READING_CALLS),
};

/**
 * Creates a client that requests tokens of one ServiceAccount from the TokenRequest API. In a pod, no other package is
 * needed; a kubeconfig is read with `@kubernetes/client-node`. Requests follow no redirect, and at most 4 MiB of a
 * response are read. A failed request rejects with a `TokenError`:
 *
 * | code                     | the API server                                       | what to do                   |
 * |--------------------------|------------------------------------------------------|------------------------------|
 * | `ERR_TOKEN_UNAUTHORIZED` | refuses the credentials named in the message         | wait for newer ones          |
 * | `ERR_TOKEN_FORBIDDEN`    | does not permit the request                          | grant it by RBAC             |
 * | `ERR_TOKEN_UNSUPPORTED`  | has no TokenRequest API (404)                        | use the projected file       |
 * | `ERR_TOKEN_INVALID`      | refuses the request, or has no such object           | change the options           |
 * | `ERR_TOKEN_THROTTLED`    | asks to wait: `retryAfterMs`                         | wait                         |
 * | `ERR_TOKEN_TIMEOUT`      | (or an earlier step) took too long                   | wait                         |
 * | `ERR_TOKEN_NETWORK`      | was not reached, or is not trusted                   | check the network and the CA |
 * | `ERR_TOKEN_CLIENT`       | was not called: `@kubernetes/client-node` is missing | install it                   |
 * | `ERR_TOKEN_REQUEST`      | failed in another way (5xx)                          | see `cause`                  |
 *
 * @throws {TypeError} for a wrong option.
 */
export function tokenRequestClient(options: TokenRequestClientOptions): TokenClient {
  const resolved = resolveOptions('tokenRequestClient', options, OPTIONS);
  const { namespace, serviceAccount, boundObjectRef, kubeConfig, credential: use, clock, fs } = resolved;
  const ports = { fs, clock, random: systemRandom };
  const [inNamespace, ofAccount] = [namespace, serviceAccount].map(encodeURIComponent);
  const path = `/api/v1/namespaces/${inNamespace}/serviceaccounts/${ofAccount}/token`;
  return {
    // Loading the package takes a second of CPU time.
    prepare: () => (kubeConfig === undefined ? Promise.resolve() : loadClientNode()),
    async requestToken({ audiences, expirationSeconds, credential: projected }, { signal }) {
      const refused: string[] = [];
      const secrets = projected ? [projected.value] : [];
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [...audiences], expirationSeconds, ...(boundObjectRef && { boundObjectRef }) },
      };
      try {
        let refusal: unknown;
        for await (const credentials of credentialsOf({ kubeConfig, projected, use, ports })) {
          const { access, secret, description } = credentials;
          if (secret !== undefined) secrets.push(secret);
          try {
            const answer = await requestApi(access, { method: 'POST', path, body, signal });
            const { status } = Object(answer) as { status?: unknown };
            // Missing fields are reported by the refresher.
            return Object(status) as TokenAnswer;
          } catch (error) {
            if (statusOf(error) === 404 && !(await hasTokenRequest(access, signal))) throw unsupported(error);
            if (statusOf(error) !== 401) throw error;
            refusal = error;
            if (description !== undefined) refused.push(description);
          }
        }
        throw refusal;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw tokenFailure(error, { account: `${namespace}/${serviceAccount}`, refused, secrets });
      }
    },
  };
}

/** Whether the server has the API; true if discovery fails. */
async function hasTokenRequest(access: ApiAccess, signal: AbortSignal): Promise<boolean> {
  const discovery = requestApi(access, { method: 'GET', path: '/api/v1', signal });
  const { resources } = Object(await discovery.catch(() => undefined)) as { resources?: unknown };
  if (!Array.isArray(resources)) return true;
  return resources.some((resource: unknown) => {
    const { name } = Object(resource) as { name?: unknown };
    return name === 'serviceaccounts/token';
  });
}

function unsupported(thrown: unknown): TokenError {
  const message = 'The API server has no TokenRequest API (serviceaccounts/token)';
  return new TokenError('ERR_TOKEN_UNSUPPORTED', message, { cause: redactError(thrown) });
}
