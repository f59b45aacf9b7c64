/**
 * How much the library does: how often the blocks of its code are executed, as V8 counts them, and how many elements the
 * loops go through that V8 has in its own code.
 */
import { readFileSync } from 'node:fs';
import { Session, type Profiler } from 'node:inspector';
import { fileURLToPath } from 'node:url';

/** Where the modules of the library begin and end in the bundle. */
let parts: { readonly from: number; readonly isLibrary: boolean }[] | undefined;

function isInLibrary(offset: number): boolean {
  parts ??= [...readFileSync(fileURLToPath(import.meta.url), 'utf8').matchAll(/^\/\/ (\S+\.ts)$/gm)].map(
    ({ index, 1: file = '' }) => ({ from: index, isLibrary: /^(?:\.\.\/)*src\//.test(file) }),
  );
  return parts.findLast(({ from }) => from <= offset)?.isLibrary === true;
}

/** Methods of arrays that are loops, without those that call a function for each element. */
const LOOPS = [
  'includes',
  'indexOf',
  'lastIndexOf',
  'concat',
  'slice',
  'splice',
  'shift',
  'unshift',
  'join',
  'sort',
  'reverse',
  'flat',
] as const;

/** What a spread, `Array.from`, and a new Map or Set go through. */
const ITERATED = [Array.prototype, Map.prototype, Set.prototype] as const;

/** Counts the elements of what such a method or an iterator goes through. Returns the count so far, and how it is ended. */
function countElements(): { readonly taken: () => number; readonly end: () => void } {
  let count = 0;
  const originals = LOOPS.map(
    (name) => [name, Object.getOwnPropertyDescriptor(Array.prototype, name)] as const,
  );
  for (const [name, original] of originals) {
    const loop = original?.value as (...args: unknown[]) => unknown;
    const value = function (this: unknown[], ...args: unknown[]): unknown {
      count += this.length;
      return loop.apply(this, args);
    };
    Object.defineProperty(Array.prototype, name, { ...original, value });
  }
  const iterators = ITERATED.map(
    (prototype) => [prototype, prototype[Symbol.iterator] as () => unknown] as const,
  );
  for (const [prototype, iterator] of iterators) {
    const value = function (this: { readonly length?: number; readonly size?: number }): unknown {
      count += this.length ?? this.size ?? 0;
      return iterator.call(this);
    };
    Object.defineProperty(prototype, Symbol.iterator, { value, configurable: true, writable: true });
  }
  return {
    taken: () => count,
    end() {
      for (const [name, original] of originals) Object.defineProperty(Array.prototype, name, original ?? {});
      for (const [prototype, value] of iterators)
        Object.defineProperty(prototype, Symbol.iterator, { value, configurable: true, writable: true });
    },
  };
}

export interface Work {
  readonly blocks: number;
  /** Of everybody, not only of the library. */
  readonly elements: number;
}

/** How much each of these does, one after another. */
export async function countWork(
  phases: Readonly<Record<string, () => Promise<unknown>>>,
  counted: (phase: string, work: Work) => void,
): Promise<void> {
  const loops = countElements();
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  try {
    for (const [phase, work] of Object.entries(phases)) {
      const before = loops.taken();
      await work();
      const elements = loops.taken() - before;
      // This sets the counts to zero.
      session.post('Profiler.takePreciseCoverage', (_, { result }) =>
        counted(phase, { blocks: blocksIn(result), elements }),
      );
    }
  } finally {
    loops.end();
    session.post('Profiler.stopPreciseCoverage');
    session.disconnect();
  }
}

function blocksIn(scripts: readonly Profiler.ScriptCoverage[]): number {
  const functions = scripts
    .filter(({ url }) => url === import.meta.url)
    .flatMap((script) => script.functions);
  return functions
    .filter(({ ranges: [first] }) => first && isInLibrary(first.startOffset))
    .flatMap(({ ranges }) => ranges)
    .reduce((sum, { count }) => sum + count, 0);
}
