import { generateKeyPair, randomUUID, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

import type { Clock, TokenAnswer, TokenClaims } from 'resilient-watcher';
import { kubernetesTime } from 'resilient-watcher/internal';

import { signJwt, verifyJwt } from './jwt.js';

/** A ServiceAccount, as its tokens name it. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The object that a token is bound to. */
export interface BoundObject {
  readonly kind: string;
  readonly name: string;
  readonly uid?: string | undefined;
}

/** The user of a token, as in TokenReview. */
export interface User {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** The fields of a token that is minted. */
interface TokenSpec {
  readonly account: Account;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly boundObject?: BoundObject | undefined;
}

interface SigningKey {
  readonly id: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export const ISSUER = 'https://kubernetes.default.svc.cluster.local';

/** go-jose's default leeway, which the API server uses. */
const LEEWAY_SECONDS = 60;

/** `WarnOnlyBoundTokenExpirationSeconds` and `ExpirationExtensionSeconds` (pkg/serviceaccount/claims.go). */
const DEFAULT_POD_TOKEN_SECONDS = 3_607;
const EXTENSION_SECONDS = 365 * 24 * 60 * 60;

/** Issues and verifies tokens, with one signing key at a time. ES256, because its keys are generated quickly. */
export class TokenAuthority {
  /** How far its clock is ahead of the system's, ms. */
  skewMs = 0;
  /**
   * Default tokens of pods (bound, for the API server, requested for 3607 s) are valid for a year and carry
   * `kubernetes.io.warnafter`; `--service-account-extend-token-expiration`.
   */
  extendsPodTokens = true;
  readonly #clock: Clock;
  #key: SigningKey;

  private constructor(clock: Clock, key: SigningKey) {
    this.#clock = clock;
    this.#key = key;
  }

  static async create(clock: Clock): Promise<TokenAuthority> {
    return new TokenAuthority(clock, await createKey());
  }

  /** Rotates the key: only tokens that are minted from now on are accepted. */
  async rotate(): Promise<void> {
    this.#key = await createKey();
  }

  async mint({ account, audiences, expirationSeconds, boundObject }: TokenSpec): Promise<TokenAnswer> {
    const iat = this.#nowSeconds();
    const isExtended =
      this.extendsPodTokens &&
      boundObject?.kind === 'Pod' &&
      expirationSeconds === DEFAULT_POD_TOKEN_SECONDS &&
      audiences.includes(ISSUER);
    const expiresAt = iat + expirationSeconds;
    const kubernetes = {
      namespace: account.namespace,
      serviceaccount: { name: account.name, uid: account.uid },
      ...(boundObject && {
        [boundObject.kind.toLowerCase()]: { name: boundObject.name, uid: boundObject.uid },
      }),
      ...(isExtended && { warnafter: expiresAt }),
    };
    const claims: TokenClaims = {
      iss: ISSUER,
      sub: subjectOf(account),
      aud: [...audiences],
      jti: randomUUID(),
      iat,
      nbf: iat,
      exp: isExtended ? iat + EXTENSION_SECONDS : expiresAt,
      'kubernetes.io': kubernetes,
    };
    const token = await signJwt(claims, this.#key.id, this.#key.privateKey);
    return { token, expirationTimestamp: kubernetesTime(expiresAt * 1000) };
  }

  /**
   * The user of the token, and the `audiences` for which it is valid.
   * @throws {Error} with the API server's message when it is not valid.
   */
  async verify(
    token: string,
    audiences: readonly string[],
  ): Promise<{ readonly user: User; readonly audiences: readonly string[] }> {
    const claims = await this.#claimsOf(token);
    const now = this.#nowSeconds();
    if (now - LEEWAY_SECONDS > (claims.exp ?? 0)) throw new Error('service account token has expired');
    if (now + LEEWAY_SECONDS < (claims.nbf ?? 0)) throw new Error('service account token is not valid yet');
    const shared = [claims.aud ?? []].flat().filter((audience) => audiences.includes(audience));
    if (shared.length === 0) {
      throw new Error(
        `token audiences ${JSON.stringify(claims.aud)} is invalid for the target audiences ${JSON.stringify(audiences)}`,
      );
    }
    const { namespace, serviceaccount } = claims['kubernetes.io'] as {
      namespace: string;
      serviceaccount: { uid: string };
    };
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    return { user: { username: claims.sub ?? '', uid: serviceaccount.uid, groups }, audiences: shared };
  }

  async #claimsOf(token: string): Promise<TokenClaims> {
    try {
      return (await verifyJwt(token, this.#key.id, this.#key.publicKey)) as TokenClaims;
    } catch (cause) {
      throw new Error('invalid bearer token', { cause });
    }
  }

  #nowSeconds(): number {
    return Math.floor((this.#clock.now() + this.skewMs) / 1000);
  }
}

/** `system:serviceaccount:<namespace>:<name>`. */
export function subjectOf({ namespace, name }: Pick<Account, 'namespace' | 'name'>): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

async function createKey(): Promise<SigningKey> {
  return { id: randomUUID(), ...(await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })) };
}
