/** Other processes, stopped processes, and when the process may end. */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

import { ResilientWatcher, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { linuxOnly } from '../support/namespace.js';
import { Program, scriptPath, Transcript, WATCH, WatchingProgram } from '../support/program.js';
import { rounds, some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { isSealed, seal } from './programs/sealed.mjs';

linuxOnly();
const AWAIT_SECRET = 'test/kernel/programs/await-secret.mjs';

/** Without a resync, and never tired of waiting: what is reported, a native event led to. */
const NATIVE_ONLY = { resyncIntervalMs: 0, missingGraceMs: 600_000 } as const;

/** While a process does not run. */
const SWAPS_MEANWHILE = rounds(150, 500);

function makeVolume(options = {}): KubeletVolume {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'), options);
  volume.publish({ key: 'v0' });
  return volume;
}

describe('a process that does not run', () => {
  test('a process that was stopped during many swaps reports the newest content when it continues', async () => {
    const volume = makeVolume();
    const process = new WatchingProgram(volume.path('key'), { backend: 'fs', ...NATIVE_ONLY });
    const { transcript } = process;
    await transcript.until({ event: 'started' });
    for (const round of ['a', 'b']) {
      await process.stop();
      for (let swap = 1; swap <= SWAPS_MEANWHILE; swap += 1) volume.publish({ key: `${round}${swap}` });
      process.continue();
      await transcript.until({ event: 'change', content: `${round}${SWAPS_MEANWHILE}` });
    }
    volume.publish({ key: 'end' });
    await transcript.until({ event: 'change', content: 'end' });
    expect(transcript.contents).toEqual(['v0', `a${SWAPS_MEANWHILE}`, `b${SWAPS_MEANWHILE}`, 'end']);
  });
});

describe('when the process may end', () => {
  const kinds: ResilientWatcherOptions[] = [
    { backend: 'fs' },
    { backend: 'auto' },
    { backend: 'poll' },
    { backend: 'fs', resyncIntervalMs: 0 },
  ];

  test.each(some(kinds, 4, 1))('with persistent: false it ends by itself, with %o', async (options) => {
    for (const path of [makeVolume().path('key'), join(temporaryDirectory(), 'missing', 'key')]) {
      const process = new WatchingProgram(path, { ...options, persistent: false });
      await process.transcript.until({ event: 'started' });
      expect((await process.finished()).code).toBe(0);
      expect(process.transcript.of('closed')).toEqual([]);
    }
  });

  test('not while somebody awaits a first value, although its file does not keep it alive', async () => {
    const root = temporaryDirectory();
    symlinkSync(join(root, 'nowhere'), join(root, 'link'));
    const asked = new Program(AWAIT_SECRET, [join(root, 'link', 'password'), 'get']);
    expect(await asked.finished()).toMatchObject({ code: 0, stdout: 'waiting\nERR_SECRET_UNAVAILABLE\n' });

    const path = join(root, 'password');
    const waiting = new Program(AWAIT_SECRET, [path, 'ready']);
    await waiting.until(/waiting/);
    writeFileSync(path, 'secret');
    expect(await waiting.finished()).toMatchObject({ code: 0, stdout: 'waiting\nsecret\n' });
  });

  test.each(some<ResilientWatcherOptions>([...kinds, { backend: 'parcel' }], 3, 2))(
    'otherwise it stays until close(), and then ends by itself, with %o',
    async (options) => {
      const volume = makeVolume();
      const process = new WatchingProgram(volume.path('key'), { pollIntervalMs: 10, ...options });
      await process.transcript.until({ event: 'started' });
      volume.publish({ key: 'v1' });
      await process.transcript.until({ event: 'change', content: 'v1' });
      process.close();
      expect((await process.finished()).code).toBe(0);
      expect(process.transcript.events.at(-1)).toEqual({ event: 'closed' });
    },
  );
});

test("a worker thread watches with 'auto', and ends when it has closed", async () => {
  const volume = makeVolume();
  const argv = [volume.path('key'), JSON.stringify({ backend: 'auto', ...NATIVE_ONLY })];
  const worker = new Worker(scriptPath(WATCH), { argv, stdout: true, stderr: true });
  onTestFinished(async () => {
    await worker.terminate();
  });
  const exit = new Promise((resolve) => worker.once('exit', resolve));
  const transcript = new Transcript(worker);
  expect(await transcript.until({ event: 'started' })).toMatchObject({ state: 'watching', degraded: null });
  for (const version of ['v1', 'v2', 'v3']) {
    volume.publish({ key: version });
    await transcript.until({ event: 'change', content: version });
  }
  worker.postMessage('close');
  expect(await exit).toBe(0);
  expect(transcript.contents).toEqual(['v0', 'v1', 'v2', 'v3']);
  expect(transcript.of('closed')).toHaveLength(1);
});

describe('while another process writes at full speed', () => {
  // A writer that pauses cannot be distinguished from one that has ended, and the kernel shows bytes a moment before
  // it reports them. So files settle on fake time: none of it passes while the writer works, however long the machine
  // stalls it, and enough passes when it is done.
  test.each(['truncate', 'unlink', 'chmod'])(
    'in place (%s, then several pieces): no partial file is ever reported',
    async (manner) => {
      const settleMs = 50;
      const graceMs = 1_000_000;
      const file = join(temporaryDirectory(), 'app.yaml');
      writeFileSync(file, seal(0));
      const clock = new FakeClock();
      const options = { clock, settleMs, maxSettleMs: graceMs, missingGraceMs: graceMs, resyncIntervalMs: 0 };
      const watcher = new ResilientWatcher(file, { backend: 'fs', ...options });
      onTestFinished(() => watcher.close());
      const reported: string[] = [];
      watcher.on('change', ({ current }) => reported.push(String(current.content)));
      await watcher.start();

      const bursts = rounds(4, 20);
      const writer = new Program('test/kernel/programs/write-in-place.mjs', [
        file,
        manner,
        `${bursts}`,
        '50',
      ]);
      let whole = 0;
      writer.child.stdout.on('data', (lines) => (whole += String(lines).split('\n').length - 1));
      for (let burst = 1; burst <= bursts; burst += 1) {
        while (whole < burst) await clock.advance(0); // checks are taken
        expect(reported.slice(burst)).toEqual([]);
        const text = readFileSync(file, 'utf8');
        expect(isSealed(text)).toBe(true);
        await watcher.check();
        await clock.advance(settleMs);
        await watcher.idle();
        expect(reported.at(-1)).toBe(text);
        writer.child.stdin.write('go on\n');
      }
      expect(await writer.exit).toBe(0);
      expect(reported).toEqual(Array.from({ length: bursts + 1 }, (_, burst) => seal(burst * 50)));
    },
  );
});
