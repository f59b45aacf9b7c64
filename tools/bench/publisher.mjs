/**
 * The process that publishes, as kubelet is one. It stamps each swap with CLOCK_MONOTONIC, which all processes of a
 * machine share, at the moment just before the `rename` that retargets `..data` is called.
 */
import { now, publish } from './stamped-swap.mjs';

/** A usual size of a configuration file, bytes. */
const CONTENT_BYTES = 1_024;

function files(keys, sequence, changed = keys) {
  const others = new Set(keys);
  for (const key of changed) others.delete(key);
  const text = (number) =>
    `sequence: ${number}\n`.padEnd(CONTENT_BYTES, '# a line of a configuration file\n');
  return Object.fromEntries(keys.map((key) => [key, text(others.has(key) ? 0 : sequence)]));
}

const until = (momentNs) =>
  new Promise((resolve) => setTimeout(resolve, Math.max(1, (momentNs - now()) / 1e6)));

const commands = {
  make({ directories, keys }) {
    for (const directory of directories) publish(directory, files(keys, 0));
  },

  /** One swap; `changed`: the keys with new contents, default all. */
  once({ directory, keys, changed, sequence }) {
    return publish(directory, files(keys, sequence, changed));
  },

  /** `count` swaps of each directory, one every `periodMs`, the directories taking turns within the period. */
  async series({ directories, keys, periodMs, count }) {
    const stamps = Object.fromEntries(directories.map((directory) => [directory, []]));
    const slotNs = (periodMs * 1e6) / directories.length;
    let next = now();
    for (let sequence = 1; sequence <= count; sequence += 1) {
      for (const directory of directories) {
        await until(next);
        stamps[directory].push(publish(directory, files(keys, sequence)));
        next += slotNs;
      }
    }
    return stamps;
  },
};

process.on('message', async ({ command, ...parameters }) => {
  process.send((await commands[command](parameters)) ?? null);
});
