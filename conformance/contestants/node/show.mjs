/** The protocol: prints the SHA-256 of a file that can be read, if it is another one than before. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const [path, configuration = 'default'] = process.argv.slice(2);

// As in a server, which goes on when its watcher has ended.
setInterval(() => {}, 1_000_000);

let shown;
export function show() {
  let content;
  try {
    content = readFileSync(path);
  } catch {
    return; // not there at the moment
  }
  const digest = createHash('sha256').update(content).digest('hex');
  if (digest !== shown) console.log((shown = digest));
}
