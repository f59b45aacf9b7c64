import { hash, type X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';

import { inspect } from '../core/ports/builtins.js';
import { dateOrNull, isoTime } from '../core/ports/clock.js';
import {
  digestOfSet,
  distinct,
  subjectName,
  validityOf,
  type Identity,
  type Validity,
} from './certificates.js';
import type { Revocation } from './revocation.js';

/** @internal */
export interface TlsCredentialsFields {
  /** Undefined if there is only a CA bundle. */
  readonly identity: Identity | undefined;
  readonly authorities: readonly X509Certificate[];
  readonly revocation?: Revocation | undefined;
  readonly revision: string | undefined;
}

/** A CA bundle alone has no expiry date. */
const ALWAYS: Validity = { notBefore: -Infinity, expiresAt: Infinity };

/** Ciphers with which OpenSSL accepts keys of any size. */
const LOWEST_LEVEL = 'DEFAULT@SECLEVEL=0';

/** The TLS options that change with the files. */
interface SecureContextSource {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly ca?: Buffer;
  readonly crl?: string[];
}

/**
 * A checked set of certificate, key, CA bundle and revocation lists, all from one revision. Printed forms show the
 * subject and the dates, never the key.
 */
export class TlsCredentials implements Validity {
  /** PEM. */
  readonly #pair: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** The certificate of the server or client; undefined if there is only a CA bundle. */
  readonly certificate: X509Certificate | undefined;
  /** The CA bundle, PEM, each certificate once; undefined if there is none. */
  readonly ca: Buffer | undefined;
  /** The certificates of the CA bundle, in its order. */
  readonly authorities: readonly X509Certificate[];
  /** What the revocation lists say; undefined if there are none. @internal */
  readonly revocation: Revocation | undefined;
  /** When the certificate becomes valid, epoch ms. */
  readonly notBefore: number;
  /** When the certificate expires, epoch ms; `Infinity` if there is only a CA bundle. Its issuers do not matter. */
  readonly expiresAt: number;
  /** The revision of the volume; undefined outside a volume. */
  readonly revision: string | undefined;
  /**
   * The digest of the set. Sets with the same chain, key, CA certificates and revocation lists have the same digest; the
   * order of the CA certificates, repetitions and text between them do not matter.
   */
  readonly digest: string;
  /** Why OpenSSL refuses the set by its defaults, although it takes it at its lowest security level. @internal */
  readonly weakness: string | undefined;
  #context: SecureContext | undefined;

  /** @throws what OpenSSL says if it rejects the set. */
  constructor({ identity, authorities, revocation, revision }: TlsCredentialsFields) {
    // OpenSSL receives only what was parsed, so that nothing else in the files is served or trusted.
    this.#pair = identity && {
      cert: Buffer.from(identity.chain.join('')),
      key: Buffer.from(identity.key.export({ type: 'pkcs8', format: 'pem' })),
    };
    this.certificate = identity?.chain[0];
    this.authorities = distinct(authorities);
    this.ca = authorities.length > 0 ? Buffer.from(this.authorities.join('')) : undefined;
    this.revocation = revocation;
    const { notBefore, expiresAt } = this.certificate ? validityOf(this.certificate) : ALWAYS;
    this.notBefore = notBefore;
    this.expiresAt = expiresAt;
    this.revision = revision;
    const parts = [this.#pair?.cert, this.#pair?.key, digestOfSet(this.authorities)];
    // A list that is not valid yet revokes nothing until it is.
    const listed = revocation ? [...revocation.pem, String(revocation.revoked.size)] : [];
    this.digest = `tls:${hash('sha256', [...parts, ...listed].join('\n'))}`;
    try {
      this.#context = createSecureContext(this.options);
    } catch (error) {
      // A server may have such ciphers.
      createSecureContext({ ...this.options, ciphers: LOWEST_LEVEL });
      this.weakness = (error as Error).message;
    }
  }

  /**
   * The secure context of the set, with the defaults of Node.js for all other options.
   * @throws what OpenSSL says of a set that it takes only at a lower security level.
   */
  get secureContext(): SecureContext {
    return (this.#context ??= createSecureContext(this.options));
  }

  /** The certificate chain, PEM. */
  get cert(): Buffer | undefined {
    return this.#pair?.cert;
  }

  /** The private key, PEM of PKCS#8 without a passphrase. */
  get key(): Buffer | undefined {
    return this.#pair?.key;
  }

  /** The revocation lists, PEM, one each; undefined if there are none. */
  get crl(): readonly string[] | undefined {
    return this.revocation?.pem;
  }

  /** SHA-256 of the certificate, as `AB:CD:…`; undefined if there is only a CA bundle. */
  get fingerprint256(): string | undefined {
    return this.certificate?.fingerprint256;
  }

  /** `cert`, `key`, `ca` and `crl`, if they exist, for `tls.createSecureContext()`, `https.request()` and others. */
  get options(): SecureContextSource {
    const { revocation } = this;
    return { ...this.#pair, ...(this.ca && { ca: this.ca }), ...(revocation && { crl: revocation.pem }) };
  }

  equals(other: TlsCredentials | undefined): boolean {
    return this.digest === other?.digest;
  }

  toString(): string {
    if (!this.certificate) return 'TlsCredentials(CA bundle)';
    return `TlsCredentials(${subjectName(this.certificate)}, expires ${isoTime(this.expiresAt)})`;
  }

  toJSON(): Record<string, unknown> {
    return {
      subject: this.certificate ? subjectName(this.certificate) : null,
      fingerprint256: this.fingerprint256 ?? null,
      expiresAt: dateOrNull(this.expiresAt),
      revision: this.revision ?? null,
    };
  }

  [inspect.custom](): string {
    return this.toString();
  }
}
