/** What the scenarios use. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const isWine = process.env.WINE === '1';
export const isWindows = process.platform === 'win32';
/** A limit for a hang: a machine whose cores are taken needs ten times as long. */
export const LIMIT_MS = 180_000;
const program = fileURLToPath(new URL('../../packages/cli/bin.js', import.meta.url));

/** Resolves when it is so. */
export async function until(what, isSo, ms = 30_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await isSo();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never ${what}`);
    await sleep(20);
  }
}

export function equal(found, wanted, what = 'value') {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: ${a}, not ${b}`);
}

export async function rejection(promise) {
  return promise.then(
    () => ({ code: 'none' }),
    (error) => error,
  );
}

/** Runs the program with its output in a file, since Wine has no pipes. */
export function start(args, cwd, env = process.env) {
  const output = path.join(cwd, `output-${Math.random()}`);
  const fd = fs.openSync(output, 'w');
  const child = spawn(process.execPath, [program, ...args], { cwd, env, stdio: ['ignore', fd, fd] });
  fs.closeSync(fd);
  const exit = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
  return { child, exit, text: () => fs.readFileSync(output, 'utf8') };
}

export function skip(reason) {
  throw Object.assign(new Error(reason), { isSkipped: true });
}

export function attempt(work) {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
