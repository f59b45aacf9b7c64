/** A certificate that rotates among five of one authority, as kubelet publishes it, with a bad pair in between now and then. */
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished } from 'vitest';

import { createAuthority, createServerPair, type CertificatePair } from './certificates.js';
import { rounds } from './rounds.js';
import { temporaryDirectory } from './temporary-directory.js';
import { fingerprintOf, secretOf } from './tls-sets.js';

const ROTATIONS = rounds(8, 250);
/** After every so many there is a bad pair in between. */
const BAD_EVERY = 25;

export const authority = createAuthority('authority');
export const pairs = Array.from({ length: 5 }, () => createServerPair(authority));
export const ca = authority.cert;
export const pairAt = (index: number): CertificatePair =>
  pairs[index % pairs.length] ?? createServerPair(authority);

/** What clients have seen: a fingerprint for each connection. */
interface Load {
  readonly results: readonly (string | undefined)[];
}

interface RotatingPair {
  readonly files: TlsFiles;
  readonly fingerprints: readonly string[];
  /**
   * Rotates until the clients have seen all of `known`.
   * @param check called after each rotation.
   */
  readonly rotate: (
    load: readonly Load[],
    known: ReadonlySet<string | undefined>,
    check: (rotation: number) => Promise<void>,
  ) => Promise<{ readonly changes: number; readonly rejections: number; readonly last: string | undefined }>;
}

export function rotatingPair(swap: 'rename' | 'remove'): RotatingPair {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'), { swap });
  volume.publish(secretOf(pairAt(0)));
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());

  const rotate: RotatingPair['rotate'] = async (load, known, check) => {
    const seen = (): number => new Set(load.flatMap(({ results }) => results)).size;
    const answers = (): number => load.reduce((sum, { results }) => sum + results.length, 0);
    let rotations = 0;
    // On a busy machine a pair may come and go before a client has seen it.
    while (rotations < ROTATIONS || seen() < known.size) {
      rotations += 1;
      if (rotations % BAD_EVERY === 0) {
        volume.publish(secretOf({ cert: pairAt(rotations).cert, key: pairAt(rotations + 1).key }));
        await files.check();
      }
      const previous = files.current;
      volume.publish(secretOf(pairAt(rotations)));
      await files.changed({ previous });
      // Every second one stays until the clients have seen it.
      const before = answers();
      if (rotations % 2 === 0) await expect.poll(answers).toBeGreaterThan(before + 2 * load.length);
      await check(rotations);
    }
    return {
      changes: rotations + 1,
      rejections: Math.floor(rotations / BAD_EVERY),
      last: fingerprintOf(pairAt(rotations)),
    };
  };
  return { files, fingerprints: pairs.map(fingerprintOf), rotate };
}
