import type { TokenClaims } from '../core/token-claims.js';
import { unsecuredJwt } from './jwt.js';

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
