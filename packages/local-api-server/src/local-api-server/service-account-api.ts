import { discovery, failure, type ApiAnswer } from './api-answer.js';
import type { ObjectStore } from './object-store.js';
import { listedResources } from './resources.js';
import { ISSUER, type Account, type TokenAuthority, type User } from './token-authority.js';

/** A request whose sender is known. */
interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly user: User;
  readonly body: unknown;
}

/** The API server's bounds of `expirationSeconds`. */
const SHORTEST_SECONDS = 600;
const LONGEST_SECONDS = 2 ** 32;
const DEFAULT_SECONDS = 3_600;

const ACCOUNTS = 'serviceaccounts';
const TOKEN_PATH = /^\/api\/v1\/namespaces\/([^/]+)\/serviceaccounts\/([^/]+)\/token$/;

/** Serves the tokens of ServiceAccounts, reviews, and discovery. */
export class ServiceAccountApi {
  /** Whether there is a TokenRequest API; if not, it answers 404 and the discovery document does not list it. */
  hasTokenRequest = true;
  /** Subjects that may not request tokens. */
  readonly forbidden = new Set<string>();
  readonly #store: ObjectStore;
  readonly #authority: TokenAuthority;

  constructor(authority: TokenAuthority, store: ObjectStore) {
    this.#authority = authority;
    this.#store = store;
  }

  add(namespace: string, name: string): Account {
    return (
      this.#find(namespace, name) ??
      (this.#store.put(ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } })
        .metadata as Account)
    );
  }

  delete(namespace: string, name: string): void {
    this.#store.delete(ACCOUNTS, namespace, name);
  }

  async answer(call: ApiCall): Promise<ApiAnswer> {
    const { method, path } = call;
    const document =
      method === 'GET' ? discovery(path, listedResources(this.#store), this.hasTokenRequest) : undefined;
    if (document) return { status: 200, body: document };
    if (path === '/apis/authentication.k8s.io/v1/tokenreviews') return this.#reviewToken(call);
    if (path === '/apis/authentication.k8s.io/v1/selfsubjectreviews') return reviewSelf(call);
    if (path === '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews') return reviewAccess(call);
    const [, namespace, name] = TOKEN_PATH.exec(path) ?? [];
    if (namespace === undefined || name === undefined || !this.hasTokenRequest) {
      return failure(404, 'the server could not find the requested resource');
    }
    return this.#requestToken(call, namespace, name);
  }

  #find(namespace: string, name: string): Account | undefined {
    return this.#store.get(ACCOUNTS, namespace, name)?.metadata as Account | undefined;
  }

  async #requestToken({ method, user, body }: ApiCall, namespace: string, name: string): Promise<ApiAnswer> {
    if (method !== 'POST') return failure(405, `${method} is not supported on tokens`);
    if (this.forbidden.has(user.username)) {
      return failure(
        403,
        `serviceaccounts "${name}" is forbidden: User "${user.username}" cannot create resource ` +
          `"serviceaccounts/token" in API group "" in the namespace "${namespace}"`,
      );
    }
    const account = this.#find(namespace, name);
    if (!account) return failure(404, `serviceaccounts "${name}" not found`);
    const { spec } = Object(body) as { spec?: unknown };
    if (!isTokenRequestSpec(spec)) return failure(400, 'the body is not a TokenRequest');
    const boundObject = spec.boundObjectRef ?? undefined;
    const expirationSeconds = spec.expirationSeconds ?? DEFAULT_SECONDS;
    if (!(expirationSeconds >= SHORTEST_SECONDS && expirationSeconds <= LONGEST_SECONDS)) {
      return failure(
        422,
        `TokenRequest is invalid: spec.expirationSeconds: Invalid value: ${expirationSeconds}: ` +
          'may not specify a duration less than 10 minutes or larger than 2^32 seconds',
      );
    }
    const audiences = spec.audiences?.length ? spec.audiences : [ISSUER];
    const status = await this.#authority.mint({ account, audiences, expirationSeconds, boundObject });
    return {
      status: 201,
      body: {
        kind: 'TokenRequest',
        apiVersion: 'authentication.k8s.io/v1',
        metadata: { name, namespace },
        spec: { audiences, expirationSeconds, boundObjectRef: boundObject ?? null },
        status,
      },
    };
  }

  async #reviewToken({ body }: ApiCall): Promise<ApiAnswer> {
    const { spec } = Object(body) as { spec?: unknown };
    if (!isTokenReviewSpec(spec)) return failure(400, 'the body is not a TokenReview');
    const wanted = spec.audiences?.length ? spec.audiences : [ISSUER];
    const status = await this.#authority.verify(spec.token, wanted).then(
      ({ user, audiences }) => ({ authenticated: true, user, audiences }),
      (error: unknown) => ({ authenticated: false, error: (error as Error).message }),
    );
    const review = { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', metadata: {} };
    // Like the real API server, which never returns the token.
    return { status: 201, body: { ...review, spec: { audiences: spec.audiences }, status } };
  }
}

interface TokenRequestSpec {
  readonly audiences?: readonly string[] | null;
  readonly expirationSeconds?: number | null;
  readonly boundObjectRef?: { readonly kind: string; readonly name: string; readonly uid?: string } | null;
}

interface TokenReviewSpec {
  readonly token: string;
  readonly audiences?: readonly string[] | null;
}

function isTokenRequestSpec(spec: unknown): spec is TokenRequestSpec {
  if (typeof spec !== 'object' || spec === null) return false;
  const { audiences, expirationSeconds, boundObjectRef } = spec as Readonly<Record<string, unknown>>;
  const { kind, name } = Object(boundObjectRef) as Readonly<Record<string, unknown>>;
  return (
    isAudiences(audiences) &&
    ['undefined', 'number'].includes(typeof (expirationSeconds ?? undefined)) &&
    ((boundObjectRef ?? undefined) === undefined || (typeof kind === 'string' && typeof name === 'string'))
  );
}

function isTokenReviewSpec(spec: unknown): spec is TokenReviewSpec {
  const { token, audiences } = Object(spec) as Readonly<Record<string, unknown>>;
  return typeof token === 'string' && isAudiences(audiences);
}

function isAudiences(value: unknown): boolean {
  return (
    (value ?? undefined) === undefined ||
    (Array.isArray(value) && value.every((audience) => typeof audience === 'string'))
  );
}

function reviewSelf({ user }: ApiCall): ApiAnswer {
  const review = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1', metadata: {} };
  return { status: 201, body: { ...review, status: { userInfo: user } } };
}

/** Every user may do everything. */
function reviewAccess({ body }: ApiCall): ApiAnswer {
  const review = { kind: 'SelfSubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', metadata: {} };
  const { spec } = Object(body) as { spec?: unknown };
  return { status: 201, body: { ...review, spec, status: { allowed: true } } };
}
