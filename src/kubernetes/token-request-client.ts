import { globalAgent as httpAgent, type Agent } from 'node:http';
import { globalAgent as httpsAgent } from 'node:https';

import type { CoreV1Api, KubeConfig, RequestContext, ResponseContext } from '@kubernetes/client-node';

import type { Clock } from '../core/ports/clock.js';
import { TokenError } from '../core/errors/token-error.js';
import {
  fileSystem,
  hasMethods,
  isNonEmptyString,
  matching,
  oneOf,
  PORT_OPTIONS,
  required,
  resolveOptions,
} from '../core/options/options.js';
import type { ReadingCalls } from '../fs/calls.js';
import { redactError } from '../core/errors/resilient-error.js';
import { untilAborted } from '../core/scheduling/abort.js';
import { systemRandom } from '../core/ports/random.js';
import type { TokenAnswer, TokenClient, TokenCredential } from '../core/ports/token-client.js';
import { READING_CALLS } from '../fs/calls.js';
import { statusOf, tokenFailure } from './api-failure.js';
import { MAX_BODY_BYTES, readText, requestApi, secretsIn, type ApiAccess } from './api-request.js';
import {
  accessTo,
  clusterChoice,
  KUBE_CONFIG_OPTION,
  loadClientNode,
  type ClientNode,
} from './cluster-access.js';
import { ExecPlugins } from './exec-plugins.js';
import { guardedAgent } from './guarded-agent.js';
import { credentialsOf, type CredentialUse } from './request-credentials.js';

/** The object that a token is bound to: the token is valid only while the object exists. */
export interface BoundObjectReference {
  /** `Pod`, `Secret` or `Node`. */
  readonly kind: string;
  readonly name: string;
  readonly apiVersion?: string;
  readonly uid?: string;
}

/** The part of `CoreV1Api` that requests tokens. */
export type TokenApi = Pick<CoreV1Api, 'createNamespacedServiceAccountToken' | 'getAPIResources'>;

/** Options of `tokenRequestClient`. */
export interface TokenRequestClientOptions {
  /** The ServiceAccount of the token. */
  readonly namespace: string;
  readonly serviceAccount: string;
  /**
   * The API server and the credentials: the path of a kubeconfig, or several as in the variable `KUBECONFIG`, which are
   * merged as by kubectl, or a loaded kubeconfig. Its files are read again for each request. Default: those of the pod,
   * which do not need `@kubernetes/client-node`.
   */
  readonly kubeConfig?: KubeConfig | string | URL | undefined;
  /**
   * Instead of `kubeConfig`: the client to use. It decides how long it caches its credentials. Redirects to other
   * hosts do not receive them, and at most 4 MiB of a response are read.
   */
  readonly api?: TokenApi | undefined;
  /**
   * When to authenticate with the projected token that the refresher last saw (its `tokenFile`) instead of the
   * kubeconfig's own credentials. `auto` (default): only for the API server of the pod; first if the kubeconfig has a token
   * file, and after a 401 if it has a token of the same issuer and audience. `always`: first, whatever the API server.
   * `never`: not at all. Not with `api`.
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
 * | `ERR_TOKEN_PLUGIN`       | was not called: the kubeconfig's plugin failed       | see the message              |
 * | `ERR_TOKEN_CLIENT`       | was not called: `@kubernetes/client-node` is missing | install it                   |
 * |                          | was not called: this is not a pod                    | set `kubeConfig`             |
 * | `ERR_TOKEN_REQUEST`      | failed in another way (5xx)                          | see `cause`                  |
 *
 * @throws {TypeError} for a wrong option.
 */
export function tokenRequestClient(options: TokenRequestClientOptions): TokenClient {
  const settings = resolveClientOptions(options);
  const { api, kubeConfig, account, boundObjectRef } = settings;
  const needsPackage = api !== undefined || kubeConfig !== undefined;
  return {
    // Loading it takes a second of CPU time.
    prepare: () => (needsPackage ? loadClientNode() : Promise.resolve()),
    async requestToken({ audiences, expirationSeconds, credential: projected }, { signal }) {
      const refused: string[] = [];
      const secrets = projected ? [projected.value] : [];
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [...audiences], expirationSeconds, ...(boundObjectRef && { boundObjectRef }) },
      };
      try {
        const minted = api
          ? loadClientNode().then((client) => mint(givenApi(api, account, client, { signal, secrets }), body))
          : mintWithAnyOf(settings, { body, projected, signal, refused, secrets });
        // What comes before the request does not end with the signal.
        return await untilAborted(minted, signal);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw tokenFailure(error, { account: `${account.namespace}/${account.name}`, refused, secrets });
      }
    },
  };
}

type ClientSettings = ReturnType<typeof resolveClientOptions>;

/** @throws {TypeError} for a wrong or missing option, or options that exclude each other. */
function resolveClientOptions(options: TokenRequestClientOptions) {
  const owner = 'tokenRequestClient';
  const { namespace, serviceAccount, kubeConfig, clock, fs, ...rest } = resolveOptions(
    owner,
    options,
    OPTIONS,
  );
  if (kubeConfig !== undefined && rest.api) {
    throw new TypeError(`${owner}: give "kubeConfig" or "api", not both`);
  }
  if (options.credential !== undefined && rest.api) {
    throw new TypeError(`${owner}: "credential" has no effect with "api", which has its own credentials`);
  }
  return {
    ...rest,
    account: { namespace, name: serviceAccount },
    kubeConfig: clusterChoice(owner, kubeConfig),
    ports: { fs, clock, random: systemRandom, plugins: new ExecPlugins(clock) },
  };
}

