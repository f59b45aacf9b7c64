/**
 * A right program that also records the inotify events of the directory of the file: `tracer.mjs OUTPUT PATH`. The
 * first state is printed when the events are recorded.
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { dirname } from 'node:path';

const [output, path] = process.argv.slice(2);
const args = ['--monitor', '--format', '%e %f', dirname(path)];
// Through a pipe: its next event ends it when this program is gone.
const inotifywait = spawn('inotifywait', args, { stdio: ['ignore', 'pipe', 'pipe'] });
inotifywait.stdout.on('data', (chunk) => appendFileSync(output, chunk));
inotifywait.stderr.setEncoding('utf8').on('data', (text) => {
  if (text.includes('Watches established')) {
    process.argv.splice(2, 2, 'default', path);
    void import('../contestants/node/poll.mjs');
  }
});
