/**
 * Publishes sealed revisions of a volume as fast as it can: every key of revision N holds `seal(N)`.
 *
 *     node publish.mjs DIRECTORY '{"swap":"rename"}' FIRST LAST KEY...
 */
import { KubeletVolume } from 'resilient-watcher/testing';

import { seal } from './sealed.mjs';

const [directory, options, first, last, ...keys] = process.argv.slice(2);
const volume = new KubeletVolume(directory, JSON.parse(options));
for (let number = Number(first); number <= Number(last); number += 1) {
  volume.publish(Object.fromEntries(keys.map((key) => [key, seal(number)])));
}
