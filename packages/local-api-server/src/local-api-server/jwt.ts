/** Signed tokens in compact serialization (RFC 7519). */
import { sign, verify, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

interface Header {
  readonly alg: 'ES256';
  readonly kid: string;
}

/** A signature in a JWS is r and s, not DER (RFC 7518, section 3.4). */
const ES256 = { dsaEncoding: 'ieee-p1363' } as const;

export async function signJwt(claims: object, kid: string, key: KeyObject): Promise<string> {
  const header: Header = { alg: 'ES256', kid };
  const signed = `${encoded(header)}.${encoded(claims)}`;
  const signature = await promisify(sign)('sha256', Buffer.from(signed), { key, ...ES256 });
  return `${signed}.${signature.toString('base64url')}`;
}

/**
 * The claims of a token that this key signed.
 * @throws {Error} (rejects) when it did not.
 */
export async function verifyJwt(token: string, kid: string, key: KeyObject): Promise<unknown> {
  const [header = '', claims = '', signature = ''] = token.split('.');
  const { alg, kid: named } = Object(decoded(header)) as Partial<Header>;
  const data = Buffer.from(`${header}.${claims}`);
  const isSigned = await promisify(verify)(
    'sha256',
    data,
    { key, ...ES256 },
    Buffer.from(signature, 'base64url'),
  );
  if (alg !== 'ES256' || named !== kid || !isSigned) throw new Error('not signed by this key');
  return decoded(claims);
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

function decoded(part: string): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}
