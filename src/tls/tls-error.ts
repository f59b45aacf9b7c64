import { ResilientError } from '../core/resilient-error.js';

/** Why certificates and their key cannot be used. */
export type TlsErrorCode =
  /** The certificate, the key or a required CA bundle does not exist, or is not a regular file. */
  | 'ERR_TLS_MISSING'
  /** A file is larger than 1 MiB. */
  | 'ERR_TLS_TOO_LARGE'
  /** The certificate file is not PEM, or holds no certificate. */
  | 'ERR_TLS_CERTIFICATE'
  /** The key file holds no private key in PEM. */
  | 'ERR_TLS_KEY'
  /** The private key is protected by a passphrase. */
  | 'ERR_TLS_KEY_ENCRYPTED'
  /** The private key does not belong to the certificate. */
  | 'ERR_TLS_MISMATCH'
  /** In the chain, a certificate is not followed by its issuer, or the chain is longer than clients accept. */
  | 'ERR_TLS_CHAIN'
  | 'ERR_TLS_EXPIRED'
  | 'ERR_TLS_NOT_YET_VALID'
  /** The CA bundle cannot be used, or is required and missing. */
  | 'ERR_TLS_CA'
  /** OpenSSL rejects the set, for example because the key is too short. */
  | 'ERR_TLS_REFUSED'
  /** There is no usable pair yet; `cause` says why. */
  | 'ERR_TLS_UNAVAILABLE'
  /** An optional package is required and not installed. */
  | 'ERR_TLS_PACKAGE';

/** Certificates on disk cannot be used. The last good set is kept, and watching continues. */
export class TlsError extends ResilientError {
  override readonly name = 'TlsError';
  readonly code: TlsErrorCode;

  constructor(code: TlsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
