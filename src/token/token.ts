import { inspect } from '../core/ports/builtins.js';
import type { TokenClaims } from '../core/ports/token-client.js';
import { TokenError } from '../core/errors/token-error.js';
import { dateOrNull, isoTime, parseTimestamp } from '../core/ports/clock.js';

/** The tolerance of the API server (go-jose's default leeway) for tokens dated in the future. */
export const DATE_LEEWAY_MS = 60_000;

/** `jwt`: has dates, and must be complete. `opaque`: any text that fits a header; never expires. */
export type TokenFormat = 'jwt' | 'opaque';

/** For messages: since when a token is late, and until when it is accepted. */
export function latenessOf({ expiresAt, notAfter }: TokenDates): string {
  return `token should have been replaced at ${isoTime(expiresAt)}, and is accepted until ${isoTime(notAfter)}`;
}

/** When a token is valid, epoch ms. */
export interface TokenDates {
  /** When the token was issued (`iat`). */
  readonly issuedAt: number | undefined;
  /** The API server refuses the token before this time (`nbf`, or else `iat`). */
  readonly notBefore: number | undefined;
  /** When the token should be replaced. `Infinity` for a token that does not expire (from a Secret, or opaque). */
  readonly expiresAt: number;
  /**
   * The API server refuses the token from this time on (`exp`). For a pod's default token, this is a year after it was
   * issued, for the sake of clients that never read the file again.
   */
  readonly notAfter: number;
}

/**
 * A bearer token. Its printed forms (template strings, JSON, `util.inspect`) show only its subject and expiry. The
 * secret is in `value`.
 */
export class ServiceAccountToken implements TokenDates {
  readonly #value: string;
  readonly issuedAt: number | undefined;
  readonly notBefore: number | undefined;
  readonly expiresAt: number;
  readonly notAfter: number;
  /** The claims of the token, unverified: only the API server can verify them. Empty for an opaque token. */
  readonly claims: TokenClaims;

  constructor(value: string, dates: TokenDates, claims: TokenClaims = {}) {
    this.#value = value;
    this.issuedAt = dates.issuedAt;
    this.notBefore = dates.notBefore;
    this.expiresAt = dates.expiresAt;
    this.notAfter = dates.notAfter;
    this.claims = Object.freeze(claims);
  }

  /** The secret itself, for the `Authorization: Bearer` header. */
  get value(): string {
    return this.#value;
  }

  /** The user that it authenticates, such as `system:serviceaccount:default:builder`. */
  get subject(): string | undefined {
    return this.claims.sub;
  }

  /** Whether both are the same secret. */
  equals(other: ServiceAccountToken | undefined): boolean {
    return other !== undefined && this.#value === other.#value;
  }

  /** How far the token is dated ahead of `now` (epoch ms), ms; 0 if it is not. */
  aheadMs(now: number): number {
    return Math.max(0, (this.notBefore ?? now) - now, (this.issuedAt ?? now) - now);
  }

  toString(): string {
    const end = Number.isFinite(this.expiresAt) ? `expires ${isoTime(this.expiresAt)}` : 'never expires';
    return `ServiceAccountToken(${this.subject ?? 'no subject'}, ${end})`;
  }

