/** Sequences of Secrets, tokens and pod certificates, which are volumes in memory. */
import { newBundle, newToken } from '../contents.js';
import { volumeKey, type KeyOptions } from '../publishers.js';
import { MEMORY } from '../requirement.js';
import type { Sequence } from '../sequence.js';
import type { Stage } from '../stage.js';
import { burst, recreated, removeVolume, updates } from './volume-events.js';

const inMemory = { needs: ['tmpfs'], parent: MEMORY } as const;

const SECRET: KeyOptions = { mode: 0o400 };
const TOKEN: KeyOptions = {
  key: 'token',
  mode: 0o600,
  rest: { 'ca.crt': 'authority', namespace: 'default' },
};
const CERTIFICATE: KeyOptions = { key: 'credentialbundle.pem', mode: 0o600, rest: {} };

async function secretBecomesLonger(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage, SECRET);
  await stage.start(path, publish);
  for (const length of [1, 100_000, 10]) {
    await stage.show(publish, stage.content().slice(-length).padEnd(length, '.'));
  }
}

/** The authority is rotated while the token stays, as in a cluster that changes its CA. */
async function authorityChanges(stage: Stage): Promise<void> {
  const { volume, path, publish } = volumeKey(stage, TOKEN);
  await stage.start(path, publish);
  const token = stage.content();
  await stage.show(publish, token);
  for (const authority of ['both authorities', 'new authority']) {
    volume.publish({ token: { data: token, mode: 0o600 }, 'ca.crt': authority, namespace: 'default' });
    await stage.pause(200);
  }
  await stage.show(publish);
}

export const secretSequences: readonly Sequence[] = [
  {
    name: 'secret-swap',
    says: 'Three updates of a Secret, mode 0400, on tmpfs.',
    ...inMemory,
    run: updates(3, SECRET),
  },
  {
    name: 'secret-burst',
    says: 'Twenty updates of a Secret, 10 ms apart.',
    ...inMemory,
    run: burst(20, 10, SECRET),
  },
  {
    name: 'secret-recreated',
    says: 'The volume is removed and created again: files on a new file system get the same inode numbers.',
    ...inMemory,
    run: recreated(200, removeVolume, SECRET),
  },
  {
    name: 'secret-length',
    says: 'The Secret becomes much longer and shorter from one update to the next.',
    ...inMemory,
    run: secretBecomesLonger,
  },
];

export const tokenSequences: readonly Sequence[] = [
  {
    name: 'token-rotation',
    says: 'A ServiceAccount token is rotated three times: every 48 minutes for tokens of an hour.',
    ...inMemory,
    contentOf: newToken,
    run: updates(3, TOKEN),
  },
  {
    name: 'token-authority',
    says: 'The CA beside the token changes twice, then the token changes.',
    ...inMemory,
    contentOf: newToken,
    run: authorityChanges,
  },
  {
    name: 'token-recreated',
    says: 'The volume of the token is created again: a pod sandbox that restarts.',
    ...inMemory,
    contentOf: newToken,
    run: recreated(200, removeVolume, TOKEN),
  },
];

export const certificateSequences: readonly Sequence[] = [
  {
    name: 'certificate-rotation',
    says: 'The credential bundle of a pod certificate is renewed three times, key and chain in one file.',
    ...inMemory,
    contentOf: newBundle,
    run: updates(3, CERTIFICATE),
  },
  {
    name: 'certificate-burst',
    says: 'Five bundles, 50 ms apart: kubelet restarts and renews again.',
    ...inMemory,
    contentOf: newBundle,
    run: burst(5, 50, CERTIFICATE),
  },
  {
    name: 'certificate-recreated',
    says: 'The volume of the bundle is removed and created again.',
    ...inMemory,
    contentOf: newBundle,
    run: recreated(200, removeVolume, CERTIFICATE),
  },
];
