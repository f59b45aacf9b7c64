/** resilient-watcher as it is built here, with its defaults: a watcher for each file, or one for a set. ../../../../docs/watching.md */
import { createHash } from 'node:crypto';

import { ResilientWatcher } from 'resilient-watcher';

const [, ...paths] = process.argv.slice(2);
const sha256 = (contents) => createHash('sha256').update(Buffer.concat(contents)).digest('hex');
const start = (target, contentsOf) => {
  const watcher = new ResilientWatcher(target);
  watcher.on('change', ({ current }) => {
    const contents = contentsOf(current);
    if (contents.every(Boolean)) console.log(sha256(contents));
  });
  watcher.on('error', (error) => console.error(error.message));
  return watcher.start();
};

if (process.env.WATCH_SET) await start(paths, ({ files }) => paths.map((path) => files.get(path)?.content));
else await Promise.all(paths.map((path) => start(path, ({ content }) => [content])));
