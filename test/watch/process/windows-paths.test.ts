import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { beforeAll, describe, expect, test } from 'vitest';

/** Spellings of one file. */
const ON_C = [
  'C:\\site\\app.env',
  'C:/site/app.env',
  'c:\\site\\app.env',
  'C:\\site/app.env',
  'C:\\site\\.\\sub\\..\\app.env',
  'C:app.env',
  'app.env',
  './app.env',
  '.\\app.env',
  '\\site\\app.env',
  '/site/app.env',
  '\\\\?\\C:\\site\\app.env',
  '//?/C:/site/app.env',
  'file:///C:/site/app.env',
];
const ON_SHARE = [
  '\\\\server\\share\\app.env',
  '//server/share/app.env',
  '\\\\?\\UNC\\server\\share\\app.env',
];

/** What links in `C:\links` contain, by their names. */
const LINKS = {
  absolute: String.raw`C:\site\app.env`,
  long: String.raw`\\?\c:\site\app.env`,
  rooted: String.raw`\site\app.env`,
  relative: String.raw`..\site\app.env`,
  'far-above': String.raw`..\..\..\site\app.env`,
  share: String.raw`\\server\share\app.env`,
  directory: 'C:\\site\\',
};

const LINKED = Object.keys(LINKS).map(
  (name) => `C:\\links\\${name}${name === 'directory' ? '\\app.env' : ''}`,
);

/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-member-access -- what the program has printed */
let told: Record<string, any>;

beforeAll(() => {
  const root = mkdtempSync(join(tmpdir(), 'drives-'));
  const program = fileURLToPath(new URL('windows-program.mjs', import.meta.url));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write('c/site/app.env', 'LEVEL=info\n');
  write('c/site/sub/deep/x', '');
  write('c/conf/a.yaml', 'a: 1\r\n');
  write('d/app.env', 'LEVEL=info\n');
  write('share/app.env', 'LEVEL=share\n');
  mkdirSync(join(root, 'c/links'));
  for (const [name, target] of Object.entries(LINKS)) {
    symlinkSync(target, join(root, 'c/links', name));
  }
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [program, root, JSON.stringify([...ON_C, ...ON_SHARE, 'D:\\app.env', ...LINKED])],
    { encoding: 'utf8' },
  );
  expect(stderr).toBe('');
  told = JSON.parse(stdout) as Record<string, any>;
  return () => rmSync(root, { recursive: true, force: true });
});

