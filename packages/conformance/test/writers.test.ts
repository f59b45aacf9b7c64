/** The sequences make the inotify events of the programs that they name. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test, type TestContext } from 'vitest';

import { root } from '../../../test/docs/markdown.js';
import { isInstalled } from '../../../test/support/command.js';
import { linuxOnly, skip } from '../../../test/support/namespace.js';
import { Program } from '../../../test/support/program.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

linuxOnly();

/** Without what reading causes, with names instead of random ones, and what is repeated once: the kernel merges, too. */
function events(trace: string): string[] {
  const lines = trace
    .split('\n')
    .filter((line) => line !== '' && !/^(OPEN|ACCESS|CLOSE_NOWRITE)\b|\.(start|end)$/.test(line))
    .map((line) =>
      line
        .replace(/^(\w+)\S*/, '$1')
        .replace(/ sed\w{6}$/, ' sed……')
        .replace(/ \.app\.yaml\.(?!sw[px]$)\w{6}$/, ' .app.yaml.……')
        .replace(/ \.\.\d{4}_\S+$/, ' ..revision'),
    );
  return lines.filter((line, index) => line !== lines[index - 1]);
}

/** The events of a sequence, which has to be right. */
async function ofSequence(name: string): Promise<string[]> {
  const output = join(temporaryDirectory(), 'trace');
  const tracer = [process.execPath, join(root, 'packages/conformance/test/tracer.mjs'), output, '{path}'];
  const args = ['--only', name, '--', ...tracer];
  const { code, stdout } = await new Program('packages/conformance/bin.js', args, { input: '' }).finished();
  expect([code, stdout]).toEqual([0, expect.stringContaining('right')]);
  return events(readFileSync(output, 'utf8'));
}

/** The events in a directory while `act` runs. */
async function during(directory: string, act: () => void | Promise<void>): Promise<string[]> {
  const output = join(directory, '..', 'trace');
  const path = join(directory, '.start');
  writeFileSync(path, '');
  const tracer = new Program('packages/conformance/test/tracer.mjs', [output, path], { input: '' });
  await tracer.until(/^[\da-f]{64}$/m);
  await act();
  writeFileSync(join(directory, '.end'), '');
  await expect.poll(() => readFileSync(output, 'utf8'), { timeout: 20_000 }).toMatch(/\.end$/m);
  tracer.child.kill();
  return events(readFileSync(output, 'utf8'));
}

/** Runs a script of `sh` for each update, in a directory with `app.yaml`; `$1` is the number of the update. */
async function ofScript(script: string, updates: number): Promise<string[]> {
  const directory = join(temporaryDirectory(), 'etc');
  mkdirSync(directory);
  const path = join(directory, 'app.yaml');
  writeFileSync(path, 'state 0 of a test\n');
  writeFileSync(join(directory, '..', 'long'), `${'x'.repeat(200)}\n`);
  writeFileSync(join(directory, '..', 'short'), 'short\n');
  return during(directory, () => {
    for (let update = 1; update <= updates; update += 1) {
      execFileSync('sh', ['-ec', script, 'sh', String(update)], { cwd: directory, stdio: 'ignore' });
    }
  });
}

function needs(context: TestContext, ...programs: readonly string[]): void {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length > 0) skip(context, `not installed: ${missing.join(', ')}`);
}

test.for<readonly [string, string, number, string]>([
  ['file-in-place', 'sh', 3, 'echo state $1 of a test > app.yaml'],
  ['file-appended', 'sh', 3, 'echo more >> app.yaml'],
  ['file-sed', 'sed', 3, 'sed -i s/state/State/ app.yaml'],
  // In /tmp vim makes no backup unless it is told to.
  [
    'file-vim',
    'vim',
    3,
    `vim -u NONE -i NONE -N -es -c 'set backupskip= writebackup' -c 's/$/!/' -c wq app.yaml < /dev/null`,
  ],
  ['file-rsync', 'rsync', 3, 'if [ $1 = 2 ]; then rsync ../short app.yaml; else rsync ../long app.yaml; fi'],
  [
    'file-rsync-in-place',
    'rsync',
    4,
    'if [ $(($1 % 2)) = 0 ]; then rsync --inplace ../short app.yaml; else rsync --inplace ../long app.yaml; fi',
  ],
])('%s makes the events of %s', async ([name, program, updates, script], context) => {
  needs(context, 'inotifywait', program);
  expect(await ofSequence(name)).toEqual(await ofScript(script, updates));
});

/** Kubelet's own code, where it is in Go's module cache. */
const KUBERNETES = 'v1.37.2';

/** The program that writes with it; `ATOMIC_WRITER` is one that was built before, which takes minutes. */
function builtWriter(context: TestContext): string {
  const given = process.env['ATOMIC_WRITER'];
  if (given !== undefined) return given;
  needs(context, 'go');
  const cache = execFileSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).trim();
  const module = join(cache, `k8s.io/kubernetes@${KUBERNETES}`);
  if (!existsSync(module)) skip(context, `k8s.io/kubernetes ${KUBERNETES} is not in the module cache`);
  const folder = temporaryDirectory();
  cpSync(join(root, 'packages/conformance/test/atomic-writer'), folder, { recursive: true });
  const output = join(folder, 'writer');
  const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GOSUMDB: 'off' };
  const { status, stderr } = spawnSync('go', ['build', '-o', output, '.'], {
    ...{ cwd: folder, env, encoding: 'utf8' },
  });
  if (status !== 0) skip(context, `it does not build: ${stderr.split('\n', 1).join()}`);
  return output;
}

const other = { 'other.yaml': 'other' };

test.for<readonly [string, readonly Readonly<Record<string, string>>[]]>([
  ['swap', [1, 2, 3].map((update) => ({ ...other, 'app.yaml': `state ${update}` }))],
  ['key-comes-and-goes', [1, 2].flatMap((update) => [other, { ...other, 'app.yaml': `state ${update}` }])],
])(
  "%s makes the events of kubelet's AtomicWriter",
  { timeout: 600_000 },
  async ([name, payloads], context) => {
    needs(context, 'inotifywait');
    const program = builtWriter(context);
    const directory = join(temporaryDirectory(), 'volume');
    mkdirSync(directory);
    const write = (files: object): void =>
      void execFileSync(program, [directory], {
        input: JSON.stringify(files),
        stdio: ['pipe', 'ignore', 'ignore'],
      });
    write({ ...other, 'app.yaml': 'state 0' });
    const real = await during(directory, () => {
      for (const files of payloads) write(files);
    });
    expect(await ofSequence(name)).toEqual(real);
  },
);
