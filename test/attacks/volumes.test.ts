/** What somebody can do who may write into the directory of an `AtomicVolume`, and what not. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  constants,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { AtomicVolume, isTemporaryName, WriteError } from 'resilient-watcher';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryName } from '../../src/write/sweep.js';
import { STRANGER, StrikingFileSystem, isRoot, runAs } from '../support/attacker.js';
import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const PLANTED = '..2020_01_01_00_00_00.1';

/** A directory elsewhere that must stay as it is. */
class Victim {
  readonly directory = temporaryDirectory();
  readonly #before: unknown;

  constructor() {
    mkdirSync(join(this.directory, 'nested'));
    writeFileSync(join(this.directory, 'precious'), 'precious');
    writeFileSync(join(this.directory, 'nested/precious'), 'precious');
    chmodSync(this.directory, 0o711);
    this.#before = this.#state();
  }

  expectUntouched(): void {
    expect(this.#state()).toEqual(this.#before);
  }

  #state(): unknown {
    return readdirSync(this.directory, { recursive: true, encoding: 'utf8' })
      .concat('.')
      .sort()
      .map((name) => {
        const stat = lstatSync(join(this.directory, name));
        return [name, stat.mode, stat.uid, stat.gid, stat.isFile() && stat.size];
      });
  }
}

const revisionsIn = (directory: string): string[] =>
  readdirSync(directory).filter((name) => /^\.\.\d{4}_/.test(name));

describe('a planted link', () => {
  test.each(['write', 'clear'] as const)(
    'with the name of a revision is removed by %s(), and its target is not touched',
    async (operation) => {
      const victim = new Victim();
      const volume = new AtomicVolume(temporaryDirectory());
      await volume.write({ key: '1' });
      symlinkSync(victim.directory, join(volume.directory, PLANTED));
      if (operation === 'write') await volume.write({ key: '2' });
      else await volume.clear();
      victim.expectUntouched();
      expect(readdirSync(volume.directory)).not.toContain(PLANTED);
    },
  );

  test('inside a revision that is swept is removed, and its target is not touched', async () => {
    const victim = new Victim();
    const volume = new AtomicVolume(temporaryDirectory());
    mkdirSync(join(volume.directory, PLANTED, 'd'), { recursive: true });
    symlinkSync(victim.directory, join(volume.directory, PLANTED, 'link'));
    symlinkSync(victim.directory, join(volume.directory, PLANTED, 'd/link'));
    await volume.write({ key: '1' });
    victim.expectUntouched();
    expect(revisionsIn(volume.directory)).toHaveLength(1);
  });

  test.each([
    ['absolute', (victim: string) => victim],
    ['a revision that is a link', () => PLANTED],
    ['relative', (victim: string) => `../../../../../../../..${victim}`],
  ])(
    'named "..data" that leads out of the volume (%s) is not read, and replaced by the next write',
    async (_, target) => {
      const victim = new Victim();
      const directory = temporaryDirectory();
      symlinkSync(victim.directory, join(directory, PLANTED));
      symlinkSync(target(victim.directory), join(directory, '..data'));
      const volume = new AtomicVolume(directory);
      await expect(volume.read()).rejects.toMatchObject({ name: 'TargetError', code: 'ERR_TARGET_LAYOUT' });
      await volume.write({ key: '1' });
      victim.expectUntouched();
      expect(readdirSync(directory).filter((name) => !name.startsWith('..'))).toEqual(['key']);
      expect((await volume.read()).files.get('key')?.toString()).toBe('1');
    },
  );

  test.skipIf(!isRoot)(
    'at the path of the volume itself is refused in a sticky directory that every user can write to',
    async () => {
      const victim = new Victim();
      const shared = temporaryDirectory();
      chmodSync(shared, 0o1777);
      symlinkSync(victim.directory, join(shared, 'volume'));
      lchownSync(join(shared, 'volume'), STRANGER, STRANGER);
      const volume = new AtomicVolume(join(shared, 'volume'));
      await expect(volume.write({ key: 'secret' })).rejects.toMatchObject({ code: 'ERR_WRITE_UNTRUSTED' });
      victim.expectUntouched();
    },
  );
});

