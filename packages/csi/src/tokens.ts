import { inspect } from 'node:util';

import { tokenFromAnswer, tokenFromText, type ServiceAccountToken } from 'resilient-watcher';
import { redactError } from 'resilient-watcher/internal';
import { KubernetesError } from 'resilient-watcher/kubernetes';

/** The key under which kubelet passes the tokens requested by `CSIDriver.spec.tokenRequests`. */
const TOKENS_KEY = 'csi.storage.k8s.io/serviceAccount.tokens';

type StringMap = Readonly<Record<string, string>>;

/** The fields of a NodePublishVolumeRequest that may contain tokens, in the spellings of gRPC libraries. */
export interface TokenCarrier {
  readonly secrets?: StringMap | null | undefined;
  readonly volumeContext?: StringMap | null | undefined;
  readonly volume_context?: StringMap | null | undefined;
}

/** The tokens of one request, by audience. Its printed forms omit the tokens. */
export class ServiceAccountTokens {
  readonly #tokens: ReadonlyMap<string, ServiceAccountToken>;

  constructor(tokens: ReadonlyMap<string, ServiceAccountToken> = new Map()) {
    this.#tokens = tokens;
  }

  /** The audiences that have a token; `""` is the API server. */
  get audiences(): string[] {
    return [...this.#tokens.keys()];
  }

  /** The earliest expiry of the tokens, epoch ms; `Infinity` if there is none. */
  get expiresAt(): number {
    return Math.min(...[...this.#tokens.values()].map((token) => token.expiresAt));
  }

  /**
   * The token for an audience.
   * @throws {KubernetesError} `ERR_CSI_TOKENS` when kubelet sent none for it.
   */
  get(audience: string): ServiceAccountToken {
    const token = this.#tokens.get(audience);
    if (token) return token;
    const found = this.audiences.map((known) => JSON.stringify(known)).join(', ') || 'no token at all';
    throw new KubernetesError(
      'ERR_CSI_TOKENS',
      `kubelet sent no token for the audience ${JSON.stringify(audience)} but ${found}: ` +
        'add it to spec.tokenRequests of the CSIDriver',
    );
  }

  /** Whether both hold the same secrets for the same audiences. */
  equals(other: ServiceAccountTokens): boolean {
    const entries = [...this.#tokens];
    return (
      entries.length === other.#tokens.size &&
      entries.every(([audience, token]) => token.equals(other.#tokens.get(audience)))
    );
  }

  toString(): string {
    const shown = [...this.#tokens].map(
      ([audience, token]) => `${JSON.stringify(audience)}: ${String(token)}`,
    );
    return `ServiceAccountTokens(${shown.join(', ')})`;
  }

  toJSON(): Record<string, unknown> {
    return Object.fromEntries(this.#tokens);
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

/**
 * The ServiceAccount tokens in a NodePublishVolumeRequest: in its secrets if
 * `CSIDriver.spec.serviceAccountTokenInSecrets` is set (KEP-5538), else in the volume context. Without
 * `tokenRequests` kubelet sends none, and the result has no audiences.
 *
 * A token expires at its `expirationTimestamp` (or `expiry`, as in KEP-1855), or else at its own `exp`.
 * @throws {KubernetesError} `ERR_CSI_TOKENS`; the message never quotes a token.
 */
export function parseServiceAccountTokens(request: TokenCarrier): ServiceAccountTokens {
  const { secrets, volumeContext, volume_context: rawContext } = request;
  const text: unknown = secrets?.[TOKENS_KEY] ?? volumeContext?.[TOKENS_KEY] ?? rawContext?.[TOKENS_KEY];
  if (text === undefined) return new ServiceAccountTokens();
  const byAudience = objectOf(parse(text), 'the value');
  const tokens = Object.entries(byAudience).map(([audience, entry]) => {
    const where = `the token for ${JSON.stringify(audience)}`;
    return [audience, tokenOf(objectOf(entry, where), where)] as const;
  });
  return new ServiceAccountTokens(new Map(tokens));
}

function parse(text: unknown): unknown {
  if (typeof text !== 'string') throw malformed('the value is not text');
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message would quote the text.
    throw malformed('the value is not JSON');
  }
}

function tokenOf(entry: Readonly<Record<string, unknown>>, where: string): ServiceAccountToken {
  const { token, expirationTimestamp = entry['expiry'] } = entry;
  if (typeof token !== 'string') throw malformed(`${where} has no text in "token"`);
  // The unit of a number would be unknown; kubelet sends none.
  if (typeof expirationTimestamp === 'number')
    throw malformed(`the expiry of ${where} is a number, not a date`);
  try {
    return expirationTimestamp === undefined
      ? tokenFromText(token)
      : tokenFromAnswer({ token, expirationTimestamp });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : '';
    throw malformed(`${where} cannot be used: ${reason}`, redactError(cause, [token]));
  }
}

function objectOf(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw malformed(`${where} is not an object`);
}

function malformed(what: string, cause?: unknown): KubernetesError {
  const message = `Cannot read ${TOKENS_KEY}: ${what}`;
  return new KubernetesError('ERR_CSI_TOKENS', message, { cause });
}
