/**
 * Runs the program once for each line of its input, a JSON array of arguments, and answers each with a line: exit code,
 * stdout and stderr. Meant for command lines that are refused, which is all that one process can run one after another.
 */
import { createInterface } from 'node:readline';

const program = new URL('../../dist/cli/main.js', import.meta.url);
const { write } = process.stdout;
const answer = (result) => write.call(process.stdout, `${JSON.stringify(result)}\n`);

let run = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const result = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (text) => {
      result[name] += String(text);
      return true;
    };
  }
  process.argv = [process.execPath, program.pathname, ...JSON.parse(line)];
  const exit = new Promise((resolve) => {
    process.exit = resolve;
  });
  run += 1;
  await import(`${program.href}?run=${run}`);
  answer({ code: await exit, ...result });
}
