import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { onTestFinished } from 'vitest';

/** A program of `examples/`, running. */
export interface Example {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly output: () => string;
  /** Resolves to its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

/** Starts a program of `examples/`; killed when the test is over. It uses the library as built in `dist`. */
export function startExample(file: string, env: Readonly<Record<string, string>>): Example {
  const path = fileURLToPath(new URL(`../../examples/${file}`, import.meta.url));
  const child = spawn(process.execPath, [path], { env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, output: () => output, ended };
}
