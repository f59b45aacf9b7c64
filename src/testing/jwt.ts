import { sign, verify, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { TokenClaims } from '../core/ports/token-client.js';

interface Header {
  readonly alg: 'ES256' | 'none';
  readonly kid?: string;
}

/** A signature in a JWS is r and s, not DER (RFC 7518, section 3.4). */
const ES256 = { dsaEncoding: 'ieee-p1363' } as const;

/** A token that is not signed, in compact serialization (RFC 7519). */
export function unsecuredJwt(claims: object): string {
  return `${signedPart({ alg: 'none' }, claims)}.`;
}

export async function signJwt(claims: object, kid: string, key: KeyObject): Promise<string> {
  const signed = signedPart({ alg: 'ES256', kid }, claims);
  const signature = await promisify(sign)('sha256', Buffer.from(signed), { key, ...ES256 });
  return `${signed}.${signature.toString('base64url')}`;
}

/**
 * The claims of a token that this key signed.
 * @throws {Error} (rejects) when it did not.
 */
export async function verifyJwt(token: string, kid: string, key: KeyObject): Promise<unknown> {
  const [header = '', claims = '', signature = ''] = token.split('.');
  const { alg, kid: named } = Object(decoded(header)) as Partial<Header>;
  const data = Buffer.from(`${header}.${claims}`);
  const isSigned = await promisify(verify)(
    'sha256',
    data,
    { key, ...ES256 },
    Buffer.from(signature, 'base64url'),
  );
  if (alg !== 'ES256' || named !== kid || !isSigned) throw new Error('not signed by this key');
  return decoded(claims);
}

function signedPart(header: Header, claims: object): string {
  return [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
}

function decoded(part: string): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

/**
 * Creates a token with these claims (`iat`, `nbf`, `exp` in seconds), dated as by an API server. It is not signed, so
 * no real server accepts it.
 *
 * ```ts
 * mintTestToken({ iat: 1711900695, exp: 1743436695, 'kubernetes.io': { warnafter: 1711904302 } });
 * ```
 */
export function mintTestToken(claims: TokenClaims = {}): string {
  const {
    iss = 'https://kubernetes.default.svc.cluster.local',
    sub = 'system:serviceaccount:default:default',
    ...others
  } = claims;
  return unsecuredJwt({ iss, sub, ...others });
}
