import { generateKeyPairSync, hash, randomBytes, sign, X509Certificate, type KeyObject } from 'node:crypto';

import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Time,
  Validity,
  Version,
} from '@peculiar/asn1-x509';
import { systemClock, type Clock } from 'resilient-watcher';

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
 * A certificate authority for tests: keys and signatures of `node:crypto`, encoded by `@peculiar/asn1-x509`.
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
  readonly #subject: Name;
  readonly #key: KeyPair;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #issuer: CertificateSigner;
  readonly #extensions: readonly Extension[];
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
    const subject = commonName === undefined ? new Name() : distinguishedName(commonName);
    const chain = `${this.#sign(subject, fields)}${this.#chain}`;
    const key = 'privateKey' in pair ? String(pair.privateKey.export({ type: 'pkcs8', format: 'pem' })) : '';
    return { key, chain, bundle: `${key}${chain}`, notBefore, notAfter };
  }

  #sign(subject: Name, { publicKey, notBefore, notAfter, extensions }: Signed): string {
    const { privateKey } = this.#key;
    const { algorithm, digest } = signatureOf(privateKey);
    const serial = randomBytes(16);
    serial[0] = (serial.readUInt8(0) & 0x7f) | 0x40;
    const authority = new AuthorityKeyIdentifier({ keyIdentifier: keyIdOf(this.#key.publicKey) });
    const tbsCertificate = new TBSCertificate({
      version: Version.v3,
      serialNumber: exactly(serial),
      signature: algorithm,
      issuer: this.#subject,
      validity: Object.assign(new Validity(), {
        notBefore: new Time(wholeSeconds(notBefore)),
        notAfter: new Time(wholeSeconds(notAfter)),
      }),
      subject,
      subjectPublicKeyInfo: AsnConvert.parse(spkiOf(publicKey), SubjectPublicKeyInfo),
      extensions: new Extensions([
        ...extensions,
        extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdOf(publicKey))),
        extension(id_ce_authorityKeyIdentifier, authority),
      ]),
    });
    const signature = sign(digest, Buffer.from(AsnConvert.serialize(tbsCertificate)), privateKey);
    const certificate = new Certificate({
      tbsCertificate,
      signatureAlgorithm: algorithm,
      signatureValue: exactly(signature),
    });
    return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString();
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
  readonly extensions: readonly Extension[];
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
  readonly algorithm: AlgorithmIdentifier;
  readonly digest: string | null;
} {
  if (asymmetricKeyType === 'ed25519') {
    return { algorithm: new AlgorithmIdentifier({ algorithm: '1.3.101.112' }), digest: null };
  }
  if (asymmetricKeyType === 'rsa') {
    const algorithm = new AlgorithmIdentifier({ algorithm: '1.2.840.113549.1.1.11', parameters: null });
    return { algorithm, digest: 'sha256' };
  }
  const [digest, last] = EC_DIGESTS[asymmetricKeyDetails?.namedCurve ?? ''] ?? ['sha256', 2];
  return { algorithm: new AlgorithmIdentifier({ algorithm: `1.2.840.10045.4.3.${last}` }), digest };
}

const EC_DIGESTS: Readonly<Record<string, readonly [digest: string, last: number]>> = {
  prime256v1: ['sha256', 2],
  secp384r1: ['sha384', 3],
  secp521r1: ['sha512', 4],
};

function spkiOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

function keyIdOf(publicKey: KeyObject): KeyIdentifier {
  return new KeyIdentifier(exactly(hash('sha1', spkiOf(publicKey), 'buffer')));
}

/** The bytes alone: the memory of a Buffer may have others around them. */
function exactly(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function distinguishedName(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: '2.5.4.3', value })])]);
}

function extension(extnID: string, value: unknown, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function extensionsOfAuthority({ maxPathLength, mayIssue = true }: CertificateSignerOptions): Extension[] {
  if (!mayIssue) return extensionsOfLeaf({});
  const limit = maxPathLength === undefined ? {} : { pathLenConstraint: maxPathLength };
  return [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, ...limit }), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign), true),
  ];
}

function extensionsOfLeaf({
  commonName,
  dnsNames = [],
  ipAddresses = [],
  uris = [],
}: CertificateFields): Extension[] {
  const names = [
    ...dnsNames.map((dNSName) => new GeneralName({ dNSName })),
    ...uris.map((uniformResourceIdentifier) => new GeneralName({ uniformResourceIdentifier })),
    ...ipAddresses.map((iPAddress) => new GeneralName({ iPAddress })),
  ];
  return [
    extension(id_ce_basicConstraints, new BasicConstraints(), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth, id_kp_clientAuth])),
    // Critical if there is no subject.
    ...(names.length > 0
      ? [extension(id_ce_subjectAltName, new SubjectAlternativeName(names), commonName === undefined)]
      : []),
  ];
}
