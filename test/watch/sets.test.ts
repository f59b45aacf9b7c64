/** Volumes, directories and groups: one snapshot, one change, whoever gives the hints. */
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { readVolume, ResilientWatcher, TargetError, type Change } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend, type VolumeStep } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { faultyFileSystem } from '../support/faulty-file-system.js';
import { ScriptedFileSystem } from '../support/scripted-file-system.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

type Options = ConstructorParameters<typeof ResilientWatcher>[1];

/** A watcher of several files under fake time; every change as text. */
class Stage {
  readonly root = temporaryDirectory();
  readonly clock = new FakeClock();
  readonly backend = new ScriptedBackend();
  readonly changes: Change[] = [];
  readonly revisions: string[] = [];
  readonly warnings: string[] = [];
  readonly errors: Error[] = [];
  #watcher: ResilientWatcher | undefined;

  get watcher(): ResilientWatcher {
    if (!this.#watcher) throw new Error('watch() comes first');
    return this.#watcher;
  }

  async watch(target: string | string[], options: Options = {}): Promise<void> {
    const { clock, backend } = this;
    const watcher = new ResilientWatcher(target, { clock, backend, resyncIntervalMs: 0, ...options });
    this.#watcher = watcher;
    watcher.on('change', (change) => this.changes.push(change));
    watcher.on('revision', ({ current }) => this.revisions.push(current));
    watcher.on('warning', ({ message }) => this.warnings.push(message));
    watcher.on('error', (error) => this.errors.push(error));
    watcher.on('unreadable', ({ error }) => this.errors.push(error));
    onTestFinished(() => watcher.close());
    await watcher.start();
  }

  /** A look, and no time passes. */
  async observe(): Promise<void> {
    this.backend.hint();
    await this.watcher.idle();
  }

  /** A look, and time enough for any grace. */
  async settle(): Promise<void> {
    await this.observe();
    for (let second = 0; second < 2; second += 1) {
      await this.clock.advance(1_000);
      await this.watcher.idle();
    }
  }

  /** The changes since this was last asked: what is there, and which keys differ. */
  told(): { kind: string; files: Record<string, string>; keys: string }[] {
    return this.changes.splice(0).map(({ current, added, changed, removed }) => ({
      kind: current.kind,
      files: contents(current),
      keys: [`+${added.join()}`, `~${changed.join()}`, `-${removed.join()}`].join(' '),
    }));
  }
}

function contents({ files }: Pick<Change['current'], 'files'>): Record<string, string> {
  return Object.fromEntries([...files].map(([key, { content }]) => [key, String(content)]));
}

describe('a volume', () => {
  test.each(['rename', 'remove'] as const)('swapped by %s is one change a revision', async (swap) => {
    const stage = new Stage();
    const volume = new KubeletVolume(join(stage.root, 'tls'), { swap });
    volume.publish({ 'tls.crt': 'c1', 'tls.key': 'k1', 'conf.d/app.yaml': 'a1' });
    await stage.watch(volume.directory);
    expect(stage.told()).toEqual([
      {
        kind: 'volume',
        files: { 'conf.d/app.yaml': 'a1', 'tls.crt': 'c1', 'tls.key': 'k1' },
        keys: '+conf.d/app.yaml,tls.crt,tls.key ~ -',
      },
    ]);
    volume.publish({ 'tls.crt': 'c2', 'tls.key': 'k2', 'ca.crt': 'ca' });
    await stage.observe();
    expect(stage.told()).toEqual([
      {
        kind: 'volume',
        files: { 'ca.crt': 'ca', 'tls.crt': 'c2', 'tls.key': 'k2' },
        keys: '+ca.crt ~tls.crt,tls.key -conf.d/app.yaml',
      },
    ]);
    expect(stage.watcher.current?.revision).toBe(volume.revision);
    volume.publish({ 'tls.crt': 'c2', 'tls.key': 'k2', 'ca.crt': 'ca' });
    await stage.settle();
    expect(stage.told()).toEqual([]);
  });

  test('looked at between any two system calls of a swap shows the old set or the new one', async () => {
    for (const swap of ['rename', 'remove'] as const) {
      const stage = new Stage();
      const volume = new KubeletVolume(join(stage.root, 'tls'), { swap });
      volume.publish({ a: '1', b: '1', gone: '1' });
      await stage.watch(volume.directory);
      for (const _ of volume.steps({ a: '2', b: '2', come: '2' })) await stage.observe();
      await stage.settle();
      expect(stage.told().map(({ files }) => files)).toEqual([
        { a: '1', b: '1', gone: '1' },
        { a: '2', b: '2', come: '2' },
      ]);
    }
  });

  test('that is missing, comes, becomes a plain directory, a file, and a volume again is followed', async () => {
    const stage = new Stage();
    const path = join(stage.root, 'etc', 'tls');
    await stage.watch(path);
    expect(stage.told()).toEqual([]);
    new KubeletVolume(path).publish({ a: 'volume' });
    await stage.observe();
    rmSync(path, { recursive: true });
    mkdirSync(path);
    writeFileSync(join(path, 'a'), 'plain');
    writeFileSync(join(path, '..hidden'), 'no key');
    mkdirSync(join(path, 'below'));
    await stage.settle();
    rmSync(path, { recursive: true });
    writeFileSync(path, 'file');
    await stage.settle();
    rmSync(path);
    await stage.settle();
    new KubeletVolume(path).publish({});
    await stage.settle();
    expect(stage.told()).toEqual([
      { kind: 'volume', files: { a: 'volume' }, keys: '+a ~ -' },
      { kind: 'directory', files: { a: 'plain' }, keys: '+ ~a -' },
      { kind: 'file', files: { tls: 'file' }, keys: '+tls ~ -a' },
      { kind: 'missing', files: {}, keys: '+ ~ -tls' },
      { kind: 'volume', files: {}, keys: '+ ~ -' },
    ]);
    expect(stage.errors).toEqual([]);
  });

  test('written in place by somebody is found by the resync', async () => {
    const stage = new Stage();
    const volume = new KubeletVolume(join(stage.root, 'tls'));
    volume.publish({ a: 'one', b: 'two' });
    await stage.watch(volume.directory, { resyncIntervalMs: 5_000 });
    await stage.clock.advance(20_000);
    await stage.watcher.idle();
    writeFileSync(join(volume.directory, '..data', 'a'), 'ONE');
    await stage.clock.advance(10_000);
    await stage.watcher.idle();
    expect(stage.told().map(({ files }) => files)).toEqual([
      { a: 'one', b: 'two' },
      { a: 'ONE', b: 'two' },
    ]);
  });

  test('of many files is looked at in slices, so that the process goes on meanwhile', async () => {
    const stage = new Stage();
    const files = Object.fromEntries(Array.from({ length: 2_000 }, (_, number) => [`f${number}`, 'v1']));
    new KubeletVolume(stage.root).publish(files);
    await stage.watch(stage.root);
    let turns = 0;
    let isLooking = true;
    const turn = (): void => {
      turns += 1;
      if (isLooking) setImmediate(turn);
    };
    setImmediate(turn);
    await stage.watcher.check();
    isLooking = false;
    // Reading each takes one call at least, and 500 calls are one slice.
    expect(turns).toBeGreaterThanOrEqual(4);
  });

  test('that has many more files after a swap is looked at in slices, too', async () => {
    const stage = new Stage();
    const volume = new KubeletVolume(stage.root);
    let reads = 0;
    let readsInTurn = 0;
    let mostReads = 0;
    const fs = faultyFileSystem((name) => {
      if (name !== 'read') return;
      reads += 1;
      if (readsInTurn === 0) setImmediate(() => (readsInTurn = 0));
      mostReads = Math.max(mostReads, (readsInTurn += 1));
    });
    volume.publish({ f: 'v1' });
    await stage.watch(stage.root, { fs });
    const files = Array.from({ length: 1_000 }, (_, number) => [`d${number % 20}/f${number}`, 'v2']);
    volume.publish(Object.fromEntries(files) as Record<string, string>);
    await stage.observe();
    expect(stage.told().map((change) => Object.keys(change.files).length)).toEqual([1, 1_000]);
    expect(reads).toBeGreaterThanOrEqual(1_000);
    // A slice is some 500 calls, and reading a file takes several: no turn reads anywhere near all of them.
    expect(mostReads).toBeLessThanOrEqual(reads / 4);
  });

  test('is read once a swap, in four calls a file, and its files are not looked at for what happens beside them', async () => {
    const stage = new Stage();
    const volume = new KubeletVolume(join(stage.root, 'tls'));
    const files = new ScriptedFileSystem();
    const asked = (): string[] =>
      files.calls
        .splice(0)
        .filter(({ args }) => typeof args[0] === 'number' || /\/[ab]$/.test(String(args[0])))
        .map(({ name }) => name);
    volume.publish({ a: 'one', b: 'two' });
    await stage.watch(volume.directory, { fs: files.port, resyncIntervalMs: 5_000 });
    asked();
    volume.publish({ a: 'ONE', b: 'TWO' });
    stage.backend.hint(join(volume.directory, '..data'));
    await stage.watcher.idle();
    const reading = ['open', 'fstat', 'read', 'close'];
    expect(asked()).toEqual([...reading, ...reading]);
    stage.backend.hint(join(volume.directory, 'something'));
    await stage.watcher.idle();
    expect(asked()).toEqual([]);
    await stage.clock.advance(5_000);
    await stage.watcher.idle();
    expect(asked()).toEqual(['lstat', 'lstat']);
    await stage.watcher.check();
    expect(asked()).toEqual(['lstat', 'lstat']);
    expect(stage.told().map((change) => change.files)).toEqual([
      { a: 'one', b: 'two' },
      { a: 'ONE', b: 'TWO' },
    ]);
  });

  test('into which somebody writes is looked at file by file until the writer is done', async () => {
    const stage = new Stage();
    const volume = new KubeletVolume(join(stage.root, 'tls'));
    volume.publish({ a: 'one' });
    await stage.watch(volume.directory, { settleMs: 100, maxSettleMs: 1_000 });
    await stage.clock.advance(5_000);
    writeFileSync(join(volume.directory, 'a'), 'half');
    await stage.watcher.check();
    writeFileSync(join(volume.directory, 'a'), 'half and half');
    stage.backend.hint(join(volume.directory, 'something'));
    await stage.watcher.idle();
    await stage.clock.advance(100);
    await stage.watcher.idle();
    expect(stage.told().map((change) => change.files)).toEqual([{ a: 'one' }, { a: 'half and half' }]);
  });

  test('into which somebody was seen writing is looked at file by file for good, the next revision is not', async () => {
    const stage = new Stage();
    const volume = new KubeletVolume(join(stage.root, 'tls'));
    const beside = async (): Promise<void> => {
      stage.backend.hint(join(volume.directory, 'something'));
      await stage.watcher.idle();
      await stage.clock.advance(3_000);
      await stage.watcher.idle();
    };
    const write = (text: string): void => writeFileSync(join(volume.directory, 'a'), text);
    volume.publish({ a: 'one' });
    await stage.watch(volume.directory);
    write('one, written');
    await stage.watcher.check();
    await beside();
    await beside();
    for (const text of ['two', 'three!', 'four...']) {
      write(text);
      await beside();
    }
    volume.publish({ a: 'five' });
    await beside();
    write('nobody hears of this');
    await beside();
    const texts = ['one', 'one, written', 'two', 'three!', 'four...', 'five'];
    expect(stage.told().map(({ files }) => files)).toEqual(texts.map((a) => ({ a })));
  });

  test('over a limit carries digests or identities, and says so once', async () => {
    const stage = new Stage();
    const volume = new KubeletVolume(join(stage.root, 'tls'));
    const limits = { maxFiles: 3, maxContentBytes: 100, maxTotalBytes: 150 };
    const small = 'x'.repeat(90);
    volume.publish({ a: small });
    await stage.watch(volume.directory, limits);
    const kept = (): unknown =>
      [...(stage.watcher.current?.files ?? [])].map(([key, { content, digest }]) => [
        key,
        content?.length ?? digest.split(':')[0],
      ]);
    expect(kept()).toEqual([['a', 90]]);
    expect(stage.warnings).toEqual([]);
    volume.publish({ a: small, big: 'y'.repeat(101) });
    await stage.observe();
    expect(kept()).toEqual([
      ['a', 90],
      ['big', 'stat'],
    ]);
    volume.publish({ a: small, b: small });
    await stage.observe();
    expect(kept()).toEqual([
      ['a', 'sha256'],
      ['b', 'sha256'],
    ]);
    expect(stage.changes.at(-1)).toMatchObject({ added: ['b'], changed: [], removed: ['big'] });
    volume.publish({ a: small, b: small.toUpperCase() });
    await stage.observe();
    expect(stage.changes.at(-1)).toMatchObject({ added: [], changed: ['b'], removed: [] });
    volume.publish({ a: '', b: '', c: '', d: '' });
    await stage.observe();
    expect(kept()).toEqual(['a', 'b', 'c', 'd'].map((key) => [key, 'stat']));
    expect(stage.warnings.map((message) => /max\w+/.exec(message)?.[0])).toEqual([
      'maxContentBytes',
      'maxTotalBytes',
      'maxFiles',
    ]);
    volume.publish({ a: small });
    await stage.observe();
    expect(stage.watcher.status().warnings).toEqual([]);
  });
});

describe('a plain directory', () => {
  test('is the files in it, each whole', async () => {
    const stage = new Stage();
    const conf = join(stage.root, 'conf.d');
    mkdirSync(conf);
    writeFileSync(join(conf, 'a'), 'a1');
    await stage.watch(conf);
    writeFileSync(join(conf, '.next'), 'b1');
    renameSync(join(conf, '.next'), join(conf, 'b'));
    await stage.settle();
    writeFileSync(join(conf, 'a'), 'a2');
    await stage.observe();
    expect(stage.told().map(({ files }) => files)).toEqual([{ a: 'a1' }, { a: 'a1', b: 'b1' }]);
    await stage.settle();
    rmSync(join(conf, 'b'));
    await stage.settle();
    expect(stage.told()).toEqual([
      { kind: 'directory', files: { a: 'a2', b: 'b1' }, keys: '+ ~a -' },
      { kind: 'directory', files: { a: 'a2' }, keys: '+ ~ -b' },
    ]);
  });

  test('follows links among its entries, and watches where they lead', async () => {
    const stage = new Stage();
    const conf = join(stage.root, 'conf.d');
    const volume = new KubeletVolume(join(stage.root, 'volume'));
    volume.publish({ key: 'v1' });
    mkdirSync(conf);
    symlinkSync('../volume/key', join(conf, 'linked'));
    symlinkSync('../elsewhere/app', join(conf, 'dangling'));
    await stage.watch(conf);
    expect(stage.backend.directories.map(({ path }) => path)).toContain(volume.directory);
    volume.publish({ key: 'v2' });
    await stage.observe();
    mkdirSync(join(stage.root, 'elsewhere'));
    writeFileSync(join(stage.root, 'elsewhere', 'app'), 'here');
    await stage.settle();
    expect(stage.told().map(({ files }) => files)).toEqual([
      { linked: 'v1' },
      { linked: 'v2' },
      { dangling: 'here', linked: 'v2' },
    ]);
  });
});

describe('a group', () => {
  function twoVolumes(stage: Stage): { tls: KubeletVolume; app: KubeletVolume; paths: string[] } {
    const tls = new KubeletVolume(join(stage.root, 'tls'));
    const app = new KubeletVolume(join(stage.root, 'app'));
    tls.publish({ crt: 'c1', key: 'k1' });
    app.publish({ 'app.yaml': 'a1' });
    return { tls, app, paths: [tls.path('crt'), tls.path('key'), app.path('app.yaml')] };
  }

  test('of two volumes that change together within groupSettleMs is one change', async () => {
    const stage = new Stage();
    const { tls, app, paths } = twoVolumes(stage);
    await stage.watch(paths, { groupSettleMs: 300 });
    stage.told();
    tls.publish({ crt: 'c2', key: 'k2' });
    await stage.observe();
    await stage.clock.advance(299);
    await stage.watcher.idle();
    expect(stage.told()).toEqual([]);
    app.publish({ 'app.yaml': 'a2' });
    await stage.observe();
    expect(stage.told().map(({ files }) => Object.values(files))).toEqual([['c2', 'k2', 'a2']]);
    tls.publish({ crt: 'c3', key: 'k3' });
    await stage.observe();
    await stage.clock.advance(300);
    await stage.watcher.idle();
    expect(stage.told()).toEqual([
      {
        kind: 'group',
        files: Object.fromEntries(paths.map((path, index) => [path, ['c3', 'k3', 'a2'][index]])),
        keys: `+ ~${paths.slice(0, 2).join()} -`,
      },
    ]);
  });

  test('within one volume waits for nothing, and is never torn', async () => {
    const stage = new Stage();
    const { tls } = twoVolumes(stage);
    const paths = [tls.path('crt'), tls.path('key')];
    await stage.watch(paths);
    for (const swap of ['rename', 'remove'] as const) {
      const volume = new KubeletVolume(tls.directory, { swap });
      for (const _ of volume.steps({ crt: swap, key: swap })) await stage.observe();
      await stage.observe();
    }
    expect(stage.told().map(({ files }) => Object.values(files))).toEqual([
      ['c1', 'k1'],
      ['rename', 'rename'],
      ['remove', 'remove'],
    ]);
  });

  test('of a volume and a file never shows a set that was not there: the file was replaced before the swap', async () => {
    const stage = new Stage();
    const { tls } = twoVolumes(stage);
    const file = join(stage.root, 'app.yaml');
    const place = (text: string): void => {
      writeFileSync(join(stage.root, 'next'), text);
      renameSync(join(stage.root, 'next'), file);
    };
    place('1');
    await stage.watch([tls.path('crt'), file]);
    place('2');
    tls.publish({ crt: 'c2', key: 'k2' });
    await stage.settle();
    rmSync(file);
    tls.publish({ crt: 'c3', key: 'k3' });
    await stage.settle();
    expect(stage.told().map(({ files }) => Object.values(files))).toEqual([['c1', '1'], ['c2', '2'], ['c3']]);
  });

  test('tells of members that are missing, come and go; all gone is missing', async () => {
    const stage = new Stage();
    const [one, two] = [join(stage.root, 'one'), join(stage.root, 'two')];
    await stage.watch([one, two]);
    expect(stage.watcher.current?.kind).toBe('missing');
    writeFileSync(one, '1');
    await stage.settle();
    writeFileSync(two, '2');
    await stage.settle();
    rmSync(one);
    await stage.settle();
    rmSync(two);
    await stage.settle();
    expect(stage.told().map(({ kind, keys }) => `${kind} ${keys.replaceAll(`${stage.root}/`, '')}`)).toEqual([
      'group +one ~ -',
      'group +two ~ -',
      'group + ~ -one',
      'missing + ~ -two',
    ]);
  });

  test('with a directory in it is unreadable until that is a file', async () => {
    const stage = new Stage();
    const [one, two] = [join(stage.root, 'one'), join(stage.root, 'two')];
    mkdirSync(one);
    writeFileSync(two, '2');
    await stage.watch([one, two]);
    await stage.settle();
    expect(stage.errors).toEqual([expect.objectContaining({ code: 'ERR_TARGET_NOT_FILE', path: one })]);
    rmSync(one, { recursive: true });
    writeFileSync(one, '1');
    await stage.settle();
    expect(Object.values(stage.told().at(-1)?.files ?? {})).toEqual(['1', '2']);
  });

  test.each<[unknown, RegExp]>([
    [[], /at least one file/],
    [['a', 'a'], /must not name a file twice/],
    [['a', ''], /path\[1\] must be a non-empty string/],
    [['a', 7], /path\[1\] must be a non-empty string/],
  ])('%j is refused', (paths, message) => {
    expect(() => new ResilientWatcher(paths as string[])).toThrow(message);
  });
});

describe('a set is of one instant', () => {
  /** Replaces a file, at once and visibly complete. */
  function place(file: string, text: string): void {
    writeFileSync(`${file}.next`, text);
    utimesSync(`${file}.next`, 1, 1);
    renameSync(`${file}.next`, file);
  }

  const isOneVersion = (files: Record<string, string>): boolean => new Set(Object.values(files)).size === 1;

  /** What is watched below a root, how it goes from version to version, and whether files were there at an instant. */
  interface Case {
    target(root: string): string | string[];
    /** Each step is one change of the disk. */
    publish(root: string, version: string): Iterator<unknown>;
    /** The steps that nobody sees. */
    prepare?(steps: Iterator<unknown>): void;
    wasThere(files: Record<string, string>): boolean;
  }

  const cases: Record<string, Case> = {};
  for (const swap of ['rename', 'remove'] as const) {
    const publish = (root: string, version: string): Iterator<unknown> =>
      new KubeletVolume(join(root, 'v'), { swap }).steps({ a: version, b: version, 'c/d': version });
    const prepare = (steps: Iterator<unknown>): void => {
      while ((steps.next().value as VolumeStep).name !== 'symlink');
    };
    cases[`a volume swapped by ${swap}`] = {
      prepare,
      target: (root) => join(root, 'v'),
      publish,
      wasThere: (files) => isOneVersion(files) && Object.keys(files).length === 3,
    };
    cases[`a group swapped by ${swap}`] = {
      prepare,
      target: (root) => ['a', 'b'].map((key) => join(root, 'v', key)),
      publish,
      wasThere: (files) => isOneVersion(files) && Object.keys(files).length === 2,
    };
  }
  cases['a group of files, one of which comes before the other is replaced'] = {
    target: (root) => [join(root, 'x'), join(root, 'y')],
    *publish(root, version) {
      for (const name of version === '3' ? ['x', 'y'] : ['y']) {
        place(join(root, name), version);
        yield name;
      }
    },
    wasThere: ({ x, y }) => x === '3' || (x === undefined && y !== '3'),
  };

  const paced = Object.entries(cases).flatMap(([name, set]) =>
    // Three steps: the swap, and the first two files of the old revision are gone.
    [1, 2, 3].map((pace) => [name, pace, set] as const),
  );

  test.each(paced)(
    '%s, and again during a check, from any of its calls on, %i at once',
    async (_, pace, set) => {
      const short = (files: Record<string, string>): Record<string, string> =>
        Object.fromEntries(Object.entries(files).map(([key, text]) => [basename(key), text]));
      const finish = (steps: Iterator<unknown>): void => {
        while (!steps.next().done);
      };
      for (let at = 1, reached = true; reached; at += 1) {
        const stage = new Stage();
        let calls = -Infinity;
        let steps: Iterator<unknown> = [].values();
        const fs = faultyFileSystem(() => {
          calls += 1;
          if (calls === at) for (let step = 0; step < pace; step += 1) steps.next();
          // The rest comes after the check, or one with each of its calls.
          else if (calls > at && pace === 1) steps.next();
        });
        finish(set.publish(stage.root, '1'));
        await stage.watch(set.target(stage.root), { fs });
        finish(set.publish(stage.root, '2'));
        steps = set.publish(stage.root, '3');
        set.prepare?.(steps);
        calls = 0;
        await stage.observe();
        reached = calls >= at;
        calls = -Infinity;
        if (reached) finish(steps);
        await stage.settle();
        const told = stage.told().map(({ files }) => short(files));
        expect(
          told.filter((files) => !set.wasThere(files)),
          `at call ${at}`,
        ).toEqual([]);
        expect(Object.values(told.at(-1) ?? {})).toContain(reached ? '3' : '2');
        await stage.watcher.close();
      }
    },
  );
});

describe('snapshot() and readVolume()', () => {
  test('tell what is there now, of any kind, started or not', async () => {
    const root = temporaryDirectory();
    const volume = new KubeletVolume(join(root, 'tls'));
    volume.publish({ crt: 'c1', key: 'k1' });
    const expected = { kind: 'volume', revision: volume.revision };
    expect(await readVolume(volume.directory)).toMatchObject(expected);
    const whole = await new ResilientWatcher(volume.directory).snapshot();
    expect(whole).toMatchObject(expected);
    expect(contents(whole)).toEqual({ crt: 'c1', key: 'k1' });
    expect((await new ResilientWatcher([volume.path('crt')]).snapshot()).kind).toBe('group');
    expect((await new ResilientWatcher(volume.path('crt')).snapshot()).content?.toString()).toBe('c1');
    expect((await new ResilientWatcher(join(root, 'nothing')).snapshot()).kind).toBe('missing');
    expect((await readVolume(root)).files.size).toBe(0);
  });

  test('printed forms hold no content', async () => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
    volume.publish({ key: 'SECRET' });
    const { inspect } = await import('node:util');
    const snapshot = await readVolume(volume.directory);
    const hex = Buffer.from('SECRET').toString('hex').slice(0, 4);
    for (const text of [JSON.stringify(snapshot), inspect(snapshot, { depth: 9 })]) {
      expect(text).toContain('sha256:');
      expect(text).not.toContain('SECRET');
      expect(text.replaceAll(/sha256:[0-9a-f]+/g, '')).not.toContain(`Buffer ${hex}`);
    }
  });

  test.each<[string, (path: string) => void, string]>([
    ['nothing', () => undefined, 'ERR_TARGET_MISSING'],
    ['a file', (path) => writeFileSync(path, ''), 'ERR_TARGET_NOT_DIRECTORY'],
    ['a loop', (path) => symlinkSync('tls', path), 'ERR_TARGET_LOOP'],
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
