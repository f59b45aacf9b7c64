import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AtomicVolume, WriteError, atomicWriteFile, atomicWriteFileSync } from 'resilient-watcher';
import { expect, test } from 'vitest';
import { debris } from '../support/debris.js';
import { aDayLater } from '../support/later.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { isCrash, ScriptedFs, type Fault, type Script } from '../support/scripted-fs.js';

const faults: readonly Fault[] = ['error', 'error-after', 'crash', 'crash-after'];

/**
 * Runs it with the fault at call 0, 1, 2, … until a run is over before its fault. In `npm test` it is every `share`-th
 * call, beginning with another one for each fault, so that over the faults each call fails.
 */
async function atEveryCall(
  fault: Fault,
  share: number,
  run: (script: Script) => Promise<boolean>,
): Promise<number> {
  const step = rounds(share, 1);
  for (let at = faults.indexOf(fault) % step; ; at += step) if (!(await run({ at, fault }))) return at;
}

const OLD = 'old '.repeat(10);
const NEW = 'new '.repeat(20_000);

const scenarios = ['missing', 'there', 'link', 'dangling'] as const;

/** A directory with the file in one of these states, and where it really is. */
function arrange(scenario: (typeof scenarios)[number]): { directory: string; path: string; real: string } {
  const directory = temporaryDirectory();
  const path = join(directory, 'config.yaml');
  const real = scenario === 'link' || scenario === 'dangling' ? join(directory, 'real.yaml') : path;
  if (real !== path) symlinkSync('real.yaml', path);
  if (scenario === 'there' || scenario === 'link') writeFileSync(real, OLD);
  return { directory, path, real };
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

const ways = ['memory', 'disk', 'remote', 'sync'] as const;

const runs = scenarios.flatMap((scenario) =>
  faults.flatMap((fault) => ways.map((way) => ({ scenario, fault, way }))),
);

test.each(runs)(
  'a file ($scenario, $way) is old or new whichever call fails ($fault), and a write a day later removes what is left',
  async ({ scenario, fault, way }) => {
    const before = scenario === 'there' || scenario === 'link' ? OLD : undefined;
    const calls = await atEveryCall(fault, 4, async (script) => {
      const { directory, path, real } = arrange(scenario);
      const afterChange = (): void => {
        const seen = contentOf(path);
        if (seen !== before) expect(seen).toBe(NEW);
      };
      const scripted = new ScriptedFs({ ...script, afterChange }, way === 'sync' ? undefined : way);
      const { fs } = scripted;
      let error: unknown;
      let written = false;
      try {
        const result =
          way === 'sync' ? atomicWriteFileSync(path, NEW, { fs }) : await atomicWriteFile(path, NEW, { fs });
        written = result.written;
      } catch (thrown) {
        error = thrown;
      }
      afterChange();
      if (written) expect(contentOf(path)).toBe(NEW);
      else {
        expect(error).toBeInstanceOf(WriteError);
        const { published, cause } = error as WriteError;
        if (!isCrash(cause)) {
          expect(published).toBe(contentOf(path) === NEW);
          // Only what could not be removed is left.
          const removal = scripted.calls[script.at ?? 0]?.name === 'unlink';
          if (!removal) expect(debris(directory, 'config.yaml', 'real.yaml')).toEqual([]);
        }
      }
      scripted.bury();
      await aDayLater(() => atomicWriteFile(path, 'next'));
      expect(contentOf(path)).toBe('next');
      expect(debris(directory, 'config.yaml', 'real.yaml')).toEqual([]);
      expect(lstatSync(path).isSymbolicLink()).toBe(real !== path);
      return scripted.struck;
    });
    // The faults have been at every call, those after the rename too.
    expect(calls).toBeGreaterThan(10);
  },
);

const ONE = { 'tls.crt': 'certificate 1', 'tls.key': 'key 1', 'gone/deep.yaml': '1' };
const TWO = { 'tls.crt': 'certificate 2', 'tls.key': 'key 2', 'new/deep.yaml': '2' };

/** What a reader who goes through `..data` finds. */
function setOf(directory: string): unknown {
  const data = join(directory, '..data');
  try {
    const names = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    return Object.fromEntries(
      names.map(({ parentPath, name }) => {
        const path = join(parentPath, name);
        return [path.slice(data.length + 1), readFileSync(path, 'utf8')];
      }),
    );
  } catch {
    return undefined;
  }
}

/** A whole volume, without the digits that differ each time. */
function layoutOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mode } = lstatSync(path);
      const what = entry.isSymbolicLink()
        ? `-> ${readlinkSync(path)}`
        : entry.isFile()
          ? `${(mode & 0o7777).toString(8)} ${readFileSync(path, 'utf8')}`
          : `${(mode & 0o7777).toString(8)} directory`;
      return `${path.slice(directory.length + 1)} ${what}`.replaceAll(/\.\.\d{4}_[\d_]+\.\d+/g, '..revision');
    })
    .sort();
}

test.each(faults.flatMap((fault) => [false, true].map((first) => ({ fault, first }))))(
  'a volume has the old or the new set whichever call fails ($fault, first write: $first), and a write a day later removes what is left',
  async ({ fault, first }) => {
    const clean = temporaryDirectory();
    await new AtomicVolume(clean).write({ 'tls.crt': 'next' });
    const expected = layoutOf(clean);
    const before = first ? undefined : ONE;
    const calls = await atEveryCall(fault, faults.length, async (script) => {
      const directory = temporaryDirectory();
      if (!first) await new AtomicVolume(directory).write(ONE);
      const afterChange = (): void => {
        const seen = setOf(directory);
        if (!isDeepStrictEqual(seen, before)) expect(seen).toEqual(TWO);
      };
      const scripted = new ScriptedFs({ ...script, afterChange });
      const outcome = await new AtomicVolume(directory, { fs: scripted.fs })
        .write(TWO)
        .catch((error: unknown) => error);
      afterChange();
      if (outcome instanceof WriteError) {
        if (!isCrash(outcome.cause)) {
          expect(outcome.published).toBe(isDeepStrictEqual(setOf(directory), TWO));
        }
      } else expect(outcome).toMatchObject({ changed: true });
      scripted.bury();
      await aDayLater(() => new AtomicVolume(directory).write({ 'tls.crt': 'next' }));
      expect(layoutOf(directory)).toEqual(expected);
      return scripted.struck;
    });
    expect(calls).toBeGreaterThan(30);
  },
);

test('an entry with the name of a key is replaced, unless it is a directory', async () => {
  const directory = temporaryDirectory();
  const volume = new AtomicVolume(directory);
  writeFileSync(join(directory, 'file'), 'squatter');
  symlinkSync('/nowhere', join(directory, 'link'));
  symlinkSync('..elsewhere', join(directory, '..data_tmp'));
  await volume.write({ file: '1', link: '2' });
  expect(['file', 'link'].map((key) => readFileSync(join(directory, key), 'utf8'))).toEqual(['1', '2']);
  expect(debris(directory, '..data', 'file', 'link').filter((name) => !/^\.\.\d{4}/.test(name))).toEqual([]);
  mkdirSync(join(directory, 'directory'));
  await expect(volume.write({ directory: '3' })).rejects.toMatchObject({
    code: 'ERR_WRITE_NOT_FILE',
    published: false,
    path: join(directory, 'directory'),
  });
  expect((await volume.read()).files.get('file')?.toString()).toBe('1');
});
