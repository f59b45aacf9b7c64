import { whenUnavailable } from '../../core/optional-package.js';

/** The certificate and key of the server, PEM. */
export interface ServerCertificates {
  /** The certificate authority that clients must trust. */
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

let first: Promise<ServerCertificates> | undefined;

/** What every server of the process starts with: to make certificates takes longer than the rest of its start. */
export function firstServerCertificates(): Promise<ServerCertificates> {
  first ??= createServerCertificates();
  return first;
}

/**
 * A new certificate authority, and a certificate by it for `localhost` and the loopback addresses. Node can read
 * X.509 but not make it, hence the optional peer dependency `selfsigned`, loaded only here.
 */
export async function createServerCertificates(): Promise<ServerCertificates> {
  const cannotUse = unavailable('selfsigned', '5 or later');
  const { generate } = await import('selfsigned').catch(cannotUse);
  const common = { keyType: 'ec', algorithm: 'sha256' } as const;
  const made = generate([{ name: 'commonName', value: 'local-api-server-ca' }], {
    ...common,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  // Versions before 5 are synchronous and do not support elliptic curves.
  if (!((made as unknown) instanceof Promise)) cannotUse();
  const authority = await made;
  const server = await generate([{ name: 'commonName', value: 'local-api-server' }], {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 2, value: 'kubernetes.default.svc' },
          { type: 7, ip: '127.0.0.1' },
          { type: 7, ip: '::1' },
        ],
      },
    ],
  });
  return { ca: authority.cert, certificate: server.cert, key: server.private };
}

const unavailable = whenUnavailable((message, options) => new Error(`LocalApiServer: ${message}`, options));