describe.skipIf(!isRoot)('a published revision that another user may change', () => {
  const files = { key: 'secret', 'd/e': 'deep' };
  /** A volume that was published by another user, as far as `take` goes. */
  const published = async (take: (revision: string) => void): Promise<AtomicVolume> => {
    const volume = new AtomicVolume(temporaryDirectory());
    const { revision } = await volume.write(files);
    take(join(volume.directory, revision));
    return volume;
  };

  test.each<[string, (revision: string) => void]>([
    ['since the directory is theirs', (revision) => chownSync(revision, STRANGER, STRANGER)],
    ['since a directory in it is theirs', (revision) => chownSync(join(revision, 'd'), STRANGER, STRANGER)],
    ['since a file is theirs', (revision) => chownSync(join(revision, 'key'), STRANGER, STRANGER)],
    ['since everybody may write to it', (revision) => chmodSync(revision, 0o777)],
  ])('is replaced although it holds the same files: %s', async (_, take) => {
    const volume = await published(take);
    const theirs = readlinkSync(join(volume.directory, '..data'));
    const { changed, revision } = await volume.write(files);
    expect({ changed, revisions: revisionsIn(volume.directory) }).toEqual({
      changed: true,
      revisions: [revision],
    });
    expect(revision).not.toBe(theirs);
    for (const name of ['', 'key', 'd', 'd/e']) {
      expect(statSync(join(volume.directory, revision, name))).toMatchObject({ uid: 0, gid: 0 });
    }
    expect((await volume.write(files)).changed).toBe(false);
  });

  test('is kept if its files belong to the owner that was asked for', async () => {
    const owner = { uid: STRANGER, gid: STRANGER };
    const volume = new AtomicVolume(temporaryDirectory(), { owner });
    await volume.write(files);
    expect((await volume.write(files)).changed).toBe(false);
  });
});

test.skipIf(!isRoot)(
  'a revision that cannot be removed does not prevent the others from being removed',
  () => {
    const directory = temporaryDirectory();
    chownSync(directory, STRANGER, STRANGER);
    for (const digit of [1, 2, 3, 4, 5]) {
      const revision = join(directory, `..2020_01_01_00_00_00.${digit}`);
      mkdirSync(revision);
      writeFileSync(join(revision, 'secret'), 'old');
      if (digit !== 3) chownSync(revision, STRANGER, STRANGER);
    }
    const program = `
    const volume = new AtomicVolume(${JSON.stringify(directory)});
    await volume.write({ key: '1' });
    process.stdout.write(JSON.stringify(volume));`;
    const status = JSON.parse(runAs(STRANGER, STRANGER, program)) as unknown;
    const stuck = join(directory, '..2020_01_01_00_00_00.3');
    expect(status).toMatchObject({
      state: 'running',
      lastError: { code: 'ERR_WRITE_ACCESS', message: expect.stringContaining(`"${stuck}"`) as string },
    });
    expect(JSON.stringify(status)).not.toContain('/proc/');
    const left = revisionsIn(directory).filter((name) => name.startsWith('..2020'));
    expect(left).toEqual(['..2020_01_01_00_00_00.3']);
  },
);

