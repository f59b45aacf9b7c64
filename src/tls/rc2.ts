/**
 * Decryption with RC2 in CBC mode (RFC 2268). PKCS#12 files for older readers use it for certificates, by default those of
 * cert-manager, too, and OpenSSL 3 has it only in a provider that Node.js does not load.
 */
const PI = Buffer.from(
  'd978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2' +
    '179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82' +
    '54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626' +
    '6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7' +
    '08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec' +
    'c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731' +
    '2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9' +
    '0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad',
  'hex',
);
const BLOCK_BYTES = 8;
const ROTATIONS = [1, 2, 3, 5];
/** How often the words are mixed between two times that they are mashed. */
const MIXES = [5, 6, 5];

/**
 * @param key as long as it is strong: 5 bytes for 40 bits.
 * @throws if the padding (PKCS#7) is not valid.
 */
export function decryptRc2(key: Buffer, iv: Buffer, text: Buffer): Buffer {
  const words = expand(key);
  const plain = Buffer.alloc(text.length);
  let previous = iv;
  for (let at = 0; at + BLOCK_BYTES <= text.length; at += BLOCK_BYTES) {
    const block = text.subarray(at, at + BLOCK_BYTES);
    decryptBlock(words, block).forEach((byte, index) => {
      plain[at + index] = byte ^ (previous[index] ?? 0);
    });
    previous = block;
  }
  const size = plain.at(-1) ?? 0;
  const padding = plain.subarray(plain.length - size);
  if (size === 0 || size > BLOCK_BYTES || padding.some((byte) => byte !== size))
    throw new Error('bad decrypt');
  return plain.subarray(0, plain.length - size);
}

/** The 64 words of the key. */
function expand(key: Buffer): Uint16Array {
  const size = key.length;
  const bytes = Buffer.alloc(128);
  key.copy(bytes);
  const substitute = (value: number): number => PI.readUInt8(value & 255);
  for (let at = size; at < 128; at += 1) {
    bytes[at] = substitute(bytes.readUInt8(at - 1) + bytes.readUInt8(at - size));
  }
  bytes[128 - size] = substitute(bytes.readUInt8(128 - size));
  for (let at = 127 - size; at >= 0; at -= 1) {
    bytes[at] = substitute(bytes.readUInt8(at + 1) ^ bytes.readUInt8(at + size));
  }
  return Uint16Array.from({ length: 64 }, (_, index) => bytes.readUInt16LE(2 * index));
}

function decryptBlock(key: Uint16Array, block: Buffer): Buffer {
  const words = Uint16Array.from({ length: 4 }, (_, index) => block.readUInt16LE(2 * index));
  const before = (at: number, distance: number): number => words[(at + 4 - distance) & 3] ?? 0;
  let next = 63;
  for (const [round, mixes] of MIXES.entries()) {
    if (round > 0) {
      for (let at = 3; at >= 0; at -= 1) words[at] = (words[at] ?? 0) - (key[before(at, 1) & 63] ?? 0);
    }
    for (let mix = 0; mix < mixes; mix += 1) {
      for (let at = 3; at >= 0; at -= 1, next -= 1) {
        const [word, bits] = [words[at] ?? 0, ROTATIONS[at] ?? 0];
        const rotated = (word >>> bits) | (word << (16 - bits));
        const [one, two, three] = [before(at, 1), before(at, 2), before(at, 3)];
        words[at] = rotated - (key[next] ?? 0) - (one & two) - (~one & three);
      }
    }
  }
  return Buffer.from(words.buffer);
}
