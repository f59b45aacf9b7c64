/** Sequences of a key of a ConfigMap volume. */
import type { Sequence } from '../sequence.js';
import {
  updates,
  burst,
  withGap,
  recreated,
  removeVolume,
  renameAncestor,
  missing,
  sameContent,
  backAndForth,
  keyComesAndGoes,
  keyIsAdded,
  changesWhileStarting,
  crash,
  subPath,
  neighborChanges,
  slowKubelet,
  becomesVolume,
  files,
} from './volume-events.js';

export const volumeSequences: readonly Sequence[] = [
  {
    name: 'swap',
    says: 'Three updates by one rename of `..data` each: every update on Linux.',
    run: updates(3),
  },
  {
    name: 'swap-many',
    says: 'Twelve updates, one after the other: a watch that ends with the first revision sees one.',
    run: updates(12),
  },
  {
    name: 'gap-0ms',
    says: '`..data` is removed and linked again at once: kubelet on Windows, `ln -sfn`.',
    run: withGap(0),
  },
  {
    name: 'gap-20ms',
    says: '`..data` is missing for 20 ms: kubelet on a busy Windows node.',
    run: withGap(20),
  },
  {
    name: 'gap-400ms',
    says: '`..data` is missing for 400 ms: a publisher that was interrupted between its two calls.',
    run: withGap(400),
  },
  {
    name: 'burst-0ms',
    says: 'Ten updates without a pause: a controller that writes often.',
    run: burst(10, 0),
  },
  { name: 'burst-20ms', says: 'Thirty updates, 20 ms apart; the last one counts.', run: burst(30, 20) },
  {
    name: 'burst-100ms',
    says: 'Fifteen updates, 100 ms apart: longer than most debounce times.',
    run: burst(15, 100),
  },
  {
    name: 'same-content',
    says: 'Another key of the ConfigMap changes five times, so the revision changes but the content does not.',
    run: sameContent,
  },
  { name: 'a-b-a', says: 'A change is rolled back and repeated, each state held.', run: backAndForth(true) },
  { name: 'a-b-a-at-once', says: 'A change is rolled back at once, three times.', run: backAndForth(false) },
  {
    name: 'key-comes-and-goes',
    says: 'The key is removed from the ConfigMap and added again.',
    run: keyComesAndGoes,
  },
  {
    name: 'key-added',
    says: 'The key is added to the ConfigMap while the program runs: its link comes after the swap.',
    run: keyIsAdded('after'),
  },
  {
    name: 'key-added-before-swap',
    says: 'The same with an older kubelet or the Secrets Store CSI driver: the link dangles before the swap.',
    run: keyIsAdded('before'),
  },
  {
    name: 'volume-missing',
    says: 'The volume does not exist at the start: `optional: true`.',
    run: missing('volume'),
  },
  {
    name: 'ancestors-missing',
    says: 'Neither the volume nor the two directories above it exist at the start.',
    run: missing('late', 'later', 'volume'),
  },
  {
    name: 'volume-recreated',
    says: 'The volume is removed, and created again after 400 ms: a CSI driver that restarts.',
    run: recreated(400, removeVolume),
  },
  {
    name: 'volume-recreated-at-once',
    says: 'The volume is removed and created again without a pause.',
    run: recreated(0, removeVolume),
  },
  {
    name: 'ancestor-renamed',
    says: 'A directory two levels above the volume is renamed, and a new one takes its place after 400 ms.',
    run: recreated(400, renameAncestor),
  },
  {
    name: 'ancestor-replaced',
    says: 'A directory two levels above the volume is replaced without a pause: a release that is deployed.',
    run: recreated(0, renameAncestor),
  },
  {
    name: 'key-in-directory',
    says: 'The key is projected to `conf.d/app.yaml`, below a directory that is a link (`items.path`).',
    run: updates(3, { key: 'conf.d/app.yaml' }),
  },
  {
    name: 'sub-path',
    says: 'The key is mounted with `subPath`: Kubernetes never updates it, and nothing else may be shown.',
    needs: ['linux', 'mount'],
    run: subPath,
  },
  {
    name: 'crash-before-swap',
    says: 'Kubelet is killed before the swap, three times, and leaves half a revision behind.',
    run: crash('write'),
  },
  {
    name: 'old-revisions-kept',
    says: 'The old revisions stay, so a path that was resolved once can be read forever.',
    run: updates(3, { keepOldRevisions: true }),
  },
  {
    name: 'slow-kubelet',
    says: '30 ms pass between any two system calls: a node under load.',
    run: slowKubelet,
  },
  {
    name: 'neighbor-volume',
    says: 'Another volume next to this one changes before each update.',
    run: neighborChanges,
  },
  {
    name: 'many-keys',
    says: 'The volume has 200 keys, and one of them is followed.',
    run: updates(3, files(200)),
  },
  {
    name: 'large-key',
    says: 'The key has 900 KiB, near the limit of a ConfigMap.',
    contentOf: (text) => text.repeat(Math.ceil((900 * 1_024) / text.length)),
    run: updates(3),
  },
  {
    name: 'changes-while-starting',
    says: 'Sixty updates while the program starts: changes between its first read and its watch.',
    run: changesWhileStarting,
  },
  {
    name: 'becomes-volume',
    says: 'A plain file is replaced by the link of a volume: a ConfigMap is mounted over a default configuration.',
    run: becomesVolume,
  },
];
