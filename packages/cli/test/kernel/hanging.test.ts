/** Paths on a file system that never answers, like that of a dead server. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { withHangingMount } from '../../../../test/support/namespace.js';
import { startCli } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

/** A directory in which nothing answers. */
function hangingDirectory(): string {
  const directory = join(temporaryDirectory(), 'hanging');
  mkdirSync(directory);
  return directory;
}

/** Older ones cannot end with an exit code while a call hangs. */
const endsWith = (exitCode: number): unknown => ('execve' in process ? exitCode : 'SIGKILL');

describe('a path that does not answer', () => {
  test('does not keep wait from ending at its timeout', async (context) => {
    const directory = hangingDirectory();
    const prefix = withHangingMount(context, directory);
    const program = startCli(['wait', join(directory, 'file'), '--timeout', '100ms'], { prefix });
    await program.until(/gave up waiting for .*hanging\/file/);
    expect(await program.exit).toBe(endsWith(124));
  });

  const commands: readonly (readonly [command: string, args: readonly string[], exitCode: number])[] = [
    ['watch', [], 0],
    ['run', ['--', 'true'], 143],
  ];
  for (const [command, args, exitCode] of commands) {
    test(`does not keep ${command} from ending on SIGTERM`, async (context) => {
      const directory = hangingDirectory();
      const prefix = withHangingMount(context, directory);
      const flags = ['--listen', '127.0.0.1:0'];
      const program = startCli([command, join(directory, 'file'), ...flags, ...args], { prefix });
      await program.until(/listening on/);
      program.child.kill('SIGTERM');
      expect(await program.exit).toBe(endsWith(exitCode));
    });
  }

  test('does not hold back the actions for other paths of its rule, nor the next rules', async (context) => {
    const directory = hangingDirectory();
    const prefix = withHangingMount(context, directory);
    const home = temporaryDirectory();
    const [file, path] = [join(home, 'rules.yaml'), join(home, 'file')];
    const replace = (...rules: object[]): void => {
      writeFileSync(`${file}.new`, JSON.stringify({ rules }));
      renameSync(`${file}.new`, file);
    };
    replace({ paths: [path], exec: ['exit 1'] });
    const program = startCli(['watch', '--config', file], { prefix });
    await program.until(/1 rule in use/);
    writeFileSync(path, '');
    await program.until(/exited with code 1/);
    const hanging = { paths: [path, join(directory, 'file')] };
    replace({ ...hanging, exec: ['exit 2'] });
    await program.until(/hanging\/file: the file system does not answer[^]*exited with code 2/);
    replace({ ...hanging, exec: ['exit 3'] });
    replace({ paths: [path], exec: ['echo done with "$RW_KEYS"'] });
    await program.until(/^done with \["file"\]$/m);
  });
});
