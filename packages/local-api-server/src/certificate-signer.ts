import { generateKeyPairSync, hash, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto';
import { isIPv4 } from 'node:net';

import { isoTime, systemClock, type Clock } from '../core/clock.js';
import { bitString, boolean, der, integer, oid, sequence, time } from './der.js';

/** The kinds of keys that Kubernetes supports for pod certificates. */
export type CertificateKeyType = 'RSA3072' | 'RSA4096' | 'ECDSAP256' | 'ECDSAP384' | 'ECDSAP521' | 'ED25519';

/** The contents of a certificate. All are optional. */
export interface CertificateFields {
  /** The common name of the subject. Default: none. */
  readonly commonName?: string | undefined;
  readonly dnsNames?: readonly string[] | undefined;
  readonly ipAddresses?: readonly string[] | undefined;
  /** Such as `spiffe://example.org/ns/default/sa/web`. */
  readonly uris?: readonly string[] | undefined;
  /** Default `ECDSAP256`. */
  readonly keyType?: CertificateKeyType | undefined;
  /** Default: a minute ago. */
  readonly notBefore?: number | undefined;
  /** ms from `notBefore`. Default: 24 h, the maximum of the signers of Kubernetes itself. */
  readonly lifetimeMs?: number | undefined;
  /** The key to certify. Default: a new one. */
  readonly publicKey?: KeyObject | undefined;
}

/** A certificate with its key. */
export interface IssuedCertificate {
  /** PKCS#8, PEM; empty if the public key was given. */
  readonly key: string;
  /** The certificate, then the intermediate authorities, PEM; without the root. */
  readonly chain: string;
  /** A credential bundle as kubelet writes it: the key, then the chain. */
  readonly bundle: string;
  /** Epoch ms, in whole seconds as in the certificate. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Options of {@link CertificateSigner}. */
export interface CertificateSignerOptions {
  /** The common name of the authority. Default `signer`. */
  readonly name?: string | undefined;
  /** Default `ECDSAP256`. */
  readonly keyType?: CertificateKeyType | undefined;
  /** The authority above this one. Default: none, so this is a root. */
  readonly issuer?: CertificateSigner | undefined;
  /** How many authorities may follow below it. Default: any number. */
  readonly maxPathLength?: number | undefined;
  /** False: its certificate is not that of an authority, so its certificates must be refused. Default true. */
  readonly mayIssue?: boolean | undefined;
  /** The clock by which certificates are dated. Default: the system clock. */
  readonly clock?: Pick<Clock, 'now'> | undefined;
}

const DAY_MS = 86_400_000;

/**
 * A certificate authority for tests, with `node:crypto` alone.
 *
 * ```ts
 * const signer = new CertificateSigner();
 * const { bundle } = signer.issue({ dnsNames: ['localhost'] });
 * volume.publish({ 'bundle.pem': bundle, 'ca.pem': signer.certificate });
 * ```
 */
export class CertificateSigner {
  /** The root, or the certificate of an intermediate authority, PEM. */
  readonly certificate: string;
  readonly #subject: Buffer;
  readonly #key: KeyPair;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #issuer: CertificateSigner;
  readonly #extensions: readonly Buffer[];
  /** The intermediate authorities up to the root, PEM. */
  readonly #chain: string;

  constructor(options: CertificateSignerOptions = {}) {
    const { name = 'signer', keyType = 'ECDSAP256', clock = systemClock, issuer } = options;
    this.#extensions = extensionsOfAuthority(options);
    this.#subject = distinguishedName(name);
    this.#key = keyPair(keyType);
    this.#clock = clock;
    this.#issuer = issuer ?? this;
    this.certificate = this.renewed();
    this.#chain = issuer ? `${this.certificate}${issuer.#chain}` : '';
  }

  /** Another certificate of the same authority with the same key, PEM. */
  renewed(): string {
    const { publicKey } = this.#key;
    const [notBefore, notAfter] = [this.#clock.now() - DAY_MS, this.#clock.now() + 3_650 * DAY_MS];
    return this.#issuer.#sign(this.#subject, {
      publicKey,
      notBefore,
      notAfter,
      extensions: this.#extensions,
    });
  }

  issue(request: CertificateFields = {}): IssuedCertificate {
    const { commonName, keyType = 'ECDSAP256', lifetimeMs = DAY_MS } = request;
    const notBefore = wholeSeconds(request.notBefore ?? this.#clock.now() - 60_000);
    const notAfter = wholeSeconds(notBefore + lifetimeMs);
    const pair = request.publicKey ? { publicKey: request.publicKey } : keyPair(keyType);
    const fields = { publicKey: pair.publicKey, notBefore, notAfter, extensions: extensionsOfLeaf(request) };
    const subject = commonName === undefined ? sequence() : distinguishedName(commonName);
    const chain = `${this.#sign(subject, fields)}${this.#chain}`;
    const key = 'privateKey' in pair ? String(pair.privateKey.export({ type: 'pkcs8', format: 'pem' })) : '';
    return { key, chain, bundle: `${key}${chain}`, notBefore, notAfter };
  }

  #sign(subject: Buffer, { publicKey, notBefore, notAfter, extensions }: Signed): string {
    const { privateKey } = this.#key;
    const { algorithm, digest } = signatureOf(privateKey);
    const serial = randomBytes(16);
    serial[0] = (serial.readUInt8(0) & 0x7f) | 0x40;
    const identifiers = [
      extension('2.5.29.14', der(0x04, keyIdOf(publicKey))),
      extension('2.5.29.35', sequence(der(0x80, keyIdOf(this.#key.publicKey)))),
    ];
    const toSign = sequence(
      der(0xa0, integer(Buffer.from([2]))),
      integer(serial),
      algorithm,
      this.#subject,
      sequence(time(isoTime(notBefore)), time(isoTime(notAfter))),
      subject,
      publicKey.export({ type: 'spki', format: 'der' }),
      der(0xa3, sequence(...extensions, ...identifiers)),
    );
    const signature = sign(digest, toSign, privateKey);
    return new X509Certificate(sequence(toSign, algorithm, bitString(signature))).toString();
  }
}

/** Times as in certificates. */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
}

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface Signed {
  readonly publicKey: KeyObject;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly extensions: readonly Buffer[];
}

function keyPair(type: CertificateKeyType): KeyPair {
  switch (type) {
    case 'RSA3072':
    case 'RSA4096':
      return generateKeyPairSync('rsa', { modulusLength: Number(type.slice(3)) });
    case 'ECDSAP256':
    case 'ECDSAP384':
    case 'ECDSAP521':
      return generateKeyPairSync('ec', { namedCurve: `P-${type.slice(6)}` });
    case 'ED25519':
      return generateKeyPairSync('ed25519');
  }
}

/** The identifier of the algorithm, and the digest for `sign()`. */
function signatureOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): {
  readonly algorithm: Buffer;
  readonly digest: string | null;
} {
  if (asymmetricKeyType === 'ed25519') return { algorithm: sequence(oid('1.3.101.112')), digest: null };
  if (asymmetricKeyType === 'rsa') {
    return { algorithm: sequence(oid('1.2.840.113549.1.1.11'), der(0x05)), digest: 'sha256' };
  }
  const [digest, last] = EC_DIGESTS[asymmetricKeyDetails?.namedCurve ?? ''] ?? ['sha256', 2];
  return { algorithm: sequence(oid(`1.2.840.10045.4.3.${last}`)), digest };
}

const EC_DIGESTS: Readonly<Record<string, readonly [digest: string, last: number]>> = {
  prime256v1: ['sha256', 2],
  secp384r1: ['sha384', 3],
  secp521r1: ['sha512', 4],
};

function keyIdOf(publicKey: KeyObject): Buffer {
  return hash('sha1', publicKey.export({ type: 'spki', format: 'der' }), 'buffer');
}

function distinguishedName(commonName: string): Buffer {
  const value = der(0x0c, Buffer.from(commonName));
  return sequence(der(0x31, sequence(oid('2.5.4.3'), value)));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [boolean(true)] : []), der(0x04, value));
}

function extensionsOfAuthority({ maxPathLength, mayIssue = true }: CertificateSignerOptions): Buffer[] {
  if (!mayIssue) return extensionsOfLeaf({});
  const limit = maxPathLength === undefined ? [] : [integer(Buffer.from([maxPathLength]))];
  return [
    extension('2.5.29.19', sequence(boolean(true), ...limit), true),
    // `keyCertSign` and `cRLSign`
    extension('2.5.29.15', bitString(Buffer.from([0x06]), 1), true),
  ];
}

function extensionsOfLeaf({
  commonName,
  dnsNames = [],
  ipAddresses = [],
  uris = [],
}: CertificateFields): Buffer[] {
  const names = [
    ...dnsNames.map((name) => der(0x82, Buffer.from(name))),
    ...uris.map((uri) => der(0x86, Buffer.from(uri))),
    ...ipAddresses.map((address) => der(0x87, addressBytes(address))),
  ];
  return [
    extension('2.5.29.19', sequence(), true),
    // `digitalSignature`
    extension('2.5.29.15', bitString(Buffer.from([0x80]), 7), true),
    // For servers and for clients.
    extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.1'), oid('1.3.6.1.5.5.7.3.2'))),
    // Critical if there is no subject.
    ...(names.length > 0 ? [extension('2.5.29.17', sequence(...names), commonName === undefined)] : []),
  ];
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => parseInt(group, 16));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const zeros = Array<number>(tail === undefined ? 0 : 8 - before.length - after.length).fill(0);
  return Buffer.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}
