/** What the watched files contain, where a watcher may parse it: tokens and credential bundles. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** The digest that a program prints, in hexadecimal. */
export const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex');

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A ServiceAccount token for an hour. It is not signed, so no server accepts it. */
export function newToken(jti: string): string {
  const iat = Math.floor(Date.now() / 1_000);
  const claims = {
    iss: 'https://kubernetes.default.svc.cluster.local',
    sub: 'system:serviceaccount:default:default',
    ...{ iat, exp: iat + 3_607, jti },
  };
  return `${encoded({ alg: 'none' })}.${encoded(claims)}.`;
}

/** The credential bundle of a pod certificate: a new key, and a certificate for it that signs itself. */
export function newBundle(commonName: string): string {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(0x30, hex('06082a8648ce3d040302')); // ecdsa-with-SHA256
  const name = der(0x30, der(0x31, der(0x30, hex('0603550403'), der(0x0c, Buffer.from(commonName)))));
  const serial = randomBytes(8);
  serial[0] = 1;
  const now = Date.now();
  const toSign = der(
    0x30,
    ...[der(0x02, serial), algorithm, name, der(0x30, time(now - 60_000), time(now + 86_400_000)), name],
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', toSign, privateKey));
  const certificate = der(0x30, toSign, algorithm, signature).toString('base64');
  const lines = certificate.match(/.{1,64}/g)?.join('\n') ?? '';
  const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return `${key}-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

/** An element of DER (X.690) of at most 65,535 bytes. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

/** A `UTCTime`, without milliseconds. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().slice(2, 19).replace(/\D/g, '');
  return der(0x17, Buffer.from(`${digits}Z`));
}
