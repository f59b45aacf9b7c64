/**
 * When each change of a directory of plain files is told, to the millisecond: by a second reader of the tables in
 * `pending.ts`, `waits.ts` and `report.ts`, which knows no file system.
 */
import { lstatSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';

import fc from 'fast-check';
import { ResilientWatcher, type ResilientWatcherOptions } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { realIo } from '../support/real-io.js';
import { rounds } from '../support/rounds.js';
import { ScriptedScene } from '../support/scripted-scene.js';

interface Times {
  readonly settleMs: number;
  readonly maxSettleMs: number;
  readonly missingGraceMs: number;
}

/** What is there: a file that was written in place just now, or long ago and then renamed. */
interface File {
  readonly text: string;
  readonly inode: object;
  readonly isOld: boolean;
}

/** What has become of it since it was first seen. */
type Modified = 'replaced' | 'written' | undefined;

/** A difference that waits, or that was seen a short time ago. */
interface Difference {
  readonly file: File | undefined;
  readonly firstLook: number;
  readonly firstSeen: number;
  readonly unchangedSince: number;
  readonly modified: Modified;
  readonly dueAt: number;
}

interface Told {
  readonly at: number;
  /** The keys that were added (+), changed (~) and removed (-), with their texts. */
  readonly keys: string;
}

/** An empty file was no version yet that another one could replace. */
function modification(before: File, after: File): Modified {
  if (before.inode === after.inode) return 'written';
  return before.text === '' ? undefined : 'replaced';
}

/** How long a first report waits for a file that is replaced all the time, ms. */
const MAX_FIRST_WAIT_MS = 500;

/** What a watcher should tell of a directory. */
class Reader {
  readonly told: Told[] = [];
  readonly files = new Map<string, File>();
  readonly #times: Times;
  /** What was told last. */
  #known = new Map<string, File>();
  #isFirst = true;
  #looks = 0;
  #pending = new Map<string, Difference>();
  /** The time of each is when it vanished. */
  readonly #vanished = new Map<string, readonly [Difference, number]>();

  constructor(times: Times) {
    this.#times = times;
  }

  knownText(key: string): string | undefined {
    return this.#known.get(key)?.text;
  }

  /** Time passes until then, and what comes due meanwhile is told. */
  passTo(end: number): void {
    for (let at = this.#nextAt(); at <= end; at = this.#nextAt()) this.look(at);
  }

  look(now: number): void {
    this.#looks += 1;
    const before = this.#pending;
    this.#pending = new Map();
    for (const key of new Set([...this.files.keys(), ...this.#known.keys()])) {
      if (this.files.get(key)?.text === this.#known.get(key)?.text) continue;
      const [vanished, vanishedAt = -Infinity] = this.#vanished.get(key) ?? [];
      const isRemembered = now - vanishedAt < this.#times.missingGraceMs;
      this.#vanished.delete(key);
      this.#pending.set(key, this.#seen(key, before.get(key), isRemembered ? vanished : undefined, now));
    }
    for (const [key, difference] of before)
      if (!this.#pending.has(key)) this.#vanished.set(key, [difference, now]);
    const due = [...this.#pending].filter(([, each]) => this.#toldAt(each) <= now);
    if (this.#isFirst ? due.length === this.#pending.size || this.#firstDue() <= now : due.length > 0)
      this.#tell(due, now);
  }

  #seen(
    key: string,
    pending: Difference | undefined,
    vanished: Difference | undefined,
    now: number,
  ): Difference {
    const file = this.files.get(key);
    const before = pending ?? vanished;
    // That a file is gone again says nothing about the time between.
    const isSame =
      before !== undefined && before.file === file && (pending !== undefined || file !== undefined);
    const unchangedSince = isSame ? before.unchangedSince : now;
    // What was empty so far was no version yet.
    const wasEmpty = before?.modified === undefined && before?.file?.text === '';
    const firstSeen = before && !(wasEmpty && file?.text) ? before.firstSeen : now;
    const how = before?.file && file && !isSame ? modification(before.file, file) : undefined;
    const modified = before?.modified === 'written' ? 'written' : (how ?? before?.modified);
    const { maxSettleMs } = this.#times;
    const isBrief = this.#isFirst && modified === 'replaced' && file?.text !== '';
    const longestMs = !file ? Infinity : isBrief ? Math.min(maxSettleMs, MAX_FIRST_WAIT_MS) : maxSettleMs;
    const dueAt = Math.min(unchangedSince + this.#quietMs(key, file), firstSeen + longestMs);
    return { file, firstLook: before?.firstLook ?? this.#looks, firstSeen, unchangedSince, modified, dueAt };
  }

  #quietMs(key: string, file: File | undefined): number {
    if (this.#isFirst && file?.isOld) return 0;
    if (!file?.text) return this.#times.missingGraceMs;
    return file.isOld && file.inode !== this.#known.get(key)?.inode ? 0 : this.#times.settleMs;
  }

  /** When the first report is due: it waits for what the first look saw and nobody has written since. */
  #firstDue(): number {
    const awaited = [...this.#pending.values()].filter(
      ({ firstLook, modified }) => firstLook === 1 && modified !== 'written',
    );
    return Math.max(-Infinity, ...awaited.map(({ dueAt }) => dueAt));
  }

  /** Later, one that is due waits for the others, for `settleMs` at most. */
  #toldAt({ dueAt }: Difference): number {
    if (this.#isFirst) return dueAt;
    const last = Math.max(...[...this.#pending.values()].map((each) => each.dueAt));
    return Math.min(Math.max(dueAt, last), dueAt + this.#times.settleMs);
  }

  #nextAt(): number {
    if (this.#isFirst) return this.#looks === 0 ? Infinity : this.#firstDue();
    return Math.min(Infinity, ...[...this.#pending.values()].map((each) => this.#toldAt(each)));
  }

  #tell(due: readonly (readonly [string, Difference])[], now: number): void {
    this.#isFirst = false;
    const lines = due.map(([key, { file }]) => {
      const sign = file ? (this.#known.has(key) ? '~' : '+') : '-';
      return `${sign}${key}=${file?.text ?? ''}`;
    });
    for (const [key, { file }] of due) {
      if (file) this.#known.set(key, file);
      else this.#known.delete(key);
      this.#pending.delete(key);
    }
    this.told.push({ at: now, keys: lines.sort().join(' ') });
  }
}

const keys = fc.constantFrom('a', 'b', 'c');

/** How often each of them is drawn. */
const DOES = {
  write: 3,
  'write what is known': 3,
  remove: 2,
  recreate: 2,
  rename: 1,
  empty: 1,
  'write again': 1,
} as const;
type Does = keyof typeof DOES;
const does = fc.constantFrom(
  ...(Object.keys(DOES) as Does[]).flatMap((each) => Array<Does>(DOES[each]).fill(each)),
);

const stepsOf = (afterMs: readonly number[], key: fc.Arbitrary<string>) =>
  fc.array(fc.record({ afterMs: fc.constantFrom(...afterMs), key, does }), {
    minLength: 1,
    maxLength: 24,
    size: 'max',
  });

const steps = fc.oneof(
  stepsOf([0, 1, 10, 49, 50, 51, 69, 70, 120, 400, 499, 500, 1_500], keys),
  // One that never settles.
  stepsOf([10, 20, 40, 49, 49, 70], fc.constant('a')),
);

const times = fc.record({
  settleMs: fc.constantFrom(50, 50, 0, 100),
  maxSettleMs: fc.constantFrom(120, 700),
  missingGraceMs: fc.constantFrom(500, 70, 0),
});

/** The disk, and what the reader knows of it. */
class Directory extends ScriptedScene {
  readonly path = this.at('d');
  readonly reader: Reader;

  constructor(options: Times) {
    super();
    this.reader = new Reader(options);
    mkdirSync(this.path);
  }

  /** One for whose start no time passes by itself. */
  protected override construct(path: string, options: ResilientWatcherOptions): ResilientWatcher {
    return new ResilientWatcher(path, options);
  }

  /** Returns whether it does anything. */
  change(key: string, does: Does, newText: string): boolean {
    const { files } = this.reader;
    const path = this.at(`d/${key}`);
    const before = files.get(key);
    const text = this.#textAfter(key, does, newText);
    if (text === undefined) return false;
    this.#tick();
    if (does === 'remove' || (does === 'recreate' && before)) rmSync(path);
    if (does === 'remove') {
      files.delete(key);
    } else if (does === 'rename') {
      this.#rename(path, text);
      files.set(key, { text, inode: {}, isOld: true });
    } else {
      if (!before || does === 'recreate') this.#create(path);
      writeFileSync(path, text);
      const inode = does === 'recreate' ? {} : (before?.inode ?? {});
      files.set(key, { text, inode, isOld: false });
    }
    return true;
  }

  #textAfter(key: string, does: Does, newText: string): string | undefined {
    if (does === 'remove' || does === 'write again') return this.reader.files.get(key)?.text;
    if (does === 'write what is known') return this.reader.knownText(key);
    return does === 'empty' ? '' : newText;
  }

  /** A file that is then changed in a later tick: in the same one, it could be replaced by another one with its number. */
  #create(path: string): void {
    writeFileSync(path, '');
    this.#tick();
  }

  /** The clock of the file system ticks, so that what is written now differs from what was written before. */
  #tick(): void {
    const timeNow = (): bigint => {
      writeFileSync(this.at('probe'), '');
      return lstatSync(this.at('probe'), { bigint: true }).mtimeNs;
    };
    for (const before = timeNow(); timeNow() === before;);
  }

  #rename(path: string, text: string): void {
    const timeOf = (of: string, which: 'mtimeNs' | 'ctimeNs'): bigint =>
      lstatSync(of, { bigint: true })[which];
    do {
      this.#create(this.at('next'));
      writeFileSync(this.at('next'), text);
      utimesSync(this.at('next'), 1, 1);
      renameSync(this.at('next'), path);
      // The file and its directory may be on two sides of a tick: then nothing shows the rename.
    } while (timeOf(path, 'ctimeNs') !== timeOf(this.path, 'mtimeNs'));
  }
}

test('each change of a directory is told when its quiet period is over, and with others that are due', async () => {
  const atFirst = fc.array(fc.tuple(keys, fc.constantFrom('write', 'empty', 'rename')), { maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(atFirst, steps, times, async (first, script, options) => {
      const scene = new Directory(options);
      const { clock, backend, reader } = scene;
      for (const [key, does] of first) scene.change(key, does, 'first');
      const watcher = scene.create(scene.path, { clock, backend, resyncIntervalMs: 0, ...options });
      const begin = clock.monotonic();
      const told: Told[] = [];
      watcher.on('change', ({ current, added, changed, removed }) => {
        const line = (sign: string) => (key: string) =>
          `${sign}${key}=${String(current.files.get(key)?.content ?? '')}`;
        const lines = [...added.map(line('+')), ...changed.map(line('~')), ...removed.map(line('-'))];
        told.push({ at: clock.monotonic() - begin, keys: lines.sort().join(' ') });
      });
      void watcher.start();
      await realIo();
      reader.look(0);
      let now = 0;
      const pass = async (ms: number): Promise<void> => {
        await scene.pass(ms);
        reader.passTo((now += ms));
      };
      for (const [index, { afterMs, key, does }] of script.entries()) {
        await pass(afterMs);
        if (!scene.change(key, does, `text ${index}`)) continue;
        await scene.hint(scene.at(`d/${key}`));
        reader.look(now);
      }
      await pass(5_000);
      await watcher.close();
      expect(told).toEqual(reader.told);
    }),
    { numRuns: rounds(40, 2_000) },
  );
});
