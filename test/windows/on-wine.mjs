/**
 * `node on-wine.mjs SCRIPT ARG…`: runs a script with `node.exe` on Wine as if it ran here. Absolute paths are those of drive Z:, and
 * what it prints goes through a file, since `node.exe` cannot write to pipes there.
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const POLL_MS = 10;

const folder = mkdtempSync(join(tmpdir(), 'on-wine-'));
const output = join(folder, 'output');
const written = openSync(output, 'w');
const read = openSync(output, 'r');
const args = process.argv
  .slice(2)
  .map((arg) => (arg.startsWith('/') ? `Z:${arg.replaceAll('/', '\\')}` : arg));
const child = spawn(process.env.WINE_PROGRAM, [process.env.WINE_NODE, ...args], {
  stdio: ['ignore', written, 'inherit'],
});
closeSync(written);
// This process is killed: its descriptors are all that is left of them.
unlinkSync(output);
rmSync(folder, { recursive: true });

const chunk = Buffer.alloc(65_536);
function show() {
  for (let size = readSync(read, chunk); size > 0; size = readSync(read, chunk))
    process.stdout.write(Buffer.from(chunk.subarray(0, size)));
}
setInterval(show, POLL_MS);
child.once('exit', (code) => {
  show();
  process.exit(code ?? 1);
});