/** Runs a command that needs privileges or a capable file system; why it did not run, if so. */
function obstacleTo(command: string, ...args: string[]): string | undefined {
  try {
    execFileSync(command, args, { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `${command} cannot be used here: ${String(error)}`;
  }
}

describe.skipIf(!isRoot)('an entry that cannot be removed protects nothing else', () => {
  /** An immutable file; root cannot remove it either. */
  const makeImmutable = (path: string): string | undefined => {
    const obstacle = obstacleTo('chattr', '+i', path);
    if (obstacle === undefined) onTestFinished(() => void obstacleTo('chattr', '-i', path));
    return obstacle;
  };

  test('in a revision: the other secrets in it are removed', async ({ skip }) => {
    const directory = temporaryDirectory('/var/tmp');
    const revision = join(directory, PLANTED);
    mkdirSync(revision);
    for (const name of ['a', 'tls.key']) writeFileSync(join(revision, name), 'secret');
    const obstacle = makeImmutable(join(revision, 'a'));
    skip(obstacle !== undefined, obstacle);
    const volume = new AtomicVolume(directory);
    await volume.write({ key: '1' });
    expect(readdirSync(revision)).toEqual(['a']);
    expect(volume.status().lastError).toMatchObject({ code: 'ERR_WRITE_ACCESS' });
  });

  test('at the name of a key: other keys are linked, and old revisions are removed', async ({ skip }) => {
    const directory = temporaryDirectory('/var/tmp');
    writeFileSync(join(directory, 'a'), 'planted');
    const obstacle = makeImmutable(join(directory, 'a'));
    skip(obstacle !== undefined, obstacle);
    const volume = new AtomicVolume(directory);
    for (const content of ['1', '2', '3']) {
      await expect(volume.write({ a: content, b: content })).rejects.toMatchObject({
        code: 'ERR_WRITE_ACCESS',
        step: 'link',
        published: true,
      });
    }
    expect(readFileSync(join(directory, 'b'), 'utf8')).toBe('3');
    expect(revisionsIn(directory)).toHaveLength(1);
  });

  test('a link of another user in a sticky directory: revisions are removed by write() and clear()', () => {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o1777);
    symlinkSync('..data/a', join(directory, 'a'));
    const program = `
      const volume = new AtomicVolume(${JSON.stringify(directory)});
      const codeOf = (promise) => promise.then(() => 'done', ({ code }) => code);
      const codes = [];
      for (const key of ['1', '2']) codes.push(await codeOf(volume.write({ key })));
      const left = fs.readdirSync(${JSON.stringify(directory)}).filter((name) => name.startsWith('..2')).length;
      codes.push(left, await codeOf(volume.clear()));
      process.stdout.write(JSON.stringify(codes));`;
    expect(JSON.parse(runAs(STRANGER, STRANGER, program))).toEqual([
      'ERR_WRITE_ACCESS',
      'ERR_WRITE_ACCESS',
      1,
      'ERR_WRITE_ACCESS',
    ]);
    expect(readdirSync(directory)).toEqual(['a']);
  });

  test('a file system that is mounted in a revision is not emptied with it', async ({ skip }) => {
    const directory = temporaryDirectory();
    const mounted = join(directory, PLANTED, 'a');
    mkdirSync(mounted, { recursive: true });
    writeFileSync(join(directory, PLANTED, 'tls.key'), 'secret');
    const obstacle = obstacleTo('mount', '-t', 'tmpfs', 'none', mounted);
    skip(obstacle !== undefined, obstacle);
    onTestFinished(() => void obstacleTo('umount', mounted));
    writeFileSync(join(mounted, 'precious'), 'precious');
    const volume = new AtomicVolume(directory);
    await volume.write({ key: '1' });
    expect(readdirSync(mounted)).toEqual(['precious']);
    expect(readdirSync(join(directory, PLANTED))).toEqual(['a']);
    expect(volume.status().lastError).toMatchObject({ code: 'ERR_WRITE_MOUNTED' });
  });
});

test.each(['symlink', 'mkdir', 'open', 'write'] as const)(
  'the files of a dead writer are removed although %s finds no space',
  async (call) => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, PLANTED));
    writeFileSync(join(directory, PLANTED, 'tls.key'), 'secret');
    const fs = fsWith({
      [call]: ({ args, make }: Called) => {
        const creates = call !== 'open' || ((args[1] as number) & constants.O_CREAT) !== 0;
        if (creates) throw errno('ENOSPC');
        return make();
      },
    });
    const volume = new AtomicVolume(directory, { fs });
    await expect(volume.write({ key: '1' })).rejects.toMatchObject({ code: 'ERR_WRITE_NO_SPACE' });
    expect(readdirSync(directory)).toEqual([]);
  },
);

test.skipIf(process.platform !== 'linux')(
  'a lease on a published file does not prevent a write from replacing it',
  async ({ skip }) => {
    const directory = temporaryDirectory('/var/tmp');
    const volume = new AtomicVolume(directory);
    await volume.write({ key: '1' });
    const lease = `import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print(1, flush=True)
sys.stdin.read()`;
    const holder = spawn('python3', ['-c', lease, join(directory, 'key')], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => void holder.kill('SIGKILL'));
    const [granted] = (await Promise.race([
      once(holder.stdout, 'data'),
      once(holder, 'close'),
      once(holder, 'error'),
    ])) as unknown[];
    skip(!Buffer.isBuffer(granted), 'no lease can be taken here');
    expect(await volume.write({ key: '1' })).toMatchObject({ changed: true });
  },
);

test('clear() removes the secrets of a volume although a directory is named "..data"', async () => {
  const volume = new AtomicVolume(temporaryDirectory());
  await volume.write({ 'tls.key': 'secret' });
  rmSync(join(volume.directory, '..data'));
  mkdirSync(join(volume.directory, '..data/d'), { recursive: true });
  await expect(volume.clear()).rejects.toMatchObject({ code: 'ERR_WRITE_NOT_FILE', step: 'remove' });
  expect(readdirSync(volume.directory)).toEqual(['..data']);
});

