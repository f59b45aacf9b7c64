/** `node command.mjs DIRECTORY`: starts a process that stays, notes both in the file `starts`, and ends with 3 when there is a file `stop`. */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';

const [, , directory] = process.argv;
const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
appendFileSync(join(directory, 'starts'), `${process.pid} ${pid}\n`);
setInterval(() => {
  if (!existsSync(join(directory, 'stop'))) return;
  process.kill(pid);
  process.exit(3);
}, 50);
