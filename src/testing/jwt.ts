import type { TokenClaims } from '../core/ports/token-client.js';

/**
 * Creates a token with these claims (`iat`, `nbf`, `exp` in seconds), dated as by an API server. It is not signed, so
 * no real server accepts it.
 *
 * ```ts
 * mintTestToken({ iat: 1711900695, exp: 1743436695, 'kubernetes.io': { warnafter: 1711904302 } });
 * ```
 */
export function mintTestToken(claims: TokenClaims = {}): string {
  const iss = 'https://kubernetes.default.svc.cluster.local';
  const sub = 'system:serviceaccount:default:default';
  const parts = [{ alg: 'none' }, { iss, sub, ...claims }].map((part) => JSON.stringify(part));
  return `${parts.map((part) => Buffer.from(part).toString('base64url')).join('.')}.`;
}
