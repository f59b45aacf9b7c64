/** What a volume looks like, and the habits and faults of kubelet. */
import fs from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { beforeEach, describe, expect, test } from 'vitest';
import { KubeletVolume, type KubeletVolumeOptions, type VolumeFiles } from 'resilient-watcher/testing';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { described, file, hidden, names, read, renameSwap, revision, volumeAt } from './described-volume.js';

let home: string;

beforeEach(() => {
  home = temporaryDirectory();
});

describe('fsGroup', () => {
  const gid = process.getgid?.() ?? 0;
  const group = (...paths: string[]): string[] => paths.flatMap((path) => [`chown ${path}`, `chmod ${path}`]);

  test('gives everything in the volume, the old revision too, and the volume itself to the group before the swap', () => {
    const volume = volumeAt(join(home, 'volume'), { fsGroup: gid });
    expect(described(volume, volume.steps({ a: '1', gone: '1' }))).toEqual([
      'mkdir .',
      ...revision('@1'),
      ...file('@1/a'),
      ...file('@1/gone'),
      ...group('@1/a', '@1/gone', '@1', '.'),
      ...renameSwap,
      'symlink a',
      'symlink gone',
    ]);
    expect(described(volume, volume.steps({ a: '2' }))).toEqual([
      ...revision('@2'),
      ...file('@2/a'),
      ...group('@2/a', '@2'),
      'chown ..data',
      ...group('@1/a', '@1/gone', '@1'),
      'chown a',
      'chown gone',
      ...group('.'),
      ...renameSwap,
      'unlink gone',
      'unlink @1/a',
      'unlink @1/gone',
      'rmdir @1',
    ]);
    expect(described(volume, volume.steps({ a: '2' }))).toEqual([]);
  });

  test('sets the modes that kubelet sets', () => {
    const directory = join(home, 'volume');
    fs.mkdirSync(directory);
    fs.chmodSync(directory, 0o777);
    const volume = volumeAt(directory, { fsGroup: gid });
    volume.publish({ a: { data: '1', mode: 0o400 } });
    const modeOf = (path: string): number => fs.statSync(path).mode & 0o7777;
    expect(modeOf(volume.path('a'))).toBe(0o440);
    expect(modeOf(volume.path('..data'))).toBe(0o2755);
    expect(modeOf(directory)).toBe(0o2777);
  });

  test('has to be the number of a group', () => {
    expect(() => new KubeletVolume(home, { fsGroup: -1 })).toThrow('"fsGroup" must be');
    expect(() => new KubeletVolume(home, { fsGroup: '1' as never })).toThrow(TypeError);
  });
});

describe('the layout', () => {
  test('is links to ..data, a link to a timestamped directory, and files of the wanted modes', () => {
    const volume = volumeAt(home);
    const bytes = Uint8Array.of(0, 255, 10);
    const result = volume.publish({
      text: 'é',
      'd/bytes': bytes,
      key: { data: 'k', mode: 0o400 },
      open: { data: '', mode: 0o666 },
    });

    expect(result).toEqual({ changed: true, revision: '..2024_01_01_00_00_00.1' });
    expect(volume.revision).toBe(result.revision);
    expect(fs.readlinkSync(volume.path('..data'))).toBe(result.revision);
    expect(fs.readlinkSync(volume.path('text'))).toBe('..data/text');
    expect(fs.readlinkSync(volume.path('d'))).toBe('..data/d');
    expect(fs.readFileSync(volume.path('text'), 'utf8')).toBe('é');
    expect(new Uint8Array(fs.readFileSync(volume.path('d/bytes')))).toEqual(bytes);
    const mode = (path: string): number => fs.statSync(volume.path(path)).mode & 0o7777;
    expect(['..data', 'text', 'key', 'open'].map(mode)).toEqual([0o755, 0o644, 0o400, 0o666]);
  });

  test('when a step is yielded, its call has been made, and no later one', () => {
    const volume = volumeAt(home);
    volume.publish({ a: 'old' });
    const seen: unknown[] = [];
    for (const { name } of volume.steps({ a: 'new' })) {
      if (name === 'open' || name === 'write' || name === 'rename') {
        const written = fs.readFileSync(volume.path('..2024_01_01_00_00_00.2/a'), 'utf8');
        seen.push([name, written, fs.readFileSync(volume.path('a'), 'utf8')]);
      }
    }
    expect(seen).toEqual([
      ['open', '', 'old'],
      ['write', 'new', 'old'],
      ['rename', 'new', 'new'],
    ]);
  });

  test('a name that is taken is not used for a revision', () => {
    fs.mkdirSync(join(home, '..2024_01_01_00_00_00.1'));
    expect(volumeAt(home).publish({ a: '1' }).revision).toBe('..2024_01_01_00_00_00.2');
  });

  test('remove() deletes it whole, and the next publish starts over', () => {
    const volume = volumeAt(join(home, 'volume'));
    volume.publish({ a: '1' });
    volume.remove();
    volume.remove();
    expect(fs.existsSync(volume.directory)).toBe(false);
    expect(volume.revision).toBeUndefined();
    volume.publish({ a: '1' });
    expect(read(volume.directory)).toEqual({ a: '1' });
  });
});

