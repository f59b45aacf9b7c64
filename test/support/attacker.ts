import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { fsWith, type CallName } from './intercepted-fs.js';

/** Another user than the one that runs the tests. */
export const STRANGER = 65_534;

/** Only root can make files that belong to others, and become another user. */
export const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn('No attacks by another user here: not root');

/** Calls `strike` once, before call number `at` of the file system. */
export class StrikingFileSystem {
  #calls = 0;
  readonly #at: number;
  readonly #strike: () => void;

  constructor(at: number, strike: () => void) {
    this.#at = at;
    this.#strike = strike;
  }

  /** The call before which it struck. */
  struckBefore: CallName | undefined;

  /** Whether there was such a call. */
  get struck(): boolean {
    return this.#calls > this.#at;
  }

  get port(): FileSystem {
    return fsWith({
      each: ({ name, make }) => {
        this.count(name);
        return make();
      },
    });
  }

  /** A call is about to be made. */
  count(name: CallName): void {
    if (this.#calls++ !== this.#at) return;
    this.struckBefore = name;
    this.#strike();
  }
}

/** Runs an ES module that imports the built package, as another user; returns what it prints. */
export function runAs(uid: number, gid: number, program: string): string {
  const source = `process.setgroups?.([]); process.setgid(${gid}); process.setuid(${uid});\n${program}`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', importing(source)], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    encoding: 'utf8',
  });
}

/** Imports are hoisted; a module that is imported after `setuid` might not be readable. */
function importing(source: string): string {
  return `import * as fs from 'node:fs'; import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';\n${source}`;
}

/** Gives a file an ACL, or a directory a default one, that lets `uid` read and write; why that is not possible here, if it is not. */
export function grantByAcl(
  path: string,
  uid: number,
  kind: 'access' | 'default' = 'access',
): string | undefined {
  const options = kind === 'default' ? ['-d', '-m'] : ['-m'];
  try {
    execFileSync('setfacl', [...options, `u:${uid}:rw`, path], { stdio: 'pipe' });
    return undefined;
  } catch {
    // Not installed: the attribute itself, as setfacl(1) would write it.
  }
  const entry = (tag: number, permissions: number, id = 0xffffffff): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt16LE(tag, 0);
    bytes.writeUInt16LE(permissions, 2);
    bytes.writeUInt32LE(id, 4);
    return bytes;
  };
  // version 2; user::rw-, user:<uid>:rw-, group::---, mask::rw-, other::---
  const acl = Buffer.concat([
    Buffer.from([2, 0, 0, 0]),
    ...[entry(1, 6), entry(2, 6, uid), entry(4, 0), entry(16, 6), entry(32, 0)],
  ]);
  const set = `import os, sys; os.setxattr(sys.argv[1], 'system.posix_acl_${kind}', bytes.fromhex(sys.argv[2]))`;
  try {
    execFileSync('python3', ['-c', set, path, acl.toString('hex')], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `no ACL can be set here: ${error instanceof Error ? error.message : String(error)}`;
  }
}
