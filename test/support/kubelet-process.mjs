/**
 * A kubelet in a process of its own: `kubelet-process.mjs VOLUME SWAP`. Publishes the files of each message, and
 * answers when that is done.
 */
import { KubeletVolume } from 'resilient-watcher/testing';

const [directory, swap] = process.argv.slice(2);
const volume = new KubeletVolume(directory, { swap });
process.on('message', (files) => process.send(volume.publish(files).revision));
