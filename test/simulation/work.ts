/** How much the library does: how often the blocks of its code are executed, as V8 counts them. */
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

/** How many blocks of the library each of these executes, one after another. */
export async function countWork(
  phases: Readonly<Record<string, () => Promise<unknown>>>,
  counted: (phase: string, blocks: number) => void,
): Promise<void> {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  try {
    for (const [phase, work] of Object.entries(phases)) {
      await work();
      // This begins to count anew.
      session.post('Profiler.takePreciseCoverage', (_, { result }) => counted(phase, blocksIn(result)));
    }
  } finally {
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
