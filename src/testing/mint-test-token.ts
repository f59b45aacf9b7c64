import { UnsecuredJWT } from 'jose';

import type { TokenClaims } from '../core/token-claims.js';

/**
 * A token with these claims (`iat`, `nbf`, `exp` in seconds), as an API server would date it. It is not signed,
 * so no real server takes it.
 *
 * ```ts
 * mintTestToken({ iat: 1711900695, exp: 1743436695, 'kubernetes.io': { warnafter: 1711904302 } });
 * ```
 */
export function mintTestToken(claims: TokenClaims = {}): string {
  const who = {
    iss: 'https://kubernetes.default.svc.cluster.local',
    sub: 'system:serviceaccount:default:default',
  };
  return new UnsecuredJWT({ ...who, ...claims }).encode();
}
