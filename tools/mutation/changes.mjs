/** All changes of files of `src`, put into their text at once: each behind a condition, so that one process can try them all. */
import { readdirSync, readFileSync } from 'node:fs';

import { Instrumenter } from '@stryker-mutator/instrumenter';

const silent = { isDebugEnabled: () => false, debug() {}, info() {}, warn() {}, error: console.error };

/** What Stryker puts before each change, in the words of `active.ts`. */
const inShort = (text) =>
  text
    .replaceAll(/stryMutAct_9fa48\("(\d+)"\)/g, '$$isActive($1)')
    .replaceAll(/stryCov_9fa48\(([^)]*)\)/g, (_, ids) => `$reach(${ids.replaceAll('"', '')})`);

/**
 * @param {string[]} names files in `src`, such as `watch/session.ts`; `watch/` are all files there, without directories.
 * @returns {Promise<{ texts: Map<string, string>, changes: { id: number, file: string, line: number, column: number, kind: string,
 *   replacement: string }[] }>}
 */
export async function changesOf(names) {
  const files = names.flatMap((name) =>
    name.endsWith('/')
      ? readdirSync(`src/${name}`).flatMap((file) => (file.endsWith('.ts') ? [name + file] : []))
      : [name],
  );
  const options = { excludedMutations: [], ignorers: [], plugins: null, noHeader: true };
  const { files: changed, mutants } = await new Instrumenter(silent).instrument(
    files.map((name) => ({ name, mutate: true, content: readFileSync(`src/${name}`, 'utf8') })),
    options,
  );
  const changes = mutants.map(({ id, fileName, location, mutatorName, replacement }) => ({
    id: Number(id),
    file: fileName,
    // Stryker counts from 0.
    line: location.start.line + 1,
    column: location.start.column + 1,
    kind: mutatorName,
    replacement: replacement.replaceAll(/\s+/g, ' '),
  }));
  return { texts: new Map(changed.map(({ name, content }) => [name, inShort(content)])), changes };
}
