import { generate } from 'selfsigned';

/** A certificate authority of its own, PEM. */
export async function createAuthority(
  name: string,
): Promise<{ readonly cert: string; readonly key: string }> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
  });
  return { cert, key };
}
