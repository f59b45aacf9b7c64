/** Decrypts what is encrypted with a passphrase: PBES2 of PKCS#5 (RFC 8018), and the older algorithms of PKCS#12 (RFC 7292). */
import { createDecipheriv, createHmac, hash, pbkdf2Sync, timingSafeEqual } from 'node:crypto';

import { childrenOf, integerOf, Malformed, oidOf, type Element } from './der.js';
import { Locked } from './pem.js';
import { decryptRc2 } from './rc2.js';

/** Each takes about a second. OpenSSL makes 2,048; the largest numbers in use are 600,000 and 50,000. */
const MAX_PBKDF2_ITERATIONS = 1_000_000;
const MAX_PKCS12_ITERATIONS = 100_000;

interface Cipher {
  readonly keyBytes: number;
  decrypt(key: Buffer, iv: Buffer, text: Buffer): Buffer;
}

const PBES2 = '1.2.840.113549.1.5.13';
const PBKDF2 = '1.2.840.113549.1.5.12';
const PRF_DIGESTS: Readonly<Record<string, string>> = {
  '1.2.840.113549.2.7': 'sha1',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
};
const PBES2_CIPHERS: Readonly<Record<string, Cipher>> = {
  '2.16.840.1.101.3.4.1.2': byOpenssl('aes-128-cbc', 16),
  '2.16.840.1.101.3.4.1.22': byOpenssl('aes-192-cbc', 24),
  '2.16.840.1.101.3.4.1.42': byOpenssl('aes-256-cbc', 32),
  '1.2.840.113549.3.7': byOpenssl('des-ede3-cbc', 24),
};
const MAC_DIGESTS: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};
/** With SHA-1. */
const PKCS12_CIPHERS: Readonly<Record<string, Cipher>> = {
  '1.2.840.113549.1.12.1.3': byOpenssl('des-ede3-cbc', 24),
  '1.2.840.113549.1.12.1.5': { keyBytes: 16, decrypt: decryptRc2 },
  '1.2.840.113549.1.12.1.6': { keyBytes: 5, decrypt: decryptRc2 },
};

function byOpenssl(name: string, keyBytes: number): Cipher {
  return {
    keyBytes,
    decrypt(key, iv, text) {
      const decipher = createDecipheriv(name, key, iv).setAutoPadding(false);
      return Buffer.concat([decipher.update(text), decipher.final()]);
    },
  };
}

/**
 * @param algorithm an AlgorithmIdentifier
 * @throws {Malformed} for an algorithm that is not known.
 * @throws {Locked} if the passphrase is not the right one.
 */
export function decrypt(
  algorithm: Element | undefined,
  text: Buffer | undefined,
  passphrase: string,
): Buffer {
  const [id, parameters] = childrenOf(algorithm?.content);
  const name = oidOf(id) ?? 'none';
  const old = PKCS12_CIPHERS[name];
  if (!old && name !== PBES2) throw new Malformed(`its algorithm is not supported (${name})`);
  const { cipher, key, iv } = old ? byPkcs12(old, parameters, passphrase) : byPbes2(parameters, passphrase);
  try {
    return withoutPadding(cipher.decrypt(key, iv, text ?? Buffer.alloc(0)));
  } catch (cause) {
    throw cause instanceof Locked ? cause : new Locked({ cause });
  }
}

interface Prepared {
  readonly cipher: Cipher;
  readonly key: Buffer;
  readonly iv: Buffer;
}

function byPbes2(parameters: Element | undefined, passphrase: string): Prepared {
  const [derivation, scheme] = childrenOf(parameters?.content);
  const [kdf, settings] = childrenOf(derivation?.content);
  const [salt, iterations, ...options] = childrenOf(settings?.content);
  const [prf] = childrenOf(options.find(({ tag }) => tag === 0x30)?.content);
  const [cipherId, iv] = childrenOf(scheme?.content);
  const digest = prf ? PRF_DIGESTS[oidOf(prf) ?? ''] : 'sha1';
  const cipher = PBES2_CIPHERS[oidOf(cipherId) ?? ''];
  if (oidOf(kdf) !== PBKDF2 || digest === undefined || !cipher || !salt || !iv) {
    throw new Malformed(`its algorithm is not supported (${oidOf(cipherId) ?? 'none'})`);
  }
  const key = pbkdf2Sync(
    passphrase,
    salt.content,
    countOf(iterations, MAX_PBKDF2_ITERATIONS),
    cipher.keyBytes,
    digest,
  );
  return { cipher, key, iv: iv.content };
}

