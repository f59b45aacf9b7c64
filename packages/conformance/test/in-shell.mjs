/** Runs a command line of Node.js in a shell, as it was printed: `in-shell.mjs COMMAND`. */
import { spawnSync } from 'node:child_process';

const { status } = spawnSync('sh', ['-c', `"$0" ${process.argv[2]}`, process.execPath], { stdio: 'inherit' });
process.exitCode = status ?? 255;