  toJSON(): Record<'subject' | 'issuedAt' | 'expiresAt', string | number | null> {
    return {
      subject: this.subject ?? null,
      issuedAt: this.issuedAt ?? null,
      expiresAt: dateOrNull(this.expiresAt),
    };
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

/**
 * The token in the response to a TokenRequest. It expires at the `expirationTimestamp` of the response, or at its own
 * `exp` if that is earlier.
 * @throws {TokenError} `ERR_TOKEN_MALFORMED`; the message never quotes the token.
 */
export function tokenFromAnswer(answer: unknown): ServiceAccountToken {
  if (typeof answer !== 'object' || answer === null) throw malformed('the response is not an object');
  const { token, expirationTimestamp } = answer as Record<string, unknown>;
  if (typeof token !== 'string') throw malformed(`"token" is not a string but ${kindOf(token)}`);
  const claims = decode(token);
  const expiresAt = parseTimestamp(expirationTimestamp);
  if (!isDate(expiresAt)) throw malformed('"expirationTimestamp" is missing or is not a date');
  return new ServiceAccountToken(token, datesOf(claims, expiresAt), claims);
}

/**
 * The token in the text of a file; surrounding white space is not part of it. It expires at
 * `kubernetes.io.warnafter` or at `exp`, whichever is earlier.
 * @param format `opaque` takes any text that fits a header, except JSON.
 * @throws {TokenError} `ERR_TOKEN_MALFORMED`.
 */
export function tokenFromText(text: string, format: TokenFormat = 'jwt'): ServiceAccountToken {
  const value = text.trim();
  if (isJson(value)) {
    throw malformed(
      'it is JSON; only the token itself is wanted, such as the value of its "access_token" (see the option "parse" of TokenFile)',
    );
  }
  if (format === 'opaque') {
    if (!/^[\x21-\x7e]+$/.test(value))
      throw malformed(value === '' ? 'it is empty' : 'it does not fit a header');
    const forever = { expiresAt: Infinity, notAfter: Infinity };
    return new ServiceAccountToken(value, { issuedAt: undefined, notBefore: undefined, ...forever });
  }
  const claims = decode(value, "; for a token of another kind, set format: 'opaque'");
  const kubernetes = claims['kubernetes.io'] as { warnafter?: unknown } | undefined;
  const warnAfter = dateOf('warnafter', kubernetes?.warnafter);
  return new ServiceAccountToken(value, datesOf(claims, warnAfter ?? Infinity), claims);
}

/** Whether it is an object, an array or a string in quotes, as no token is. */
function isJson(value: string): boolean {
  if (!/^[{["]/.test(value)) return false;
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

/** @param advice what to do if it is another kind of token. */
function decode(value: string, advice = ''): TokenClaims {
  if (value === '') throw malformed('it is empty');
  const isNone = `it is not a JWT${advice}`;
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(value)) throw malformed(isNone);
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(value.split('.')[1] ?? '', 'base64url').toString());
  } catch {
    // The message quotes the text.
  }
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) throw malformed(isNone);
  return claims as TokenClaims;
}

/**
 * The dates of a token that is to be replaced at this time. A token cannot outlive its own `exp`, whatever the response
 * says; both times come from the clock of the server, so a wrong local clock does not change which is earlier.
 */
function datesOf(claims: TokenClaims, replaceAt: number): TokenDates {
  const issuedAt = dateOf('iat', claims.iat);
  const notBefore = dateOf('nbf', claims.nbf) ?? issuedAt;
  const exp = dateOf('exp', claims.exp);
  return { issuedAt, notBefore, expiresAt: Math.min(replaceAt, exp ?? Infinity), notAfter: exp ?? replaceAt };
}

/** From 2001 on, a date in ms is at least this. In seconds, it is the year 33658. */
const FIRST_IN_MS = 1e12;

/** Epoch ms of a claim in seconds. */
function dateOf(claim: string, seconds: unknown): number | undefined {
  if (seconds === undefined) return undefined;
  if (typeof seconds !== 'number') throw malformed(`"${claim}" is not a number but ${kindOf(seconds)}`);
  if (!isDate(seconds * 1000)) throw malformed(`"${claim}" is not a date`);
  if (seconds >= FIRST_IN_MS) throw malformed(`"${claim}" is in milliseconds, and has to be in seconds`);
  return seconds * 1000;
}

/** Whether a time is in the range of `Date`. */
function isDate(epochMs: number): boolean {
  return Math.abs(epochMs) <= 8.64e15;
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value;
}

function malformed(what: string): TokenError {
  return new TokenError('ERR_TOKEN_MALFORMED', `The token is not usable: ${what}`);
}
