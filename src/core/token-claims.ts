/** The claims of a JWT, RFC 7519. They are not verified. */
export interface TokenClaims {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | string[];
  readonly jti?: string;
  /** Not before, Unix seconds. */
  readonly nbf?: number;
  /** Expires, Unix seconds. */
  readonly exp?: number;
  /** Issued, Unix seconds. */
  readonly iat?: number;
  readonly [claim: string]: unknown;
}