interface MintAttempt {
  readonly body: TokenRequestBody;
  /** The newest projected token that is known. */
  readonly projected: TokenCredential | undefined;
  readonly signal: AbortSignal;
  /** The credentials that the server has refused, in words. */
  readonly refused: string[];
  /** What was used to authenticate, and must not be shown. */
  readonly secrets: string[];
}

/** Requests a token with each of the credentials in turn, as long as the server answers 401. */
async function mintWithAnyOf(
  { account, kubeConfig, credential: use, ports }: ClientSettings,
  { body, projected, signal, refused, secrets }: MintAttempt,
): Promise<TokenAnswer> {
  const cluster = await accessTo(kubeConfig, ports);
  let refusal: unknown;
  const context = { cluster, projected, use, ports };
  for await (const { access, description, forget } of credentialsOf(context, signal)) {
    try {
      return await mint(tokenApi({ ...access, secrets }, account, signal), body);
    } catch (error) {
      if (statusOf(error) !== 401) throw error;
      forget();
      refusal = error;
      if (description !== undefined) refused.push(description);
    }
  }
  throw refusal;
}

interface Account {
  readonly namespace: string;
  readonly name: string;
}

interface TokenServer {
  /** Resolves to the TokenRequest with its `status`. */
  create(body: TokenRequestBody): Promise<unknown>;
  /** The names of the resources of the core API. */
  resources(): Promise<readonly { readonly name: string }[]>;
}

interface TokenRequestBody {
  readonly spec: {
    readonly audiences: string[];
    readonly expirationSeconds: number;
    readonly boundObjectRef?: BoundObjectReference;
  };
}

async function mint(server: TokenServer, body: TokenRequestBody): Promise<TokenAnswer> {
  const answer = await server.create(body).catch(async (error: unknown) => {
    const isMissing = statusOf(error) === 404 && !(await hasTokenRequest(server));
    throw isMissing ? unsupported(error) : error;
  });
  // Missing fields are reported by the refresher.
  const { status } = Object(answer) as { status?: unknown };
  return Object(status) as TokenAnswer;
}

/** Whether the server has the API; true if discovery fails. */
async function hasTokenRequest(server: TokenServer): Promise<boolean> {
  const resources = await server.resources().catch(() => undefined);
  return !resources || resources.some((resource) => resource.name === 'serviceaccounts/token');
}

function tokenApi(access: ApiAccess, { namespace, name }: Account, signal: AbortSignal): TokenServer {
  const [inNamespace, ofAccount] = [namespace, name].map(encodeURIComponent);
  const path = `/api/v1/namespaces/${inNamespace}/serviceaccounts/${ofAccount}/token`;
  return {
    create: (body) => requestApi(access, { method: 'POST', path, body, signal }),
    async resources() {
      const list = await requestApi(access, { method: 'GET', path: '/api/v1', signal });
      const { resources } = Object(list) as { resources?: unknown };
      if (!Array.isArray(resources)) throw new Error('the discovery document lists no resources');
      return resources as { name: string }[];
    },
  };
}

function givenApi(
  api: TokenApi,
  account: Account,
  client: ClientNode,
  { signal, secrets }: Pick<MintAttempt, 'signal' | 'secrets'>,
): TokenServer {
  const options = abortableBy(signal, client, secrets);
  return {
    create: ({ spec }) => api.createNamespacedServiceAccountToken({ ...account, body: { spec } }, options),
    resources: async () => (await api.getAPIResources(undefined, options)).resources,
  };
}

function unsupported(thrown: unknown): TokenError {
  const message = 'The API server has no TokenRequest API (serviceaccounts/token)';
  return new TokenError('ERR_TOKEN_UNSUPPORTED', message, { cause: redactError(thrown) });
}

type CallOptions = NonNullable<Parameters<TokenApi['createNamespacedServiceAccountToken']>[1]>;

function abortableBy(signal: AbortSignal, { Observable }: ClientNode, secrets: string[]): CallOptions {
  return {
    middlewareMergeStrategy: 'append',
    middleware: [
      {
        pre(request) {
          request.setSignal(signal);
          secrets.push(...secretsIn({ headers: request.getHeaders() }));
          guardAgent(request);
          return new Observable(Promise.resolve(request));
        },
        post(response) {
          limitBody(response);
          return new Observable(Promise.resolve(response));
        },
      },
    ],
  };
}

/** Version 1 of client-node sends through an agent. */
function guardAgent(request: RequestContext): void {
  const sent = request as unknown as Partial<{ getAgent(): Agent | undefined; setAgent(agent: Agent): void }>;
  if (!sent.getAgent || !sent.setAgent) return;
  const usual = request.getUrl().startsWith('https:') ? httpsAgent : httpAgent;
  sent.setAgent(guardedAgent(sent.getAgent() ?? usual, MAX_BODY_BYTES));
}

/** Version 2 provides the body as a stream, and does not send credentials to another origin. */
function limitBody(response: ResponseContext): void {
  const body = response.body as unknown as {
    stream?(): AsyncIterable<Uint8Array> | null;
    text(): Promise<string>;
  };
  const stream = body.stream?.bind(body);
  if (stream)
    body.text = async () => readText(stream() ?? (async function* () {})(), response.httpStatusCode);
}
