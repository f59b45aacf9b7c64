/**
 * What tests need and other systems lack. A test is skipped there, with the reason, as soon as it does what cannot be done: it
 * makes a link, changes a mode, or reads `/proc`. Where that is seen only in what it expects, it calls `needs`.
 */
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

import { TestRunner } from 'vitest';

const IS_WINDOWS = process.platform === 'win32';
const IS_LINUX = process.platform === 'linux';

/** Why a test cannot run here; undefined where it can. */
const MISSING = {
  links: IS_WINDOWS ? 'Windows does not replace links by rename, as the swap of a volume does' : undefined,
  modes: IS_WINDOWS ? 'Windows has no modes and owners' : undefined,
  posix: IS_WINDOWS ? 'it needs paths, signals, programs or sockets of POSIX' : undefined,
  linux: IS_LINUX ? undefined : 'it needs Linux: /proc, mounts, namespaces or inotify',
  fold: IS_LINUX ? undefined : 'a lookup folds names here',
} as const;

/** Skips the test that runs, unless this system has what it needs. */
export function needs(what: keyof typeof MISSING): void {
  const reason = MISSING[what];
  if (reason !== undefined) TestRunner.getCurrentTest()?.context.skip(reason);
}

/** Whether this system has it, for `test.runIf` and `describe.runIf`. */
export const has = (what: keyof typeof MISSING): boolean => MISSING[what] === undefined;

type Functions = Record<string, (...args: unknown[]) => unknown>;

/** These functions need something, perhaps only with some arguments. */
function guard(
  owner: object,
  names: readonly string[],
  what: keyof typeof MISSING,
  isAffected: (...args: unknown[]) => boolean = () => true,
): void {
  const functions = owner as Functions;
  for (const name of names) {
    const original = functions[name];
    if (!original) continue;
    functions[name] = function (this: unknown, ...args: unknown[]) {
      if (isAffected(...args)) needs(what);
      return original.apply(this, args);
    };
  }
}

/** Whether the test itself calls: the library does so, too, and knows what it cannot do. */
const isByTest = (): boolean => /[\\/]test[\\/]/.test(new Error().stack?.split('\n')[3] ?? '');

const all = (...names: string[]): string[] => names.flatMap((name) => [name, `${name}Sync`]);
const isInProc = (path: unknown): boolean => /^\/(?:proc|sys)\//.test(String(path));
const isLinuxProgram = (file: unknown): boolean =>
  ['unshare', 'nsenter', 'mount', 'mkfifo', 'prlimit', 'setpriv'].includes(String(file));

if (IS_WINDOWS) {
  for (const calls of [fs, fs.promises]) {
    guard(calls, all('symlink'), 'links');
    guard(calls, all('chmod', 'chown', 'lchown', 'fchmod', 'fchown'), 'modes', isByTest);
  }
  guard(process, ['umask'], 'modes');
}
if (!IS_LINUX) {
  const reads = all('readFile', 'readdir', 'readlink', 'stat', 'lstat', 'open', 'statfs');
  for (const calls of [fs, fs.promises]) guard(calls, reads, 'linux', isInProc);
  guard(childProcess, all('spawn', 'execFile'), 'linux', isLinuxProgram);
  syncBuiltinESMExports();
}
