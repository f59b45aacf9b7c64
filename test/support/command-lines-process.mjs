/**
 * Runs `resilient-watcher` once for each line of its input, `{ "args": [...], "env": {...} }`, and answers each with a
 * line: exit code, stdout and stderr.
 */
import { createInterface } from 'node:readline';

const program = new URL('../../dist/cli/main.js', import.meta.url);
const { write } = process.stdout;
const environment = { ...process.env };

// Each run adds listeners, which would live as long as its process.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0);

let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { args, env } = JSON.parse(line);
  const result = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (text, written) => {
      result[name] += String(text);
      written?.();
      return true;
    };
  }
  process.argv = [process.execPath, program.pathname, ...args];
  process.env = { ...environment, ...env };
  const exit = new Promise((resolve) => {
    process.exit = resolve;
  });
  count += 1;
  await import(`${program.href}?run=${count}`);
  write.call(process.stdout, `${JSON.stringify({ code: await exit, ...result })}\n`);
}
