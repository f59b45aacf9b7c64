/** `snapshot()` and `readVolume()`: what is there now. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { readVolume, ResilientWatcher, TargetError } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

describe('snapshot() and readVolume()', () => {
  test('return the current state of any kind of target, started or not', async () => {
    const root = temporaryDirectory();
    const volume = new KubeletVolume(join(root, 'tls'));
    volume.publish({ crt: 'c1', key: 'k1' });
    const expected = { kind: 'volume', revision: volume.revision };
    expect(await readVolume(volume.directory)).toMatchObject(expected);
    const whole = await new ResilientWatcher(volume.directory).snapshot();
    expect(whole).toMatchObject(expected);
    expect([...whole.files].map(([key, { content }]) => [key, String(content)])).toEqual([
      ['crt', 'c1'],
      ['key', 'k1'],
    ]);
    const group = ['crt', 'key'].map((key) => volume.path(key));
    const inOrder = await new ResilientWatcher(group).snapshot();
    expect(inOrder.kind).toBe('group');
    expect((await new ResilientWatcher(group.reverse()).snapshot()).digest).toBe(inOrder.digest);
    volume.publish({ crt: 'c1', key: 'k2' });
    expect((await new ResilientWatcher(group).snapshot()).digest).not.toBe(inOrder.digest);
    expect((await new ResilientWatcher(volume.path('crt')).snapshot()).content?.toString()).toBe('c1');
    expect((await new ResilientWatcher(join(root, 'nothing')).snapshot()).kind).toBe('missing');
    expect((await readVolume(root)).files.size).toBe(0);
  });

  test.each<[string, (path: string) => void, string]>([
    ['nothing', () => undefined, 'ERR_TARGET_MISSING'],
    ['a file', (path) => writeFileSync(path, ''), 'ERR_TARGET_PATH'],
    ['a loop', (path) => symlinkSync('tls', path), 'ERR_TARGET_PATH'],
    [
      'a path that goes through a file',
      (path) => writeFileSync(dirname(path) + '/file', ''),
      'ERR_TARGET_MISSING',
    ],
  ])('of %s fail with a code', async (_, prepare, code) => {
    const path = join(temporaryDirectory(), 'tls');
    prepare(path);
    const failure: unknown = await readVolume(path).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TargetError);
    expect(failure).toMatchObject({ code, message: expect.stringContaining(path) as string });
  });
});
