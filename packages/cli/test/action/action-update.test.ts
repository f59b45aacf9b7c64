import { mergeUpdates, updateOf, type ActionUpdate, type PathUpdate } from '@resilient-watcher/cli/action';
import { ResilientWatcher } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

const update = (path: string, keys: Partial<PathUpdate>): ActionUpdate => ({
  paths: [{ path, added: [], changed: [], removed: [], revision: null, ...keys }],
  cause: 'event',
});

test('a change becomes the update of its path, with the revision', async () => {
  const volume = new KubeletVolume(temporaryDirectory());
  volume.publish({ a: '1' });
  const watcher = new ResilientWatcher(volume.directory);
  onTestFinished(() => watcher.close());
  const updates: ActionUpdate[] = [];
  watcher.on('change', (change) => void updates.push(updateOf(change, watcher.path)));
  await watcher.start();
  expect(updates).toEqual([
    {
      paths: [{ path: volume.directory, added: ['a'], changed: [], removed: [], revision: volume.revision }],
      cause: 'start',
    },
  ]);
});

test('an update that was not handled is merged with the next one: each key once, as it is now', () => {
  const earlier = update('/a', { added: ['new', 'brief'], changed: ['c'], removed: ['back'], revision: '1' });
  const later = update('/a', { added: ['back'], changed: ['new'], removed: ['brief', 'c'], revision: '2' });
  expect(mergeUpdates(earlier, later)).toEqual(
    update('/a', { added: ['new'], changed: ['back'], removed: ['c'], revision: '2' }),
  );
  expect(mergeUpdates(earlier, update('/b', { added: ['x'] })).paths.map(({ path }) => path)).toEqual([
    '/a',
    '/b',
  ]);
});