describe('the habits and faults of kubelet', () => {
  test('an update that changes nothing makes missing links in the newer order only', () => {
    for (const [links, repaired] of [
      ['after', ['symlink a']],
      ['before', []],
    ] as const) {
      const volume = volumeAt(join(home, links), { links });
      volume.publish({ a: '1', b: '2' });
      fs.unlinkSync(volume.path('a'));
      expect(described(volume, volume.steps({ a: '1', b: '2' }))).toEqual(repaired);
    }
  });

  test('a foreign file on the name of a key is left alone', () => {
    const volume = volumeAt(home);
    fs.writeFileSync(volume.path('a'), 'foreign');
    volume.publish({ a: '1' });
    expect(fs.readFileSync(volume.path('a'), 'utf8')).toBe('foreign');
  });

  test('a stale ..data_tmp fails every update, cleanly, until it is removed', () => {
    const volume = volumeAt(home);
    volume.publish({ a: '1' });
    for (const { path } of volume.steps({ a: '2' })) if (path.endsWith('_tmp')) break;
    const afterCrash = hidden(volume);

    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect(() => volume.publish({ a: '3' })).toThrow(expect.objectContaining({ code: 'EEXIST' }) as Error);
      expect(hidden(volume)).toEqual(afterCrash);
    }
    expect(read(volume.directory)).toEqual({ a: '1' });
    fs.unlinkSync(volume.path('..data_tmp'));
    expect(volume.publish({ a: '3' }).changed).toBe(true);
    expect(read(volume.directory)).toEqual({ a: '3' });
  });

  test('a failed swap takes its revision and ..data_tmp away', () => {
    const volume = volumeAt(home, { swap: 'remove' });
    volume.publish({ a: '1' });
    const squat = (): void => {
      for (const { name, path } of volume.steps({ a: '2' })) {
        if (name === 'unlink' && path === volume.path('..data')) fs.symlinkSync('elsewhere', path);
      }
    };
    expect(squat).toThrow(expect.objectContaining({ code: 'EEXIST', syscall: 'symlink' }) as Error);
    expect(hidden(volume)).toEqual(['..2024_01_01_00_00_00.1', '..data']);
  });

  test('a vanished link that is gone already is passed over', () => {
    const volume = volumeAt(home);
    volume.publish({ a: '1', b: '2' });
    fs.unlinkSync(volume.path('a'));
    volume.publish({});
    expect(names(home)).toEqual(['..2024_01_01_00_00_00.2', '..data']);
  });

  test('what a crash left to remove after the swap stays for good', () => {
    const volume = volumeAt(home);
    volume.publish({ a: '1', b: '2' });
    for (const { name } of volume.steps({ a: '1' })) if (name === 'rename') break;
    volume.publish({ a: '3' });
    expect(names(home)).toEqual(['..2024_01_01_00_00_00.1', '..2024_01_01_00_00_00.3', '..data', 'a', 'b']);
    expect(read(home)).toEqual({ a: '3' });
  });

  test('a ..data that is no link stops it before anything is written', () => {
    const volume = volumeAt(home);
    fs.mkdirSync(volume.path('..data'));
    expect(() => volume.publish({ a: '1' })).toThrow(expect.objectContaining({ code: 'EINVAL' }) as Error);
    expect(names(home)).toEqual(['..data']);
  });

  test.each(['../outside', '..', '.'])('what a foreign ..data points to, %s, is never removed', (target) => {
    const outside = join(home, 'outside');
    fs.mkdirSync(outside);
    const volume = volumeAt(join(home, 'volume'));
    fs.mkdirSync(volume.directory);
    fs.symlinkSync(target, volume.path('..data'));
    volume.publish({ a: '1' });
    expect(fs.existsSync(outside)).toBe(true);
    expect(fs.readFileSync(volume.path('a'), 'utf8')).toBe('1');
  });
});