test('old revisions are removed if the pending link disappears at any call', async () => {
  for (let at = 0; ; at += 1) {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, PLANTED));
    const link = join(directory, temporaryName('link'));
    symlinkSync('..2020_01_01_00_00_00.2', link);
    const fs = new StrikingFileSystem(at, () => rmSync(link, { force: true }));
    const volume = new AtomicVolume(directory, { fs: fs.port, durability: 'none' });
    await volume.write({ key: '1' });
    expect(volume.status().lastError).toBeNull();
    expect(revisionsIn(directory)).toHaveLength(1);
    if (!fs.struck) break;
  }
});

/** The revision that is being made, renamed away, with a link to the victim in its place. */
function redirectPending(directory: string, victim: string): boolean {
  const published = existsSync(join(directory, '..data')) ? readlinkSync(join(directory, '..data')) : '';
  const pending = revisionsIn(directory).find(
    (name) => name !== published && lstatSync(join(directory, name)).isDirectory(),
  );
  if (pending === undefined) return false;
  renameSync(join(directory, pending), join(directory, 'stolen'));
  symlinkSync(victim, join(directory, pending));
  return true;
}

test('no write is redirected if the pending revision is replaced by a link at any call', async () => {
  let redirected = 0;
  for (let at = 0; ; at += 1) {
    const victim = new Victim();
    const directory = temporaryDirectory();
    const fs = new StrikingFileSystem(at, () => {
      if (redirectPending(directory, victim.directory)) redirected += 1;
    });
    const files = { 'tls.key': { data: 'secret', mode: 0o600 }, 'd/e': 'deep' };
    const outcome = await new AtomicVolume(directory, { fs: fs.port })
      .write(files)
      .catch((error: unknown) => error);
    victim.expectUntouched();
    if (outcome instanceof WriteError) {
      expect(['ERR_WRITE_CONFLICT', 'ERR_WRITE_NO_DIRECTORY']).toContain(outcome.code);
      // Nothing secret stays in the directory that was carried off.
      if (existsSync(join(directory, 'stolen'))) expect(readdirSync(join(directory, 'stolen'))).toEqual([]);
    }
    rmSync(directory, { recursive: true });
    if (!fs.struck) break;
  }
  // It was there to be replaced at most of the calls.
  expect(redirected).toBeGreaterThan(10);
});

test('a pending link that is turned to other files is not published', async () => {
  let refused = 0;
  for (let at = 0; ; at += 1) {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'forged'));
    writeFileSync(join(directory, 'forged/key'), 'forged');
    const fs = new StrikingFileSystem(at, () => {
      const link = readdirSync(directory).find((name) => isTemporaryName(name));
      if (link === undefined) return;
      rmSync(join(directory, link));
      symlinkSync('forged', join(directory, link));
    });
    const outcome = await new AtomicVolume(directory, { fs: fs.port })
      .write({ key: 'genuine' })
      .catch((error: unknown) => error);
    // Between the last check and the swap it is too late.
    const isLate = fs.struckBefore === 'lstat' || fs.struckBefore === 'rename';
    if (existsSync(join(directory, '..data')) && !isLate) {
      expect(readFileSync(join(directory, '..data/key'), 'utf8')).toBe('genuine');
    }
    if (outcome instanceof WriteError && outcome.code === 'ERR_WRITE_CONFLICT') refused += 1;
    if (!fs.struck) break;
  }
  expect(refused).toBeGreaterThan(5);
});

test('a pending revision that is replaced by another user’s directory is not published', async () => {
  let exchanged = 0;
  for (let at = 0; ; at += 1) {
    const directory = temporaryDirectory();
    const fs = new StrikingFileSystem(at, () => {
      const [pending] = revisionsIn(directory);
      if (pending === undefined || existsSync(join(directory, '..data'))) return;
      renameSync(join(directory, pending), join(directory, 'stolen'));
      mkdirSync(join(directory, pending));
      if (isRoot) chownSync(join(directory, pending), STRANGER, STRANGER);
      writeFileSync(join(directory, pending, 'key'), 'forged');
      exchanged += 1;
    });
    await new AtomicVolume(directory, { fs: fs.port }).write({ key: 'genuine' }).catch(() => undefined);
    // Between the last check and the swap it is too late, as it is after the swap.
    if (existsSync(join(directory, '..data/key')) && fs.struckBefore !== 'rename') {
      expect(readFileSync(join(directory, '..data/key'), 'utf8')).toBe('genuine');
    }
    if (!fs.struck) break;
  }
  expect(exchanged).toBeGreaterThan(5);
});

