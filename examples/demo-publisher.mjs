/**
 * The other process of the demo: publishes as kubelet does, and reports when. `process.hrtime` is the same clock in all
 * processes of a machine.
 */
import { KubeletVolume } from 'resilient-watcher/testing';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => Number(process.hrtime.bigint()) / 1e6;

let edition = 0;

/**
 * Publishes one system call after another, with a second file that is new each time. Returns when the call began
 * that makes the new content visible.
 */
async function publish(directory, policy, { swap = 'rename', gapMs = 0 } = {}) {
  const volume = new KubeletVolume(directory, { swap });
  const data = volume.path('..data');
  let visibleAt;
  const steps = volume.steps({ 'policy.yaml': `allow: ${policy}\n`, edition: String(++edition) });
  for (;;) {
    const before = now();
    const step = steps.next();
    if (step.done) return visibleAt;
    const { name, path } = step.value;
    if (path === data && name !== 'unlink') visibleAt = before;
    if (path === data && name === 'unlink') await sleep(gapMs);
  }
}

const commands = {
  publish: ({ directory, policy, ...how }) => publish(directory, policy, how),
  remove({ directory }) {
    const at = now();
    new KubeletVolume(directory).remove();
    return at;
  },
};

process.on('SIGINT', () => {}); // the demo handles Ctrl-C and ends this process
process.on('message', async ({ command, ...parameters }) => {
  process.send(await commands[command](parameters));
});
