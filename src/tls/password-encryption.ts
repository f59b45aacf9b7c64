/** Decrypts what is encrypted with a passphrase: PBES2 of PKCS#5 (RFC 8018), and the older algorithms of PKCS#12 (RFC 7292). */
import { createDecipheriv, createHmac, hash, pbkdf2Sync, timingSafeEqual } from 'node:crypto';

import { childrenOf, integerOf, Malformed, oidOf, type Element } from './der.js';
import { decryptRc2 } from './rc2.js';

/** A key that no passphrase opens, or not this one. */
export class Locked extends Error {
  override readonly name = 'Locked';

  constructor(options?: ErrorOptions) {
    super('the passphrase does not open it', options);
  }
}

/** Each takes about a second. OpenSSL makes 2,048, and 131,072 of scrypt; the largest numbers in use are 600,000 and 50,000. */
const MAX_PBKDF2_ITERATIONS = 1_000_000;
const MAX_PKCS12_ITERATIONS = 100_000;

/** Throws if the padding is not valid: then the key is not the right one. */
type Decrypt = (key: Buffer, iv: Buffer, text: Buffer) => Buffer;

interface Cipher {
  readonly keyBytes: number;
  readonly decrypt: Decrypt;
}

const PBES2 = '1.2.840.113549.1.5.13';
const PBKDF2 = '1.2.840.113549.1.5.12';
const SCRYPT = '1.3.6.1.4.1.11591.4.11';
const PRF_DIGESTS: Readonly<Record<string, string>> = {
  '1.2.840.113549.2.7': 'sha1',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
};
const PBES2_CIPHERS: Readonly<Record<string, Cipher>> = {
  '2.16.840.1.101.3.4.1.2': { keyBytes: 16, decrypt: byOpenssl('aes-128-cbc') },
  '2.16.840.1.101.3.4.1.22': { keyBytes: 24, decrypt: byOpenssl('aes-192-cbc') },
  '2.16.840.1.101.3.4.1.42': { keyBytes: 32, decrypt: byOpenssl('aes-256-cbc') },
  '1.2.840.113549.3.7': { keyBytes: 24, decrypt: byOpenssl('des-ede3-cbc') },
};
const MAC_DIGESTS: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};
/** With SHA-1. */
const PKCS12_CIPHERS: Readonly<Record<string, Cipher>> = {
  '1.2.840.113549.1.12.1.3': { keyBytes: 24, decrypt: byOpenssl('des-ede3-cbc') },
  '1.2.840.113549.1.12.1.5': { keyBytes: 16, decrypt: decryptRc2 },
  '1.2.840.113549.1.12.1.6': { keyBytes: 5, decrypt: decryptRc2 },
};

function byOpenssl(name: string): Decrypt {
  return (key, iv, text) => {
    const decipher = createDecipheriv(name, key, iv);
    return Buffer.concat([decipher.update(text), decipher.final()]);
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
  const open = name === PBES2 ? byPbes2(parameters, passphrase) : byPkcs12(name, parameters, passphrase);
  try {
    return open(text ?? Buffer.alloc(0));
  } catch (cause) {
    throw new Locked({ cause });
  }
}

/**
 * OpenSSL opens a key however long that takes.
 * @param key an EncryptedPrivateKeyInfo of PKCS#8
 * @throws {Malformed} if it would take more than a few seconds.
 */
export function checkEffort(key: Buffer): void {
  const [info] = childrenOf(key, 1);
  const [algorithm] = childrenOf(info?.content);
  const [id, parameters] = childrenOf(algorithm?.content);
  const [derivation] = childrenOf(parameters?.content);
  const [kdf, settings] = oidOf(id) === PBES2 ? childrenOf(derivation?.content) : [id, parameters];
  const [, ...numbers] = childrenOf(settings?.content);
  // Of scrypt, the effort grows with its cost, its block size and its parallelization.
  const factors = numbers.slice(0, oidOf(kdf) === SCRYPT ? 3 : 1).map(integerOf);
  const effort = factors.reduce((product, factor) => product * factor, 1);
  mustBeFew(effort, MAX_PBKDF2_ITERATIONS);
}

/** Decrypts with the key that the passphrase has yielded. */
type Open = (text: Buffer) => Buffer;

function byPbes2(parameters: Element | undefined, passphrase: string): Open {
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
  const count = countOf(iterations, MAX_PBKDF2_ITERATIONS);
  const key = pbkdf2Sync(passphrase, salt.content, count, cipher.keyBytes, digest);
  return (text) => cipher.decrypt(key, iv.content, text);
}

function byPkcs12(name: string, parameters: Element | undefined, passphrase: string): Open {
  const cipher = PKCS12_CIPHERS[name];
  if (!cipher) throw new Malformed(`its algorithm is not supported (${name})`);
  const [salt, iterations] = childrenOf(parameters?.content);
  const count = countOf(iterations, MAX_PKCS12_ITERATIONS);
  const derive = derivationOf('sha1', passphrase, salt, count);
  const [key, iv] = [derive(KEY, cipher.keyBytes), derive(IV, 8)];
  return (text) => cipher.decrypt(key, iv, text);
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
  return mustBeFew(integerOf(iterations), most);
}

function mustBeFew(count: number, most: number): number {
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
  const password = Buffer.from(`${passphrase}\0`, 'utf16le').swap16();
  const parts = [salt?.content ?? Buffer.alloc(0), password];
  const filled = parts.map((part) => Buffer.alloc(Math.ceil(part.length / block) * block, part));
  return (purpose, bytes) => {
    const input = Buffer.concat(filled);
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
