import { generate } from 'selfsigned';

/** A certificate and its key, PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** Quick to make. */
const EC = { keyType: 'ec', algorithm: 'sha256' } as const;

/** A certificate authority of its own. */
export async function createAuthority(name: string): Promise<CertificatePair> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: name }], {
    ...EC,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  });
  return { cert, key };
}

/** What a server at `localhost` shows to prove who it is. */
export async function createServerPair(authority: CertificatePair): Promise<CertificatePair> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    ...EC,
    ca: authority,
    extensions: [
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] },
    ],
  });
  return { cert, key };
}
