import { expect, test } from 'vitest';

import type { FileSystemCalls } from '../../src/core/file-system.js';
import { runSync } from '../../src/fs/effects.js';
import type { LinkChain } from '../../src/fs/link-chain.js';
import { Locality } from '../../src/fs/locality.js';

const EXT4 = 0xef53;
const NFS = 0x6969;

/** A chain through mounts with these identities. */
const through = (...identities: string[]): LinkChain =>
  ({
    mounts: new Map(identities.map((identity) => [identity, `/${identity}`])),
    end: { kind: 'found' },
  }) as unknown as LinkChain;

test('a mount that the path left is identified anew when its number comes back: it may be another one', () => {
  const types: Record<string, number> = { '/root': EXT4, '/a': EXT4, '/b': EXT4 };
  const calls = { statfs: (path: string) => ({ type: types[path] }) } as unknown as FileSystemCalls;
  const locality = new Locality('linux');
  const classify = (chain: LinkChain): boolean => {
    runSync(locality.classify(chain), calls);
    return locality.isLocal(chain);
  };
  expect(classify(through('root', 'a'))).toBe(true);
  expect(classify(through('root', 'b'))).toBe(true);
  expect([...locality.local.keys()]).toEqual(['root', 'b']);
  types['/a'] = NFS;
  expect(classify(through('root', 'a'))).toBe(false);
  expect(locality.silentFileSystem(through('root', 'a'))).toBe('NFS');
});
