/** The system calls of kubelet, one by one. */
import { join } from 'node:path';

import { beforeEach, describe, expect, test } from 'vitest';
import type { KubeletVolumeOptions, VolumeFiles } from 'resilient-watcher/testing';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { described, file, removeSwap, renameSwap, revision, volumeAt } from './described-volume.js';

let home: string;

beforeEach(() => {
  home = temporaryDirectory();
});

interface Sequence {
  readonly title: string;
  readonly options?: KubeletVolumeOptions;
  readonly published?: VolumeFiles;
  readonly files: VolumeFiles;
  readonly steps: readonly string[];
}

const sequences: readonly Sequence[] = [
  {
    title: 'a first publish makes the directory, a revision, the link to it and the links of the keys',
    files: { a: '1', b: '2' },
    steps: [
      'mkdir .',
      ...revision('@1'),
      ...file('@1/a'),
      ...file('@1/b'),
      ...renameSwap,
      'symlink a',
      'symlink b',
    ],
  },
  {
    title: 'a first publish of nothing still makes ..data',
    files: {},
    steps: ['mkdir .', ...revision('@1'), ...renameSwap],
  },
  {
    title: 'a first publish with links before the swap',
    options: { links: 'before' },
    files: { a: '1' },
    steps: ['mkdir .', ...revision('@1'), ...file('@1/a'), 'symlink a', ...renameSwap],
  },
  {
    title: 'a first publish with a remove swap has nothing to remove',
    options: { swap: 'remove' },
    files: {},
    steps: ['mkdir .', ...revision('@1'), 'symlink ..data_tmp', 'symlink ..data', 'unlink ..data_tmp'],
  },
  {
    title: 'an update swaps by rename and removes the old revision, one entry a step',
    published: { a: '1', b: '2' },
    files: { a: '1', b: '3' },
    steps: [
      ...revision('@2'),
      ...file('@2/a'),
      ...file('@2/b'),
      ...renameSwap,
      'unlink @1/a',
      'unlink @1/b',
      'rmdir @1',
    ],
  },
  {
    title: 'an update with a remove swap leaves a gap without ..data',
    options: { swap: 'remove' },
    published: { a: '1' },
    files: { a: '2' },
    steps: [...revision('@2'), ...file('@2/a'), ...removeSwap, 'unlink @1/a', 'rmdir @1'],
  },
  {
    title: 'an update may keep the old revision',
    options: { keepOldRevisions: true },
    published: { a: '1' },
    files: { a: '2' },
    steps: [...revision('@2'), ...file('@2/a'), ...renameSwap],
  },
  {
    title: 'an added key is linked after the swap',
    published: { a: '1' },
    files: { a: '1', b: '2' },
    steps: [
      ...revision('@2'),
      ...file('@2/a'),
      ...file('@2/b'),
      ...renameSwap,
      'symlink b',
      'unlink @1/a',
      'rmdir @1',
    ],
  },
  {
    title: 'an added key is linked before the swap in the older order',
    options: { links: 'before' },
    published: {},
    files: { b: '2' },
    steps: [...revision('@2'), ...file('@2/b'), 'symlink b', ...renameSwap, 'rmdir @1'],
  },
  {
    title: 'a removed key loses its link after the swap',
    published: { a: '1', b: '2' },
    files: { a: '1' },
    steps: [
      ...revision('@2'),
      ...file('@2/a'),
      ...renameSwap,
      'unlink b',
      'unlink @1/a',
      'unlink @1/b',
      'rmdir @1',
    ],
  },
  {
    title: 'equal contents do nothing, whatever the mode',
    published: { a: '1', 'd/x': '2' },
    files: { 'd//x': Buffer.from('2'), a: { data: '1', mode: 0o600 } },
    steps: [],
  },
  {
    title: 'nested keys share the link of their first name',
    files: { 'd/x': '1', 'd/e/y': '2' },
    steps: [
      'mkdir .',
      ...revision('@1'),
      'mkdir @1/d',
      ...file('@1/d/x'),
      'mkdir @1/d/e',
      ...file('@1/d/e/y'),
      ...renameSwap,
      'symlink d',
    ],
  },
  {
    title: 'a removed nested key keeps the link its neighbour needs',
    published: { 'd/x': '1', 'd/y': '2' },
    files: { 'd/x': '1' },
    steps: [
      ...revision('@2'),
      'mkdir @2/d',
      ...file('@2/d/x'),
      ...renameSwap,
      'unlink @1/d/x',
      'unlink @1/d/y',
      'rmdir @1/d',
      'rmdir @1',
    ],
  },
  {
    title: 'the last nested key takes the link with it',
    published: { 'd/x': '1' },
    files: {},
    steps: [...revision('@2'), ...renameSwap, 'unlink d', 'unlink @1/d/x', 'rmdir @1/d', 'rmdir @1'],
  },
];

describe('the exact steps', () => {
  test.each(sequences)('$title', ({ options, published, files, steps }) => {
    const volume = volumeAt(join(home, 'volume'), options);
    if (published) volume.publish(published);
    expect(described(volume, volume.steps(files))).toEqual(steps);
  });

  test('missing parents of the directory are made one by one', () => {
    const volume = volumeAt(join(home, 'no', 'such', 'volume'));
    expect(described(volume, volume.steps({})).slice(0, 3)).toEqual(['mkdir ../..', 'mkdir ..', 'mkdir .']);
  });
});