describe('wrong input', () => {
  test.each([
    ['', 'must name a file'],
    ['.', 'must name a file'],
    ['/a', 'must be a relative path'],
    ['a/../b', 'must not contain ".."'],
    ['..a', 'must not begin with ".."'],
    ['./..a', 'must not begin with ".."'],
    ['a\0', 'must not contain a NUL byte'],
    ['é'.repeat(128), 'must have elements of at most 255 bytes'],
    ['a/'.repeat(2048) + 'a', 'must be at most 4096 bytes'],
  ])('the key %j is refused at once', (key, why) => {
    const volume = volumeAt(join(home, 'volume'));
    expect(() => volume.steps({ [key]: '' })).toThrow(why);
    expect(fs.existsSync(volume.directory)).toBe(false);
  });

  test('a key may start with a dot, and hold two of them further on', () => {
    const files = { '.a': '1', 'b/..c': '2', 'd..': '3' };
    volumeAt(home).publish(files);
    expect(read(home)).toEqual(files);
  });

  test('a Map is as good as an object, so that what was read can be written', () => {
    const volume = volumeAt(home);
    volume.publish(new Map([['a', Buffer.from('1')]]));
    expect(read(home)).toEqual({ a: '1' });
  });

  test.each<[string, unknown]>([
    ['a Set', new Set(['a'])],
    ['an array', ['a']],
    ['nothing', undefined],
    ['null', null],
    ['text', 'a'],
    ['an object of a class', new Date()],
  ])('%s in place of the files is refused, and what is published stays', (_, files) => {
    const volume = volumeAt(home);
    volume.publish({ a: '1' });
    expect(() => volume.publish(files as VolumeFiles)).toThrow(TypeError);
    expect(() => volume.publish(files as VolumeFiles)).toThrow('must be a plain object or a Map');
    expect(read(home)).toEqual({ a: '1' });
  });

  test('the directory may be a URL', () => {
    new KubeletVolume(pathToFileURL(home)).publish({ a: '1' });
    expect(read(home)).toEqual({ a: '1' });
  });

  test('a wrong value is refused by its key and never shown', () => {
    const volume = volumeAt(home);
    const wrong = (file: unknown) => () => volume.publish({ token: file } as VolumeFiles);
    for (const file of [
      4711,
      null,
      undefined,
      { data: 4711 },
      ['4711'],
      { data: '4711', mode: 0o10000 },
      { data: '4711', mode: 755 },
    ]) {
      expect(wrong(file)).toThrow(TypeError);
      expect(wrong(file)).toThrow(/^KubeletVolume: key "token" (?!.*4711)/);
    }
  });

  test.each([
    ['', {}, 'directory'],
    ['x', { swap: 'move' }, '"swap" must be one of "rename", "remove", got "move"'],
    ['x', { links: 'never' }, '"links" must be one of "after", "before", got "never"'],
    ['x', { swop: 'rename' }, 'unknown option "swop"'],
  ])('new KubeletVolume(%j, %j) throws', (directory, options, why) => {
    expect(() => new KubeletVolume(directory, options as KubeletVolumeOptions)).toThrow(why);
  });
});

test.runIf(process.platform === 'linux')(
  'a revision into which somebody put names that are not UTF-8 is removed whole',
  () => {
    const volume = volumeAt(home);
    const { revision } = volume.publish({ key: 'old' });
    const inRevision = (...bytes: number[]): Buffer =>
      Buffer.concat([Buffer.from(`${volume.path(revision)}/`), Buffer.from(bytes)]);
    fs.mkdirSync(inRevision(0xff));
    fs.writeFileSync(inRevision(0xff, 0x2f, 0xfe), 'stray');
    volume.publish({ key: 'new' });
    expect(hidden(volume)).toEqual([volume.revision, '..data']);
  },
);
