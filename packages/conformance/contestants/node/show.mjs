/**
 * The protocol: prints the SHA-256 of a file each time that it is called, also if it is the same as before. Of several
 * files, those that have changed; with WATCH_SET, one SHA-256 of the contents of all.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const [configuration, ...paths] = process.argv.slice(2);
const shown = new Map();

// As in a server, which goes on when its watcher has ended.
setInterval(() => {}, 1_000_000);

function digestOf(files) {
  try {
    const hash = createHash('sha256');
    for (const file of files) hash.update(readFileSync(file));
    return hash.digest('hex');
  } catch {
    return undefined; // not there at the moment
  }
}

/** @param names what has changed; if none of the files is among them, all are shown. */
export function show(names = paths) {
  const asked = names.filter((path) => paths.includes(path));
  const changed = asked.length > 0 ? asked : paths;
  for (const files of process.env.WATCH_SET ? [paths] : changed.map((path) => [path])) {
    const digest = digestOf(files);
    const isShown = changed.length > 1 && shown.get(files[0]) === digest;
    if (digest && !isShown) console.log(digest);
    shown.set(files[0], digest);
  }
}
