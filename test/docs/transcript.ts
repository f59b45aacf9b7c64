/**
 * Runs a block of code from a page, and compares what it prints with the comment above it.
 *
 * It runs in a folder with the built package and the files of `mounted()`; its absolute paths are in that folder, its ports are a
 * free one, and the hosts that it connects to are this machine.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

import { transform } from 'esbuild';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { expect, onTestFailed, onTestFinished } from 'vitest';

import { packages as workspaces } from '../../packages/packages.mjs';
import { freePort } from '../support/free-port.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { importsOf, root, type CodeBlock } from './markdown.js';

/** The packages of this repository. */
const own = new Set(workspaces.map(({ manifest }) => manifest.name));

/**
 * Resolves if the block, in a process of its own, prints what its page says.
 * @param packages where the packages are that it imports, other than this one.
 */
export async function playBlock(block: CodeBlock, packages = join(root, 'node_modules')): Promise<void> {
  const folder = temporaryDirectory();
  mounted(folder);
  const port = await freePort('localhost');
  await program(folder, 'block.mjs', block, port, packages);
  const steps = stepsOf(block);
  expect(await played(steps, folder, port)).toEqual(steps);
}

/** Resolves if the blocks, one after the other in one process, print nothing, and the process then ends by itself. */
export async function playSilentBlocks(blocks: readonly CodeBlock[]): Promise<void> {
  const folder = temporaryDirectory();
  mounted(folder);
  const files = blocks.map(({ page, line }) => `${page.replaceAll('/', '-')}-${line}.mjs`);
  for (const [index, block] of blocks.entries()) {
    const port = await freePort('localhost');
    await program(folder, files[index] ?? '', block, port, join(root, 'node_modules'));
  }
  writeFileSync(join(folder, 'block.mjs'), files.map((file) => `await import('./${file}');\n`).join(''));
  expect(await played([], folder, 0)).toEqual([]);
}

/** What a block prints, and what is done to it meanwhile, line by line. */
export function stepsOf({ output = '' }: CodeBlock): string[] {
  return output.split('\n').filter((line) => line !== '');
}

/** What is mounted into the pod of the examples. */
function mounted(folder: string): void {
  const signer = new CertificateSigner();
  const { chain, key, bundle } = signer.issue({ dnsNames: ['localhost'] });
  const workload = signer.issue({ uris: ['spiffe://example.org/ns/shop/sa/billing'] }).bundle;
  const files = {
    'etc/tls': { 'tls.crt': chain, 'tls.key': key, 'ca.crt': signer.certificate },
    cred: { 'bundle.pem': bundle, 'ca.pem': signer.certificate },
    trust: { 'ca.pem': signer.certificate },
    'run/workload-spiffe-credentials': {
      'credential-bundle.private-key.x509.pem': workload,
      'example.org.spiffe-trust-bundle.x509.pem': signer.certificate,
    },
    'etc/app': { 'app.yaml': 'greeting: hello\nlog: { level: debug }\n' },
    'etc/db': { username: 'app', password: 'correct horse' },
  };
  for (const [directory, contents] of Object.entries(files)) {
    mkdirSync(join(folder, directory), { recursive: true });
    for (const [name, content] of Object.entries(contents)) {
      writeFileSync(join(folder, directory, name), content);
    }
  }
}

/** Writes the block as a program, beside the recipe that it imports and with the packages that it imports. */
async function program(
  folder: string,
  file: string,
  block: CodeBlock,
  port: number,
  packages: string,
): Promise<void> {
  const local = block.code
    .replace(/(['"])\/(?=(?:etc|var|run|srv|cred|trust|shared)\/)/g, '$1')
    .replace(/\b(?:443|8443|9090|8081)\b/g, String(port))
    .replace(/'nginx'/g, "'no-nginx'") // one that runs here is not reloaded
    .replace(/\/\/billing\b/g, '//localhost')
    .replace(/billing(?=:\d)|\[::\]/g, 'localhost');
  for (const name of importsOf(block)) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    if (existsSync(link)) continue;
    symlinkSync(own.has(name) ? join(root, 'node_modules', name) : join(packages, name), link);
  }
  // The last line says that everything above it was done.
  const compiled = await transform(`${local}\nprocess.send?.('done');`, { loader: 'ts', target: 'es2022' });
  writeFileSync(join(folder, file), compiled.code);
}

/**
 * The transcript of a run, as far as it went: a line is what the program prints next, with `…` for any text; `…` alone is any
 * number of lines. `$ ` begins a command of the shell; the first ones come before the program. `GET` is a request that is
 * repeated until there is an answer, which follows. `^C` ends a program that has run to its last line and would go on; without
 * it, the program has to end by itself.
 */
async function played(steps: readonly string[], cwd: string, port: number): Promise<string[]> {
  const seen: string[] = [];
  const printed: string[] = [];
  onTestFailed(() => console.error(printed.join('\n')));
  const run = (step: string): void => void execFileSync('sh', ['-c', step.slice(2)], { cwd });
  for (const step of steps) {
    if (!step.startsWith('$ ')) break;
    run(step);
    seen.push(step);
  }
  const { NODE_ENV: _, ...env } = process.env; // that of Vitest
  // What it says of an error is in the transcript, too.
  const command = ['-c', 'exec "$0" block.mjs 2>&1', process.execPath];
  const child = spawn('sh', command, { cwd, env, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  const isDone = once(child, 'message');
  const { stdout } = child as unknown as { stdout: Readable }; // not null: it is a pipe
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const answers: string[] = [];
  const next = async (): Promise<string> => {
    const line =
      answers.shift() ?? ((await lines.next()) as IteratorResult<string, undefined>).value ?? '(no more)';
    printed.push(line);
    return line;
  };
  let isChanged = false;
  let mayBeAny = false;
  for (const step of steps.slice(seen.length)) {
    if (step.startsWith('$ ')) {
      run(step);
      isChanged = true;
      seen.push(step);
    } else if (step.startsWith('GET ')) {
      answers.push(...(await answerOf(step.slice(4), port, child)).trimEnd().split('\n'));
      seen.push(step);
    } else if (step === '^C') {
      const [code] = (await Promise.race([isChanged ? ['done'] : isDone, ended])) as unknown[];
      seen.push(code === 'done' ? step : `(it has ended: ${String(code)})`);
      child.kill();
    } else if (step === '…') {
      mayBeAny = true;
      seen.push(step);
      continue;
    } else {
      let line = await next();
      while (mayBeAny && !isLike(step, line) && line !== '(no more)') line = await next();
      seen.push(isLike(step, line) ? step : line);
      if (!isLike(step, line)) return seen;
    }
    mayBeAny = false;
  }
  if (steps.at(-1) === '^C') return seen;
  for (let line = await next(); line !== '(no more)'; line = await next()) if (!mayBeAny) seen.push(line);
  const [code] = (await ended) as [number | null];
  return code === 0 ? seen : [...seen, `exit code ${String(code)}`];
}

function isLike(step: string, line: string): boolean {
  const parts = step.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(line.trimEnd());
}

async function answerOf(url: string, port: number, program: ChildProcess): Promise<string> {
  const target = url.replace(/:\d+/, `:${port}`);
  while (program.exitCode === null && program.signalCode === null) {
    try {
      const request = target.startsWith('https:')
        ? getHttps(target, { rejectUnauthorized: false, agent: false })
        : getHttp(target, { agent: false });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return await text(response);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error;
    }
  }
  return '(it has ended)';
}
