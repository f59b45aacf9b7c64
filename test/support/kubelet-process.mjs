/**
 * Publishes on command. Each line of its standard input is one command, answered by one line when it is done:
 * `{ "swap": "rename", "revisions": [{ "key": "content" }, …] }` are published in a row, `{ "remove": true }` deletes
 * the volume. `node kubelet-process.mjs VOLUME`
 */
import { createInterface } from 'node:readline';

import { KubeletVolume } from 'resilient-watcher/testing';

const [directory] = process.argv.slice(2);
for await (const line of createInterface({ input: process.stdin })) {
  const { swap, revisions = [], remove = false } = JSON.parse(line);
  const volume = new KubeletVolume(directory, { swap });
  if (remove) volume.remove();
  for (const files of revisions) volume.publish(files);
  console.log('done');
}
