import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';

import { nodeFileSystem, type FileSystem, type FileSystemCalls } from 'resilient-watcher';

/** Asked before each call; what it throws, the call throws. What it returns, if anything, is the answer. */
export type Fault = (name: keyof FileSystemCalls, args: readonly unknown[]) => unknown;

/** The real file system, with faults. `sync: false` leaves the synchronous calls out. */
export function faultyFileSystem(fault: Fault, { sync = true } = {}): FileSystem {
  const wrap = <T extends object>(calls: T, promise: boolean): T =>
    new Proxy(calls, {
      get(target, name) {
        if (name === 'sync') return sync ? wrap(nodeFileSystem.sync as object, false) : undefined;
        const real = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        const faulty = (...args: unknown[]): unknown =>
          fault(name as keyof FileSystemCalls, args) ?? real(...args);
        return promise ? (...args: unknown[]) => new Promise((resolve) => resolve(faulty(...args))) : faulty;
      },
    });
  return wrap(nodeFileSystem, true);
}

/** An error as Node makes it: it has no names for some numbers, such as ESTALE and EDQUOT, and codes of its own without one. */
export function errno(name: string, path = ''): Error {
  const number = constants.errno[name as keyof typeof constants.errno] as number | undefined;
  const code = number === undefined ? name : getSystemErrorName(-number);
  const error = new Error(`${code}: injected, '${path}'`);
  return Object.assign(error, number === undefined ? { code } : { errno: -number, code });
}
