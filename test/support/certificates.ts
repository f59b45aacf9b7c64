import { generate } from 'selfsigned';

/** A certificate and its key, PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** What a test wants to be different about a certificate. */
interface CertificateSettings {
  readonly name?: string;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

/** Quick to make. */
const EC = { keyType: 'ec', algorithm: 'sha256' } as const;

/** A certificate authority: of its own, or an intermediate one below `issuer`. */
export async function createAuthority(name: string, issuer?: CertificatePair): Promise<CertificatePair> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: name }], {
    ...EC,
    ...(issuer && { ca: issuer }),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  });
  return { cert, key };
}

/** What a server at `localhost` (or `name`), or a client, shows to prove who it is. */
export async function createServerPair(
  authority: CertificatePair,
  { name = 'localhost', notBefore, notAfter }: CertificateSettings = {},
): Promise<CertificatePair> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: name }], {
    ...EC,
    ...(notBefore && { notBeforeDate: notBefore }),
    ...(notAfter && { notAfterDate: notAfter }),
    ca: authority,
    extensions: [
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: name }] },
    ],
  });
  return { cert, key };
}
