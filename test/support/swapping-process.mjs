/** Swaps a certificate and its key as fast as it can: `swapping-process.mjs VOLUME TIMES`. */
import { AtomicVolume } from 'resilient-watcher';

const [directory, times] = process.argv.slice(2);
const volume = new AtomicVolume(directory, { durability: 'none' });
for (let count = 1; count <= Number(times); count += 1) {
  await volume.write({ 'tls.crt': `${count}`, 'tls.key': `${count}` });
}
