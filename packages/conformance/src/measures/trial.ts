/** A program that watches keys of a volume, with what it has printed and when. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { newBundle, sha256 } from '../contents.js';
import { Disk } from '../disk.js';
import { Guardian } from '../guardian.js';
import { KubeletVolume } from '../kubelet.js';
import { TestedProgram, type LineFormat } from '../tested-program.js';

/** What is measured, and how its lines are read. */
export interface Subject {
  readonly command: readonly string[];
  readonly lines: LineFormat;
  readonly signal: AbortSignal;
}

const POLL_MS = 2;
/** How long a program may take to start, ms. */
const START_MS = 60_000;

export class Trial {
  readonly directory = mkdtempSync(join(tmpdir(), 'conformance-'));
  readonly volume = new KubeletVolume(new Disk(() => {}), join(this.directory, 'volume'));
  /** Each line that was a digest, with its time, in their order. */
  readonly lines: { readonly digest: string; readonly at: number }[] = [];
  ended: string | undefined;
  readonly #guardian = new Guardian(this.directory);
  readonly #signal: AbortSignal;
  readonly #subject: Subject;
  #program: TestedProgram | undefined;
  #contents: Record<string, string> = {};

  constructor(subject: Subject) {
    this.#subject = subject;
    this.#signal = subject.signal;
    chmodSync(this.directory, 0o755);
  }

  /** The numbers of the processes of the program. */
  get processes(): string[] {
    return this.#program?.processes ?? [];
  }

  /** Contents that any watcher can parse: a key with a certificate. */
  content(): string {
    return newBundle('watch-conformance');
  }

  /** Publishes the keys with new contents, and returns when the swap began, ms. */
  publish(changed: Readonly<Record<string, string>>): number {
    this.#contents = { ...this.#contents, ...changed };
    let before = performance.now();
    let swapped = before;
    for (const { name } of this.volume.steps(this.#contents)) {
      if (name === 'rename') swapped = before;
      before = performance.now();
    }
    return swapped;
  }

  /** Starts the program with these paths, each an argument of its own in place of `{path}`. */
  start(
    paths: readonly string[],
    { env, prefix = [] }: { env?: Readonly<Record<string, string>>; prefix?: readonly string[] } = {},
  ): void {
    const { command, lines } = this.#subject;
    this.#program = new TestedProgram({
      command: [...prefix, ...command.flatMap((part) => argumentsOf(part, paths))],
      lines,
      ...(env && { env }),
      onDigest: (digest) => this.lines.push({ digest, at: performance.now() }),
      onOther: () => {},
      onEnd: (reason) => (this.ended ??= reason),
    });
    this.#guardian.watch(this.#program.group);
  }

  /** Ends the program, and starts it again, on the same files. */
  async restart(...again: Parameters<Trial['start']>): Promise<void> {
    await this.#program?.kill();
    this.ended = undefined;
    this.start(...again);
  }

  /** The SHA-256 of what a key has now. */
  digestOf(key: string): string {
    return sha256(this.#contents[key] ?? '');
  }

  /** Resolves to when a line with this digest came that is not among the first `from`, or to undefined. */
  async shown(digest: string, { ms = START_MS, from = 0 } = {}): Promise<number | undefined> {
    const deadline = performance.now() + ms;
    for (;;) {
      const line = this.lines.slice(from).find((each) => each.digest === digest);
      if (line) return line.at;
      if (this.ended !== undefined || performance.now() > deadline) return undefined;
      await this.pause(POLL_MS);
    }
  }

  /** Publishes new contents of a key, waits until they are shown, and resolves to the time from the swap, ms. */
  async update(key: string, ms: number): Promise<number | undefined> {
    const content = this.content();
    const from = this.lines.length;
    const swapped = this.publish({ [key]: content });
    const at = await this.shown(sha256(content), { ms, from });
    return at === undefined ? undefined : at - swapped;
  }

  pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#signal });
  }

  async close(): Promise<void> {
    await this.#program?.kill();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
    await this.#guardian.dismiss();
  }
}

function argumentsOf(part: string, paths: readonly string[]): string[] {
  return part.includes('{path}') ? paths.map((path) => part.replaceAll('{path}', path)) : [part];
}
