import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { nodeFileSystem, type FileSystem, type FileSystemCalls } from '../../src/core/file-system.js';
import { runSync } from '../../src/fs/effects.js';
import type { LinkChain } from '../../src/fs/link-chain.js';
import { isEverythingLocal, Locality } from '../../src/fs/locality.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

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

test.runIf(process.platform === 'linux')(
  'everything is local only if the type of each mount in the table is known to be local',
  () => {
    const table = join(temporaryDirectory(), 'mountinfo');
    const withTypes = (...types: string[]): FileSystem => {
      writeFileSync(
        table,
        types.map((type, n) => `${n} 1 0:${n} / /m${n} rw - ${type} source rw\n`).join(''),
      );
      const open: FileSystemCalls['open'] = (_path, flags) => nodeFileSystem.sync.open(table, flags);
      return { ...nodeFileSystem, sync: { ...nodeFileSystem.sync, open } };
    };
    expect(isEverythingLocal(withTypes('overlay', 'tmpfs', 'proc'))).toBe(true);
    for (const type of ['nfs4', 'fuse.sshfs', 'autofs', 'of-tomorrow']) {
      expect(isEverythingLocal(withTypes('overlay', type))).toBe(false);
    }
    expect(isEverythingLocal(withTypes())).toBe(false);
  },
);
