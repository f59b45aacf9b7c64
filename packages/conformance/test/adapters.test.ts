/** The adapters of packages/conformance/docs/conformance.md, each as a user would run it, where its toolchain is. */
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { expect, test } from 'vitest';

import { codeBlocks, root } from '../../../test/docs/markdown.js';
import { isInstalled } from '../../../test/support/command.js';
import { Program } from '../../../test/support/program.js';
import { some } from '../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

/** What each language is run by, with the name of the file that the block becomes. */
const RUN: Readonly<Record<string, readonly [file: string, program: string]>> = {
  js: ['adapter.mjs', process.execPath],
  python: ['adapter.py', 'python3'],
  go: ['adapter.go', 'go'],
  java: ['Adapter.java', 'java'],
  sh: ['adapter.sh', 'sh'],
};

const adapters = codeBlocks('packages/conformance/docs/conformance.md').filter(
  ({ language, code }) => language in RUN && /sha-?256/i.test(code),
);

test('there is one for each of five languages', () => {
  expect(adapters.map(({ language }) => language).sort()).toEqual(Object.keys(RUN).sort());
});

// In `npm test` the first and the last one, which need no compiler.
test.each(some(adapters, 4).map((block) => [block.language, block] as const))(
  'the one in %s passes',
  async (language, { code }) => {
    const [file, program] = RUN[language] ?? ['', ''];
    if (!isInstalled(program) || (language === 'sh' && !isInstalled('sha256sum'))) return;
    const folder = temporaryDirectory();
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/resilient-watcher'));
    const path = join(folder, file);
    writeFileSync(path, code);
    let command = [program, path];
    if (language === 'go') {
      // On a new machine this compiles the standard library, which takes longer than any sequence waits for the adapter.
      const built = join(folder, 'built');
      await promisify(execFile)('go', ['build', '-o', built, path]);
      command = [built];
    }
    const only = some(['volume-recreated', 'swap', 'file-renamed-over'], 3).flatMap((name) => [
      '--only',
      name,
    ]);
    const args = [...only, '--timeout', '20000', '--', ...command, '{path}'];
    const { code: exitCode, stdout } = await new Program('packages/conformance/bin.js', args, {
      input: '',
    }).finished();
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('right')]);
  },
);