function byPkcs12(cipher: Cipher, parameters: Element | undefined, passphrase: string): Prepared {
  const [salt, iterations] = childrenOf(parameters?.content);
  const count = countOf(iterations, MAX_PKCS12_ITERATIONS);
  const derive = derivationOf('sha1', passphrase, salt, count);
  return { cipher, key: derive(KEY, cipher.keyBytes), iv: derive(IV, 8) };
}

/**
 * Checks the checksum of a PKCS#12 file; without one, or with one by an algorithm that is not known here, nothing.
 * @throws {Locked} if it differs: the passphrase is not the right one, or the file is damaged.
 */
export function checkMac(mac: Element | undefined, content: Buffer, passphrase: string): void {
  const [digestInfo, salt, iterations] = childrenOf(mac?.content);
  const [algorithm, expected] = childrenOf(digestInfo?.content);
  const digest = MAC_DIGESTS[oidOf(childrenOf(algorithm?.content)[0]) ?? ''];
  if (digest === undefined || !expected) return;
  const count = iterations ? countOf(iterations, MAX_PKCS12_ITERATIONS) : 1;
  const key = derivationOf(digest, passphrase, salt, count)(MAC, sizeOf(digest));
  const actual = createHmac(digest, key).update(content).digest();
  if (actual.length !== expected.content.length || !timingSafeEqual(actual, expected.content))
    throw new Locked();
}

function countOf(iterations: Element | undefined, most: number): number {
  const count = integerOf(iterations);
  if (count >= 1 && count <= most) return count;
  throw new Malformed(`its key is derived by ${count} iterations; at most ${most} are made`);
}

/** What is derived. */
const [KEY, IV, MAC] = [1, 2, 3];

/** The key derivation of PKCS#12 (RFC 7292, appendix B.2). */
function derivationOf(
  digest: string,
  passphrase: string,
  salt: Element | undefined,
  count: number,
): (purpose: number, bytes: number) => Buffer {
  // Of the hash function, bytes.
  const block = sizeOf(digest) > 32 ? 128 : 64;
  const filled = (part: Buffer): Buffer => Buffer.alloc(Math.ceil(part.length / block) * block, part);
  const password = Buffer.from(`${passphrase}\0`, 'utf16le').swap16();
  const parts = [salt?.content ?? Buffer.alloc(0), password].filter(({ length }) => length > 0);
  return (purpose: number, bytes: number): Buffer => {
    const input = Buffer.concat(parts.map(filled));
    const derived: Buffer[] = [];
    for (let size = 0; size < bytes; size += sizeOf(digest)) {
      let result = hash(digest, Buffer.concat([Buffer.alloc(block, purpose), input]), 'buffer');
      for (let round = 1; round < count; round += 1) result = hash(digest, result, 'buffer');
      derived.push(result);
      const added = Buffer.alloc(block, result);
      for (let at = 0; at < input.length; at += block) addTo(input.subarray(at, at + block), added);
    }
    return Buffer.concat(derived).subarray(0, bytes);
  };
}

/** Of the result of a hash function, bytes. */
function sizeOf(digest: string): number {
  return hash(digest, '', 'buffer').length;
}

/** `number += added + 1`, big-endian, of one size. */
function addTo(number: Buffer, added: Buffer): void {
  let carry = 1;
  for (let at = number.length - 1; at >= 0; at -= 1) {
    const sum = number.readUInt8(at) + added.readUInt8(at) + carry;
    number[at] = sum & 255;
    carry = sum >> 8;
  }
}

function withoutPadding(text: Buffer): Buffer {
  const size = text.at(-1) ?? 0;
  const padding = text.subarray(text.length - size);
  if (size === 0 || size > text.length || padding.some((byte) => byte !== size)) throw new Locked();
  return text.subarray(0, text.length - size);
}
