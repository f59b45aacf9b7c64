import { hash, type X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { inspect } from 'node:util';

import { dateOrNull, isoTime } from '../core/clock.js';
import { nameOf, type Validity } from './certificates.js';

/** The bytes of a certificate chain and its key, PEM. */
interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

interface TlsCredentialsFields extends Validity {
  readonly pair: Pair | undefined;
  readonly certificate: X509Certificate | undefined;
  readonly ca: Buffer | undefined;
  readonly revision: string | undefined;
}

/** The part of TLS options that changes with the files. */
interface SecureContextSource {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly ca?: Buffer;
}

/**
 * A certificate with its key, and a CA bundle: checked, and all of one revision. Printed forms show the subject and
 * the dates; the key must be asked for.
 */
export class TlsCredentials implements Validity {
  readonly #pair: Pair | undefined;
  /** The server's or client's own certificate; undefined where there is only a CA bundle. */
  readonly certificate: X509Certificate | undefined;
  /** The CA bundle, PEM; undefined when there is none. */
  readonly ca: Buffer | undefined;
  /** Epoch ms. */
  readonly notBefore: number;
  /** When the first certificate of the chain expires, epoch ms; `Infinity` where there is only a CA bundle. */
  readonly expiresAt: number;
  /** The revision of the volume; undefined outside one. */
  readonly revision: string | undefined;
  /** Equal digest: the same certificates and key. */
  readonly digest: string;
  #context: SecureContext | undefined;

  constructor({ pair, certificate, ca, notBefore, expiresAt, revision }: TlsCredentialsFields) {
    this.#pair = pair;
    this.certificate = certificate;
    this.ca = ca;
    this.notBefore = notBefore;
    this.expiresAt = expiresAt;
    this.revision = revision;
    const parts = [pair?.cert, pair?.key, ca].map((part) => part && hash('sha256', part));
    this.digest = `tls:${hash('sha256', JSON.stringify(parts))}`;
  }

  /** The certificate chain, PEM. */
  get cert(): Buffer | undefined {
    return this.#pair?.cert;
  }

  /** The private key, PEM. */
  get key(): Buffer | undefined {
    return this.#pair?.key;
  }

  /** SHA-256 of the certificate, as `AB:CD:…`; undefined where there is only a CA bundle. */
  get fingerprint256(): string | undefined {
    return this.certificate?.fingerprint256;
  }

  /** `cert`, `key` and `ca` for `tls.createSecureContext()`, `https.request()` and others; what there is of them. */
  get options(): SecureContextSource {
    return { ...this.#pair, ...(this.ca && { ca: this.ca }) };
  }

  /** Made once, with Node's defaults for everything else. */
  get secureContext(): SecureContext {
    this.#context ??= createSecureContext(this.options);
    return this.#context;
  }

  equals(other: TlsCredentials | undefined): boolean {
    return this.digest === other?.digest;
  }

  toString(): string {
    if (!this.certificate) return 'TlsCredentials(CA bundle)';
    return `TlsCredentials(${nameOf(this.certificate)}, expires ${isoTime(this.expiresAt)})`;
  }

  toJSON(): Record<string, unknown> {
    return {
      subject: this.certificate ? nameOf(this.certificate) : null,
      fingerprint256: this.fingerprint256 ?? null,
      expiresAt: dateOrNull(this.expiresAt),
      revision: this.revision ?? null,
    };
  }

  [inspect.custom](): string {
    return this.toString();
  }
}
