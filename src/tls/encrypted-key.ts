/**
 * How much work it is to open a private key of PKCS#8 that a passphrase protects. OpenSSL opens one however long that
 * takes.
 */

import { headerOf, INTEGER, numberIn, OBJECT_IDENTIFIER, OCTET_STRING, type Element } from './der.js';

/** A key that no passphrase opens, or not this one. */
export class Locked extends Error {
  override readonly name = 'Locked';

  constructor(options?: ErrorOptions) {
    super('the passphrase does not open it', options);
  }
}

/** Takes about a second. OpenSSL makes 2,048, and 131,072 of scrypt; the largest number in use is 600,000. */
const MAX_ITERATIONS = 1_000_000;

/** The bit of the tag of an element that consists of others. */
const CONSTRUCTED = 0x20;
/** More than come before the numbers. */
const MAX_ELEMENTS = 32;

/** Whether the bytes are an EncryptedPrivateKeyInfo, whatever the label says. All others begin with their version. */
export function isEncrypted(key: Buffer): boolean {
  return primitivesOf(key)[0]?.tag === OBJECT_IDENTIFIER;
}

/**
 * @param key an EncryptedPrivateKeyInfo
 * @throws {Error} if it would take more than a few seconds to open it.
 */
export function checkEffort(key: Buffer): void {
  const primitives = primitivesOf(key);
  const afterSalt = primitives.slice(primitives.findIndex(isSalt) + 1);
  const others = afterSalt.findIndex(({ tag }) => tag !== INTEGER);
  // The number of iterations; of scrypt the cost, the block size and the parallelization, whose product is the effort. The
  // length of the key may follow.
  const numbers = afterSalt.slice(0, others < 0 ? undefined : others).map(({ content }) => numberIn(content));
  const effort = numbers
    .slice(0, numbers.length < 3 ? 1 : 3)
    .reduce((product, number) => product * number, 1);
  if (numbers.length === 0) throw new Error('how its key is derived is not known');
  if (effort < 1 || effort > MAX_ITERATIONS)
    throw new Error(`its key is derived by ${effort} iterations; at most ${MAX_ITERATIONS} are made`);
}

/** Whether it is a salt: numbers follow it. */
function isSalt({ tag }: Element, index: number, all: readonly Element[]): boolean {
  return tag === OCTET_STRING && all[index + 1]?.tag === INTEGER;
}

/** The first elements that consist of no others, in the order of the bytes. */
function primitivesOf(bytes: Buffer): Element[] {
  const primitives: Element[] = [];
  let rest = bytes;
  for (let count = 0; count < MAX_ELEMENTS && rest.length >= 2; count += 1) {
    const { tag, start, end } = headerOf(rest);
    if (tag & CONSTRUCTED) {
      rest = rest.subarray(start);
    } else {
      primitives.push({ tag, content: rest.subarray(start, end) });
      rest = rest.subarray(end);
    }
  }
  return primitives;
}