test.skipIf(!isRoot)(
  'no content is written to a directory that another user created in place of the pending revision',
  async () => {
    let exchanged = 0;
    const exposed: string[] = [];
    for (let at = 0; ; at += 1) {
      const directory = temporaryDirectory();
      const striking = new StrikingFileSystem(at, () => {
        const [pending] = revisionsIn(directory);
        if (pending === undefined || existsSync(join(directory, '..data'))) return;
        renameSync(join(directory, pending), join(directory, 'stolen'));
        mkdirSync(join(directory, pending));
        chownSync(join(directory, pending), STRANGER, STRANGER);
        // What is created in it has the group of its owner.
        chmodSync(join(directory, pending), 0o2777);
        exchanged += 1;
      });
      const fs = fsWith({
        each: (call) => {
          striking.count(call.name);
          if (call.name === 'write') {
            const written = readlinkSync(`/proc/self/fd/${String(call.args[0])}`);
            if (statSync(dirname(written)).uid === STRANGER) exposed.push(`${written}, call ${at}`);
          }
          return call.make();
        },
      });
      const volume = new AtomicVolume(directory, { fs });
      await volume.write({ 'tls.key': { data: 'secret', mode: 0o640 } }).catch((error: unknown) => {
        expect(error).toBeInstanceOf(WriteError);
      });
      if (!striking.struck) break;
    }
    expect(exposed).toEqual([]);
    expect(exchanged).toBeGreaterThan(5);
  },
);

test.skipIf(!isRoot)(
  'nothing is written elsewhere while another user renames the pending revision as fast as possible',
  async () => {
    const victim = new Victim();
    const directory = temporaryDirectory(existsSync('/dev/shm') ? '/dev/shm' : undefined);
    chmodSync(directory, 0o777);
    const program = fileURLToPath(new URL('./programs/renaming-process.mjs', import.meta.url));
    const attacker = spawn(process.execPath, [program, directory, victim.directory, `${STRANGER}`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void attacker.kill('SIGKILL'));
    let struck = 0;
    attacker.stdout.on('data', (chunk: Buffer) => (struck += chunk.length));
    await once(attacker.stdout, 'data');
    const volume = new AtomicVolume(directory, { durability: 'none', mode: 0o600 });
    // Until it was quick enough a few times, however busy the machine is.
    for (let count = 0; struck < 5 && count < 20_000; count += 1) {
      await volume.write({ 'tls.key': `secret ${count}`, 'd/e': `${count}` }).catch(() => undefined);
    }
    victim.expectUntouched();
    console.info(`the pending revision was replaced ${struck} times`);
  },
);

test('thousands of planted names are examined in slices', async () => {
  const directory = temporaryDirectory(existsSync('/dev/shm') ? '/dev/shm' : undefined);
  const PLANTED_NAMES = rounds(4_000, 50_000);
  for (let count = 0; count < PLANTED_NAMES; count += 1) {
    symlinkSync('..2020_01_01_00_00_00.9', join(directory, temporaryName('link')));
  }
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await new AtomicVolume(directory, { durability: 'none' }).write({ key: '1' });
  isDone = true;
  // Nobody else waits for more than some hundred of the calls.
  expect(turns).toBeGreaterThan(PLANTED_NAMES / 1000);
  expect(statSync(join(directory, 'key')).size).toBe(1);
});

test('a link in the published revision that leads out of it is refused by read()', async () => {
  const [directory, elsewhere] = [temporaryDirectory(), temporaryDirectory()];
  writeFileSync(join(elsewhere, 'secret'), 'of somebody else');
  const volume = new AtomicVolume(directory);
  const { revision } = await volume.write({ key: '1' });
  symlinkSync(join(elsewhere, 'secret'), join(directory, revision, 'planted'));
  await expect(volume.read()).rejects.toMatchObject({ name: 'TargetError', code: 'ERR_TARGET_LAYOUT' });
});

test.each([
  [{ maxFiles: 2 }, /maxFiles/],
  [{ maxTotalBytes: 10 }, /maxTotalBytes/],
  [{ maxContentBytes: 5 }, /maxContentBytes/],
])('a volume beyond the limits %j is refused by read(), not loaded', async (limits, message) => {
  const directory = temporaryDirectory();
  await new AtomicVolume(directory).write({ a: '123456', b: '123456', c: '123456' });
  await expect(new AtomicVolume(directory, limits).read()).rejects.toMatchObject({
    name: 'TargetError',
    code: 'ERR_TARGET_TOO_LARGE',
    message: expect.stringMatching(message) as string,
  });
});
