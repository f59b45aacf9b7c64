import { TokenError } from '../core/errors/token-error.js';
import { isNonEmptyString, matching, oneOf, required, resolveOptions } from '../core/options/options.js';
import { redactError } from '../core/errors/resilient-error.js';
import { untilAborted } from '../core/scheduling/abort.js';
import type { TokenAnswer, TokenClient } from '../core/ports/token-client.js';
import { statusOf, tokenFailure } from './api-failure.js';
import { requestApi, type ApiAccess, type ApiRequest } from './api-request.js';
import { CLUSTER_OPTIONS, clusterOf, loadClientNode, type ClusterClientOptions } from './cluster-access.js';
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
export interface TokenRequestClientOptions extends ClusterClientOptions {
  /** The ServiceAccount of the token. */
  readonly namespace: string;
  readonly serviceAccount: string;
  /**
   * When to authenticate with the projected token that the refresher last saw (its `tokenFile`) instead of the
   * kubeconfig's own credentials. `auto` (default): only for the API server of the pod; first if the kubeconfig has a token
   * file, and after a 401 if it has a token of the same issuer and audience. `always`: first, whatever the API server.
   * `never`: not at all.
   */
  readonly credential?: CredentialUse | undefined;
  /** The token is valid only while this object exists; default: while the ServiceAccount exists. */
  readonly boundObjectRef?: BoundObjectReference | undefined;
}

const name = required(matching<string | undefined>(undefined, 'a name', isNonEmptyString));

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  namespace: name,
  serviceAccount: name,
  credential: oneOf<CredentialUse>('auto', ['auto', 'always', 'never']),
  boundObjectRef: matching<BoundObjectReference | undefined>(
    undefined,
    'an object with kind and name',
    (value) => {
      const { kind, name: of } = Object(value) as Record<string, unknown>;
      return typeof kind === 'string' && typeof of === 'string';
    },
  ),
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
 * | `ERR_TOKEN_PLUGIN`       | was not called: the kubeconfig's plugin failed       | see the message              |
 * | `ERR_TOKEN_CLIENT`       | was not called: `@kubernetes/client-node` is missing | install it                   |
 * |                          | was not called: this is not a pod                    | set `kubeConfig`             |
 * | `ERR_TOKEN_REQUEST`      | failed in another way (5xx)                          | see `cause`                  |
 *
 * @throws {TypeError} for a wrong option.
 */
export function tokenRequestClient(options: TokenRequestClientOptions): TokenClient {
  const owner = 'tokenRequestClient';
  const {
    namespace,
    serviceAccount,
    credential: use,
    boundObjectRef,
    ...rest
  } = resolveOptions(owner, options, OPTIONS);
  const cluster = clusterOf(owner, rest);
  const [inNamespace, ofAccount] = [namespace, serviceAccount].map(encodeURIComponent);
  const path = `/api/v1/namespaces/${inNamespace}/serviceaccounts/${ofAccount}/token`;
  return {
    // Loading it takes a second of CPU time.
    prepare: () => (cluster.needsPackage ? loadClientNode() : Promise.resolve()),
    async requestToken({ audiences, expirationSeconds, credential: projected }, { signal }) {
      const refused: string[] = [];
      const secrets = projected ? [projected.value] : [];
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [...audiences], expirationSeconds, ...(boundObjectRef && { boundObjectRef }) },
      };
      /** With each of the credentials in turn, as long as the server answers 401. */
      const mint = async (): Promise<TokenAnswer> => {
        const context = { cluster: await cluster.access(), ports: cluster.ports, projected, use };
        let refusal: unknown;
        for await (const { access, description, forget } of credentialsOf(context, signal)) {
          try {
            return await mintWith({ ...access, secrets }, { method: 'POST', path, body, signal });
          } catch (error) {
            if (statusOf(error) !== 401) throw error;
            forget();
            refusal = error;
            if (description !== undefined) refused.push(description);
          }
        }
        throw refusal;
      };
      try {
        // What comes before the request does not end with the signal.
        return await untilAborted(mint(), signal);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw tokenFailure(error, { account: `${namespace}/${serviceAccount}`, refused, secrets });
      }
    },
  };
}

async function mintWith(access: ApiAccess, request: ApiRequest): Promise<TokenAnswer> {
  const answer = await requestApi(access, request).catch(async (error: unknown) => {
    const isMissing = statusOf(error) === 404 && !(await hasTokenRequest(access, request.signal));
    throw isMissing ? unsupported(error) : error;
  });
  // Missing fields are reported by the refresher.
  const { status } = Object(answer) as { status?: unknown };
  return Object(status) as TokenAnswer;
}

/** Whether the server has the API; true if discovery fails. */
async function hasTokenRequest(access: ApiAccess, signal: AbortSignal): Promise<boolean> {
  const list = await requestApi(access, { method: 'GET', path: '/api/v1', signal }).catch(() => undefined);
  const { resources } = Object(list) as { resources?: unknown };
  if (!Array.isArray(resources)) return true;
  return resources.some((one) => (Object(one) as { name?: unknown }).name === 'serviceaccounts/token');
}

function unsupported(thrown: unknown): TokenError {
  const message = 'The API server has no TokenRequest API (serviceaccounts/token)';
  return new TokenError('ERR_TOKEN_UNSUPPORTED', message, { cause: redactError(thrown) });
}
