/** Rules of `--config` that are exchanged while something happens. */
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { startMain, type CommandLine } from './support/command-line.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

interface Scene {
  readonly program: CommandLine;
  /** Replaces the rules, as an editor does. */
  replace(...rules: object[]): void;
}

async function watching(first: readonly object[], ...flags: string[]): Promise<Scene> {
  const file = join(temporaryDirectory(), 'rules.yaml');
  const replace = (...rules: object[]): void => {
    writeFileSync(`${file}.new`, JSON.stringify({ rules }));
    renameSync(`${file}.new`, file);
  };
  replace(...first);
  const program = startMain(['watch', '--config', file, ...flags]);
  await program.until(/rules? in use/);
  return { program, replace };
}

/** Prints the paths and keys it is run for. */
const acts = 'echo "now [$RW_PATH] $RW_KEYS" | tr "\\n" " "; echo; cat > /dev/null';

/** A file in place of what is there. */
function put(path: string, content: string): void {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}

test('the actions of all rules are asked to stop at once', async () => {
  const directory = temporaryDirectory();
  const [a, b] = [join(directory, 'a'), join(directory, 'b')];
  const stubborn = `trap 'echo "asked $RW_PATH"' TERM; echo "begun $RW_PATH"; until [ -e ${directory}/go ]; do sleep 0.05; done`;
  const rule = { exec: [stubborn], 'stop-timeout': '1h' };
  const { program } = await watching([
    { paths: [a], ...rule },
    { paths: [b], ...rule },
  ]);
  for (const path of [a, b]) writeFileSync(path, 'x');
  await program.until(/begun .*a$/m);
  await program.until(/begun .*b$/m);
  program.signal('SIGTERM');
  await program.until(/asked .*a$/m);
  await program.until(/asked .*b$/m);
  writeFileSync(join(directory, 'go'), '');
  expect(await program.exit).toBe(0);
});

test('a rule whose action failed for a removal is replaced by one with its path, which acts', async () => {
  const paths = ['same', 'one', 'spelled'].map((name) => join(temporaryDirectory(), name));
  const [same = '', one = '', spelled = ''] = paths;
  for (const path of [...paths, `${one}.other`]) writeFileSync(path, 'x');
  const { program, replace } = await watching(paths.map((path) => ({ paths: [path], exec: ['exit 1'] })));
  for (const path of paths) rmSync(path);
  await program.until(/exited with code 1[^]*exited with code 1[^]*exited with code 1/);
  const successors = [[same], [one, `${one}.other`], [spelled.replace('/spelled', '/./spelled')]];
  replace(...successors.map((each) => ({ paths: each, exec: [acts] })));
  for (const name of ['same', 'one', 'spelled']) await program.until(new RegExp(`now \\[.*/${name}[ \\]]`));
});

test('a rule that stays continues while others come and go, and is not run', async () => {
  const directory = temporaryDirectory();
  const [kept, other] = [join(directory, 'kept'), join(directory, 'other')];
  const stays = { paths: [kept], exec: [acts] };
  const { program, replace } = await watching([stays, { paths: [other], exec: ['echo old'] }]);
  replace({ paths: [other], exec: ['echo new'] }, stays);
  await program.until(/^new$/m);
  put(kept, 'x');
  await program.until(/now \[.*kept\] \["kept"\]/);
  // Of what it prints itself, one line quotes the command.
  expect(program.stderr.match(/^now/gm)).toHaveLength(1);
});

test('a rule that was taken away and is given again acts', async () => {
  const directory = temporaryDirectory();
  const [back, stays] = ['back', 'stays'].map((name) => join(directory, name)) as [string, string];
  for (const path of [back, stays]) writeFileSync(path, 'x');
  const rules = [
    { paths: [back], exec: [acts] },
    { paths: [stays], exec: ['true'] },
  ] as const;
  const { program, replace } = await watching(rules);
  replace(rules[1]);
  await program.until(/1 rule in use/);
  replace(...rules);
  await program.until(/now \[.*back\] \["back"\]/);
});

test('a rule that replaces another is given every key that is there, and none that is gone', async () => {
  const directory = temporaryDirectory();
  const [a, b, gone] = ['a', 'b', 'gone'].map((name) => join(directory, name)) as [string, string, string];
  for (const path of [a, b, gone]) writeFileSync(path, 'x');
  const { program, replace } = await watching([{ paths: [directory], exec: ['exit 1'] }]);
  put(a, 'changed');
  rmSync(gone);
  await program.until(/exited with code 1/);
  // In one write, which no other line can divide.
  replace({ paths: [directory], exec: ['echo "now $RW_KEYS $RW_CAUSE $(cat)"'] });
  const [, document = ''] = await program.until(/now \["a","b"\] start (\{.*\})\n/);
  expect(JSON.parse(document)).toMatchObject({ paths: [{ added: ['a', 'b'], changed: [], removed: [] }] });
});

test('what a rule could not read when it replaced another is acted on when it can', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, '0');
  const { program, replace } = await watching([{ paths: [path], exec: ['exit 1'] }]);
  put(path, '1');
  await program.until(/exited with code 1/);
  symlinkSync(path, `${path}.loop`);
  renameSync(`${path}.loop`, path);
  replace({ paths: [path], exec: [acts] });
  await program.until(/1 rule in use[^]*1 rule in use/);
  put(path, '1');
  await program.until(/now \[.*\/file\] \["file"\]/);
});

test('rules that are replaced while the program ends do not act', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  const stubborn = `trap 'echo asked' TERM; echo begun; until [ -e ${directory}/go ]; do sleep 0.05; done`;
  const { program, replace } = await watching([{ paths: [path], exec: [stubborn], 'stop-timeout': '10m' }]);
  writeFileSync(path, 'x');
  await program.until(/begun/);
  replace({ paths: [path], exec: [acts] }, { paths: [directory] });
  await program.until(/asked/);
  program.signal('SIGTERM');
  await program.until(/SIGTERM/);
  writeFileSync(join(directory, 'go'), '');
  expect(await program.exit).toBe(0);
  expect((await program.finished()).stderr).not.toMatch(/now|2 rules in use/);
});
