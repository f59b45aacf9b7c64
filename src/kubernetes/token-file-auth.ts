import type { RequestOptions } from 'node:https';

import type { KubeConfig, User } from '@kubernetes/client-node';

import { kubeconfigError } from './kubernetes-error.js';
import { poolConnections } from './connection-pool.js';
import { describe, divideOptions, hasMethods, isPath, matching } from '../core/options/options.js';
import { TOKEN_FILE_OPTION_NAMES, TokenFile, type TokenFileOptions } from '../token/token-file.js';
import { replaceUser, tokenFileOf, type Authenticator } from './cluster-access.js';

/**
 * Authenticates requests of `@kubernetes/client-node` with the current token of a file. Replaces its `FileAuth`: the
 * file is watched and read without blocking, the token is trimmed, the last good one is kept, and a jump of the wall
 * clock has no effect. After a reported 401, the file is read again.
 */
export class TokenFileAuth implements Authenticator {
  /** The source of the tokens. */
  readonly file: TokenFile;
  readonly #userName: string;
  readonly #closePool: () => Promise<void>;

  /**
   * @param userName the user of the kubeconfig whose requests are authenticated.
   * @param closePool closes their connections.
   */
  constructor(userName: string, file: TokenFile, closePool = (): Promise<void> => Promise.resolve()) {
    this.#userName = userName;
    this.file = file;
    this.#closePool = closePool;
  }

  isAuthProvider(user: User): boolean {
    return user.name === this.#userName;
  }

  /** @throws {TokenError} when there is no valid token; the request is then not sent. */
  async applyAuthentication(_user: User, options: Pick<RequestOptions, 'headers'>): Promise<void> {
    const token = await this.file.get();
    options.headers = {
      ...(options.headers as Record<string, string>),
      Authorization: `Bearer ${token.value}`,
    };
  }

  /** Reports a 401 of the API server: the file is read again before the next request. */
  reportUnauthorized(): void {
    void this.file.reportUnauthorized();
  }

  /** Stops watching, and closes the connections when requests in flight have finished. Never rejects. */
  async close(): Promise<void> {
    void this.#closePool();
    await this.file.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Options of `withTokenFile`, in addition to those of `TokenFile`. */
export interface WithTokenFileOptions extends TokenFileOptions {
  /** Default: the token file of the kubeconfig's user, as `loadFromCluster()` sets it. */
  readonly path?: string | URL | undefined;
}

const OPTIONS = { path: matching<string | URL | undefined>(undefined, 'a path or a file: URL', isPath) };

/** Other credentials of a user, which client-node would try first. */
const OTHER_WAYS = ['authProvider', 'exec', 'token', 'username', 'password'];

/**
 * Makes the current user of a `KubeConfig` authenticate with `TokenFileAuth`, in all clients created from it. Requests
 * share their connections, which are replaced when the CA or a client certificate changes. Clients created by
 * `makeApiClient()` afterwards report a 401 automatically; for `Watch`, `Exec` and others, call
 * `reportUnauthorized()`. Close the returned object when the `KubeConfig` is no longer used.
 *
 * @throws {KubernetesError} `ERR_KUBECONFIG` when there is no current user or no file.
 * @throws {TypeError | RangeError} for a wrong option, or something that is not a `KubeConfig`.
 */
export function withTokenFile(kubeConfig: KubeConfig, options?: WithTokenFileOptions): TokenFileAuth {
  if (!hasMethods(kubeConfig, ['getCurrentUser', 'makeApiClient', 'addAuthenticator'])) {
    const wanted = 'a KubeConfig of @kubernetes/client-node';
    throw new TypeError(`withTokenFile: kubeConfig must be ${wanted}, got ${describe(kubeConfig)}`);
  }
  const { own, rest: others } = divideOptions('withTokenFile', options, OPTIONS, TOKEN_FILE_OPTION_NAMES);
  const user = kubeConfig.getCurrentUser();
  if (!user) throw kubeconfigError('The kubeconfig has no current user');
  const tokenFile = own.path ?? tokenFileOf(user);
  if (tokenFile === undefined) {
    throw kubeconfigError(`The user "${user.name}" has no token file: set the option "path"`);
  }
  const auth = new TokenFileAuth(user.name, new TokenFile(tokenFile, others), poolConnections(kubeConfig));
  const rest = Object.entries(user).filter(([key]) => !OTHER_WAYS.includes(key));
  replaceUser(kubeConfig, Object.fromEntries(rest) as unknown as User);
  kubeConfig.addAuthenticator(auth);
  const makeApiClient = kubeConfig.makeApiClient.bind(kubeConfig);
  kubeConfig.makeApiClient = (type) => makeApiClient(reporting(type, auth));
  return auth;
}

type ApiConstructor = Parameters<KubeConfig['makeApiClient']>[0];

/** The same client, which also reports each 401. */
function reporting<T extends ApiConstructor>(type: T, auth: TokenFileAuth): T {
  const build = type as unknown as new (...args: ConstructorParameters<ApiConstructor>) => object;
  const derived = class extends build {
    constructor(...[configuration]: ConstructorParameters<ApiConstructor>) {
      const { httpApi } = configuration;
      const send: typeof httpApi.send = (request) => {
        const answer = httpApi.send(request);
        answer.toPromise().then(
          ({ httpStatusCode }) => httpStatusCode === 401 && auth.reportUnauthorized(),
          // The caller gets the error.
          () => {},
        );
        return answer;
      };
      super({ ...configuration, httpApi: { send } });
    }
  };
  return derived as unknown as T;
}