describe('on Windows', () => {
  test('a file is found by every spelling of its path, and has one path', () => {
    const { spellings } = told;
    const onePath = { told: 'C:\\site\\app.env', path: 'C:\\site\\app.env', realPath: 'C:\\site\\app.env' };
    const onDrive = { kind: 'file', content: 'LEVEL=info\n', name: 'app.env', keys: ['app.env'] };
    const onC = { ...onDrive, ...onePath };
    for (const path of ON_C) {
      expect([path, spellings[path]]).toEqual([path, onC]);
    }
    expect(spellings['D:\\app.env']).toMatchObject({ ...onDrive, path: 'D:\\app.env' });
    for (const path of ON_SHARE) {
      const at = '\\\\server\\share\\app.env';
      expect([path, spellings[path]]).toEqual([
        path,
        { ...onDrive, content: 'LEVEL=share\n', told: at, path: at, realPath: at },
      ]);
    }
  });

  test('links are followed, whatever the form of their target', () => {
    const { spellings } = told;
    for (const name of ['absolute', 'long', 'rooted', 'relative', 'far-above']) {
      expect(spellings[`C:\\links\\${name}`]).toEqual({
        kind: 'file',
        content: 'LEVEL=info\n',
        told: `C:\\links\\${name}`,
        path: `C:\\links\\${name}`,
        name,
        realPath: 'C:\\site\\app.env',
        keys: [name],
      });
    }
    expect(spellings['C:\\links\\share'].realPath).toBe('\\\\server\\share\\app.env');
    expect(spellings['C:\\links\\directory\\app.env']).toMatchObject({
      content: 'LEVEL=info\n',
      realPath: 'C:\\site\\app.env',
    });
  });

  test('a tree has keys with slashes, and paths of the platform', () => {
    const { path, realPath, files, keys, removed, outside } = told['tree'];
    expect([path, realPath]).toEqual(['C:\\site\\', 'C:\\site']);
    expect(files).toEqual([
      ['app.env', 'C:\\site\\app.env', 'C:\\site\\app.env'],
      ['sub/deep/x', 'C:\\site\\sub\\deep\\x', 'C:\\site\\sub\\deep\\x'],
    ]);
    expect(keys).toEqual(['sub/new.env']);
    expect(removed).toEqual(['app.env', 'sub/new.env']);
    expect(outside.message).toContain(String.raw`Cannot remove "D:\app.env": it is not below "C:\site\"`);
  });

  test('the keys of a group are its paths as they were given', () => {
    const { path, keys, added, twice } = told['group'];
    expect(path).toBe('C:\\site\\app.env, D:\\app.env');
    expect(keys).toEqual(['C:\\site\\app.env', 'D:\\app.env']);
    expect(added).toEqual([...keys, '//server/share/app.env']);
    expect(twice.message).toBe(String.raw`Cannot add "C:\site\app.env": it is already in the group`);
  });

  test('a drive and a share can be watched; a drive that does not exist is missing', () => {
    expect(told['drives']).toEqual({
      drive: ['D:\\', 'D:', ['app.env']],
      share: ['\\\\server\\share', 'share', ['\\\\server\\share\\app.env']],
      missing: ['missing', 'Z:\\a\\b', 'watching'],
    });
  });

  test('what happens behind a link is an event', () => {
    expect(told['events']).toEqual(['LEVEL=debug\n', 'C:\\site\\app.env']);
  });

  test('a backend of the application gets and gives paths of the platform', () => {
    expect(told['backend']).toEqual({
      changed: ['sub/new.env'],
      directories: ['C:\\', 'C:\\site', 'C:\\site\\sub', 'C:\\site\\sub\\deep'],
    });
  });

  test('files are written, and errors name paths of the platform', () => {
    expect(told['written'].map(({ path }: { path: string }) => path)).toEqual([
      'C:\\site\\out.txt',
      'C:\\site\\out.txt',
      'C:\\site\\app.env',
      'C:\\links\\directory\\linked.txt',
      '\\\\server\\share\\out.txt',
    ]);
    const refused = told['refused'] as { code: string; path: string; message: string }[];
    expect(refused.map(({ code, path }) => [code, path])).toEqual([
      ['ERR_WRITE_NO_DIRECTORY', 'C:\\none\\out.txt'],
      ['ERR_WRITE_NO_DIRECTORY', 'C:\\site\\app.env\\out.txt'],
      ['ERR_WRITE_NOT_FILE', 'C:\\site\\sub\\'],
      ['ERR_TARGET_MISSING', 'C:\\none'],
      ['ERR_TARGET_PATH', 'C:\\site\\app.env'],
    ]);
    for (const { path, message } of refused) expect(message).toContain(`"${path}"`);
  });

  test('configuration, certificates, volumes and diagnoses name paths of the platform', () => {
    expect(told['config'].values).toEqual({ LEVEL: 'warn', 'a.yaml': 'a: 1\r\n' });
    expect(told['config'].describe.map(({ source }: { source: string }) => source)).toEqual([
      'C:\\site\\app.env',
      'C:\\conf',
    ]);
    expect(told['missingConfig'].message).toContain(String.raw`C:\none.yaml: no such file`);
    expect(told['tls']).toBe(String.raw`There is no file "C:\none\tls.crt"`);
    expect(told['volume']).toBe('C:\\site\\volume');
    expect(told['diagnosis']).toBe('C:\\none');
  });
});
