/** `node:fs` with something in between: calls can be recorded, answered otherwise, or made to fail. */
import nodeFs, { readlinkSync, statSync, writeFileSync, type BigIntStats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from './errno.js';
import { temporaryDirectory } from './temporary-directory.js';

/** A call by its name without `Sync`. */
export type CallName = Exclude<keyof FileSystem, `${string}Sync`>;

/** A call in either of its forms. */
export interface Called {
  readonly name: CallName;
  readonly args: readonly unknown[];
  readonly isSynchronous: boolean;
  /** Makes the call, with other arguments if they are given. */
  readonly make: (args?: readonly unknown[]) => unknown;
}

/** What the mount table says of every path; `hidden`: it cannot be read. Default: the truth. */
export type Place = 'memory' | 'disk' | 'remote' | 'unknown' | 'hidden';

const TYPES = { memory: 'tmpfs', disk: 'ext4', remote: 'nfs4', unknown: 'unheard-of' };

const MOUNT_TABLE = '/proc/self/mountinfo';

const real = nodeFs as unknown as Record<string, (...args: unknown[]) => unknown>;

/** Answers a call, or throws. If it neither answers the call nor makes it, the call is made. */
export type Intervention = (call: Called) => unknown;

/** By the name of the call; `each` is for all calls without one of their own, except `watch`. */
export type Interventions = Partial<Record<CallName | 'each', Intervention>>;

/**
 * For a call with a callback, the answer may be a promise.
 * @param place reading the mount table is not a call that is intercepted. Or lines of the mount table, or a function
 * that returns the lines at each reading.
 */
export function fsWith(
  interventions: Interventions,
  place?: Place | readonly string[] | (() => readonly string[]),
): FileSystem {
  const isFixed = place === undefined || place === 'hidden' || typeof place === 'function';
  const fixed = isFixed ? MOUNT_TABLE : tableOf(place);
  const reading = new Set<unknown>();
  const answer = (called: Called, intervene: Intervention | undefined): unknown => {
    const made = { once: false };
    const make: Called['make'] = (args) => {
      made.once = true;
      return called.make(args);
    };
    const answered = intervene?.({ ...called, make });
    return answered === undefined && !made.once ? called.make() : answered;
  };
  const now = (name: CallName, isSynchronous: boolean, args: unknown[]): unknown => {
    if (args[0] === MOUNT_TABLE) {
      if (place === 'hidden') throw errno('EACCES', MOUNT_TABLE);
      const fd = real['openSync']?.(typeof place === 'function' ? tableOf(place()) : fixed, 0);
      reading.add(fd);
      return fd;
    }
    const make = (others: readonly unknown[] = args): unknown => real[`${name}Sync`]?.(...others);
    if (name !== 'rename' && reading.has(args[0])) {
      if (name === 'close') reading.delete(args[0]);
      return make();
    }
    return answer({ name, args, isSynchronous, make }, interventions[name] ?? interventions.each);
  };
  const watch = (...args: unknown[]): unknown => {
    const make = (others: readonly unknown[] = args): unknown => real['watch']?.(...others);
    return answer({ name: 'watch', args, isSynchronous: true, make }, interventions.watch);
  };
  return new Proxy(nodeFs, {
    get(_, property) {
      const name = String(property);
      if (name === 'watch') return interventions.watch ? watch : nodeFs.watch;
      if (name.endsWith('Sync')) {
        return (...args: unknown[]) => now(name.slice(0, -'Sync'.length) as CallName, true, args);
      }
      return (...args: unknown[]) => {
        const done = args.pop() as (error: unknown, answer?: unknown) => void;
        const answered = new Promise((resolve) => resolve(now(name as CallName, false, args)));
        answered.then((value) => done(null, value), done);
      };
    },
  });
}

/** A file with these lines, or that of one mount. */
function tableOf(place: keyof typeof TYPES | readonly string[]): string {
  const lines =
    typeof place === 'string' ? [`1 0 ${deviceHere()} / / rw - ${TYPES[place]} device rw`] : place;
  const table = join(temporaryDirectory(), 'mountinfo');
  // A character is a byte: mount points need not be UTF-8.
  writeFileSync(table, `${lines.join('\n')}\n`, 'latin1');
  return table;
}

/** "major:minor" of the file system that the tests use. */
export function deviceHere(): string {
  const { dev } = statSync(tmpdir(), { bigint: true });
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  return `${major}:${minor}`;
}

/** The path by name, of one that leads through an open descriptor. */
export function withoutDescriptor<T>(path: T): T {
  if (typeof path !== 'string') return path;
  return path.replace(/^\/proc\/self\/fd\/\d+/, (link) => readlinkSync(link)) as T;
}

/** Takes so long without a turn of the event loop, ms, as a slow call does. */
export function spend(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;) continue;
}

/** Changes what `lstat` and `fstat` say; only `lstat` knows the path. */
export function statsWith(change: (stat: BigIntStats, path?: string) => void): Interventions {
  const changed = ({ name, args: [path], make }: Called): unknown => {
    const stat = make() as BigIntStats | undefined;
    if (stat) change(stat, name === 'lstat' ? String(path) : undefined);
    return stat;
  };
  return { lstat: changed, fstat: changed };
}
