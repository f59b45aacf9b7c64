/** The reference: reads every 50 ms, and holds for current what it has read twice. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const [path] = process.argv.slice(2);
let last;
let shown;
setInterval(() => {
  let digest;
  try {
    digest = createHash('sha256').update(readFileSync(path)).digest('hex');
  } catch {
    digest = undefined; // not there at the moment
  }
  if (digest && digest === last && digest !== shown) console.log((shown = digest));
  last = digest;
}, 50);
