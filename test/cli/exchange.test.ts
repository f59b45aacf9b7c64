/** Rules of `--config` that are exchanged while something happens. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { startCli, type Program, type ProgramOptions } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

interface Scene {
  readonly program: Program;
  /** Replaces the rules, as an editor does. */
  replace(...rules: object[]): void;
}

async function watching(
  first: readonly object[],
  options?: ProgramOptions,
  ...flags: string[]
): Promise<Scene> {
  const file = join(temporaryDirectory(), 'rules.yaml');
  const replace = (...rules: object[]): void => {
    writeFileSync(`${file}.new`, JSON.stringify({ rules }));
    renameSync(`${file}.new`, file);
  };
  replace(...first);
  const program = startCli(['watch', '--config', file, ...flags], options);
  await program.until(/rules? in use/);
  return { program, replace };
}

/** Prints the paths and keys it is run for. */
const acts = 'echo "now [$RW_PATH] [$RW_KEYS]" | tr "\\n" " "; echo; cat > /dev/null';

/** A link that leads to itself, in place of what is there. */
function loop(path: string): void {
  symlinkSync(path, `${path}.loop`);
  renameSync(`${path}.loop`, path);
}

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
  for (const path of [a, b]) writeFileSync(path, '');
  await program.until(/begun .*a$/m);
  await program.until(/begun .*b$/m);
  program.child.kill('SIGTERM');
  await program.until(/asked .*a$/m);
  await program.until(/asked .*b$/m);
  writeFileSync(join(directory, 'go'), '');
  expect(await program.exit).toBe(0);
});

test('rules that cannot be created leave the others as they are', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  const target = spawn('sleep', ['1000']);
  const ended = new Promise((resolve) => target.once('exit', resolve));
  onTestFinished(() => void target.kill('SIGKILL'));
  const stubborn = `trap 'echo asked' TERM; echo begun; until [ -e ${directory}/go ]; do sleep 0.05; done`;
  const first = { paths: [path], exec: [stubborn], 'stop-timeout': '1h' };
  const { program, replace } = await watching([first], undefined, '--listen', '127.0.0.1:0');
  const [, port] = await program.until(/listening on port (\d+)/);
  writeFileSync(path, '');
  await program.until(/begun/);
  const second = { paths: [path], exec: [acts] };
  replace(second);
  await program.until(/asked/);
  // These rules are valid, but have to wait until the first one has stopped.
  replace({ paths: [path], signal: 'HUP', pid: target.pid });
  const accepted = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  await expect.poll(accepted).toMatch(/config_reloads_total\{.*result="accepted"\} 3/);
  target.kill('SIGKILL');
  await ended;
  writeFileSync(join(directory, 'go'), '');
  await program.until(/the rules stay as they are: .*there is no such process/);
  put(path, 'newer');
  await program.until(/done in/);
  rmSync(path);
  await program.until(/done in[^]*done in/);
  // What was in use before is recognized, and in use.
  replace(second);
  put(path, 'newest');
  await program.until(/done in[^]*done in[^]*done in/);
});

test.each([
  ['a rule that begins with an action', (path: string) => ({ paths: [path], initial: true })],
  ['a rule for a group', (path: string) => ({ paths: [path, `${path}.other`], group: true })],
  ['a rule with a path of its own', (path: string) => ({ paths: [path, `${path}.other`] })],
])('a removal that was not handled is left to %s', async (_, rule) => {
  const path = join(temporaryDirectory(), 'file');
  for (const each of [path, `${path}.other`, `${path}.third`]) writeFileSync(each, '');
  const { program, replace } = await watching([
    { paths: [path, `${path}.third`], group: true, exec: ['exit 1'] },
  ]);
  rmSync(path);
  await program.until(/exited with code 1/);
  replace({ ...rule(path), exec: [acts] });
  await program.until(/now \[.*\/file[ \]].*\[.*file[ \]]/);
});

test('only what was not handled is left to a rule that combines the paths in another way', async () => {
  const directory = temporaryDirectory();
  const [a, b] = [join(directory, 'a'), join(directory, 'b')];
  for (const path of [a, b]) writeFileSync(path, '0');
  const { program, replace } = await watching([{ paths: [a, b], group: true, exec: ['exit 1'] }]);
  put(a, '1');
  await program.until(/exited with code 1/);
  const shows = 'echo "${RW_PATH##*/} is $(cat $RW_PATH)"';
  replace({ paths: [a], exec: [shows] }, { paths: [b], exec: [shows] });
  await program.until(/^a is 1$/m);
  await program.until(/2 rules in use/);
  put(b, '1');
  await program.until(/^b is 1$/m);
  expect(program.stderr).not.toMatch(/^b is 0$/m);
});

test('what a rule has never been able to read is left to the rule that replaces it', async () => {
  const path = join(temporaryDirectory(), 'file');
  loop(path);
  const { program, replace } = await watching([{ paths: [path], poll: '1h', exec: ['echo first'] }]);
  put(path, '');
  replace({ paths: [path], exec: [acts] });
  await program.until(/now \[.*\/file\] \[file\]/);
  expect(program.stderr).not.toMatch(/^first/m);
});

test.each([
  ['a file', 'file', (path: string) => put(path, '1')],
  ['nothing', 'file', (path: string) => rmSync(path)],
])('a rule whose first check fails handles what was left to it when there is %s', async (_, key, heal) => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, '0');
  const { program, replace } = await watching([{ paths: [path], exec: ['exit 1'] }]);
  put(path, '1');
  await program.until(/exited with code 1/);
  loop(path);
  replace({ paths: [path], exec: [acts] });
  await program.until(/1 rule in use[^]*1 rule in use/);
  heal(path);
  await program.until(new RegExp(`now \\[.*/file\\] \\[${key}\\]`));
});

test('a rule whose volume is another one after each read of it handles what was left to it', async () => {
  const directory = temporaryDirectory();
  const mounted = new KubeletVolume(join(directory, 'volume'));
  mounted.publish({ n: '0' });
  // Every other time its link leads to the other revision.
  const [data, other, flag] = [mounted.path('..data'), mounted.path('..other'), join(directory, 'unstable')];
  const hook = `import fs from 'node:fs';
    const { readlinkSync } = fs;
    let count = 0;
    fs.readlinkSync = (path, ...rest) => {
      const target = readlinkSync(path, ...rest);
      if (String(path) !== ${JSON.stringify(data)} || !fs.existsSync(${JSON.stringify(flag)})) return target;
      count += 1;
      return count % 2 === 0 ? target : '..other';
    };`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
  const { program, replace } = await watching([{ paths: [mounted.directory], exec: ['exit 1'] }], { env });
  mounted.publish({ n: '0', more: '' });
  await program.until(/exited with code 1/);
  mkdirSync(other);
  for (const [key, content] of [
    ['n', '0'],
    ['more', ''],
  ] as const)
    writeFileSync(join(other, key), content);
  writeFileSync(flag, '');
  replace({ paths: [mounted.directory], exec: [acts] });
  await program.until(/was replaced during every attempt to read it/);
  await program.until(/1 rule in use[^]*1 rule in use/);
  rmSync(flag);
  await program.until(/now \[.*volume\] \[more\]/);
});
