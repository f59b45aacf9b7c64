import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';

import type { FileSystem } from 'resilient-watcher';

import { interceptedFs, type CallName } from './intercepted-fs.js';

/** Asked before each call; what it throws, the call throws. What it returns, if anything, is the answer. */
export type Fault = (name: CallName, args: readonly unknown[]) => unknown;

/** The real file system, with faults. `sync: false`: it may hang, so that no call on it is synchronous. */
export function faultyFileSystem(fault: Fault, { sync = true } = {}): FileSystem {
  return interceptedFs(({ name, args, make }) => fault(name, args) ?? make(), sync ? undefined : 'unknown');
}

/** An error as Node makes it: it has no names for some numbers, such as ESTALE and EDQUOT, and codes of its own without one. */
export function errno(name: string, path = ''): Error {
  const number = constants.errno[name as keyof typeof constants.errno] as number | undefined;
  const code = number === undefined ? name : getSystemErrorName(-number);
  const error = new Error(`${code}: injected, '${path}'`);
  return Object.assign(error, {
    code,
    ...(number !== undefined && { errno: -number }),
    ...(path && { path }),
  });
}
