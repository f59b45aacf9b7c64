import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import type { Clock } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';

import { seal } from '../kernel/programs/sealed.mjs';
import type { Chance } from './chance.js';

/** One turn of the event loop: the events that the kernel has queued are handled, and checks may run. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What a reader finds at a path. */
type OnDisk = { readonly content: string } | 'missing' | 'directory' | 'unreadable';

/**
 * Files to which everything happens that may happen to a mounted configuration. Between two calls of `disturb` every
 * readable content is a whole sealed text; within one, others run too and may see parts.
 */
export class World {
  readonly #root: string;
  readonly #chance: Chance;
  readonly #clock: Clock;
  #texts = 0;
  #asides = 0;

  constructor(root: string, chance: Chance, clock: Clock) {
    this.#root = root;
    this.#chance = chance;
    this.#clock = clock;
    for (const directory of ['a/b', 'other', 'plain', 'links'])
      mkdirSync(this.#at(directory), { recursive: true });
    this.#retarget();
  }

  /** What is worth watching. */
  get targets(): string[] {
    return [
      'a/b/volume/app.yaml',
      'a/b/volume/conf.d/nested.yaml',
      'other/volume/app.yaml',
      'links/current/volume/app.yaml',
      'links/current/volume/conf.d/nested.yaml',
      'plain/app.yaml',
      'late/x/y/app.yaml',
    ].map((path) => this.#at(path));
  }

  observe(path: string): OnDisk {
    try {
      return { content: readFileSync(path, 'utf8') };
    } catch (error) {
      const { code } = error as { code?: string };
      return code === 'ENOENT' ? 'missing' : code === 'EISDIR' ? 'directory' : 'unreadable';
    }
  }

  /** Does one thing, and says what. */
  async disturb(): Promise<string> {
    const name = this.#chance.pick(Object.keys(this.#disturbances));
    await this.#disturbances[name]?.();
    return name;
  }

  readonly #disturbances: Readonly<Record<string, () => void | Promise<void>>> = {
    publish: () => this.#publish(Infinity),
    'publish again': () => this.#publish(Infinity),
    'publish and crash': () => this.#publish(this.#chance.below(25)),
    'remove a volume': () => rmSync(this.#volumeDirectory(), { recursive: true, force: true }),
    'rename an ancestor away': () =>
      this.#setAside(this.#chance.pick(['a', 'a/b', 'other', 'plain', 'links'])),
    'swap two ancestors': () => this.#exchange('a/b', 'other'),
    'retarget a link': () => this.#retarget(),
    'write in place': () => this.#write('w'),
    'unlink and write': () => {
      rmSync(this.#plain, { recursive: true, force: true });
      return this.#write('wx');
    },
    'replace by rename': () => this.#replace(),
    'replace by itself': () => this.#replaceBySame(),
    unlink: () => rmSync(this.#plain, { recursive: true, force: true }),
    'put a directory in its place': () => {
      rmSync(this.#plain, { recursive: true, force: true });
      mkdirSync(this.#plain, { recursive: true });
    },
    'put a loop in its place': () => {
      rmSync(this.#plain, { recursive: true, force: true });
      mkdirSync(dirname(this.#plain), { recursive: true });
      symlinkSync('app.yaml', this.#plain);
    },
    'touch and chmod': () => this.#touch(),
    noise: () => this.#noise(),
    'come late': () => this.#comeLate(),
    'leave early': () => rmSync(this.#at(this.#chance.pick(['late', 'late/x', 'late/x/y'])), removal),
  };

  get #plain(): string {
    return this.#at('plain/app.yaml');
  }

  #at(path: string): string {
    return join(this.#root, path);
  }

  /** A text that never was before. */
  #text(): string {
    return seal((this.#texts += 1));
  }

  #volumeDirectory(): string {
    return this.#at(this.#chance.pick(['a/b/volume', 'a/b/volume', 'other/volume']));
  }

  async #publish(steps: number): Promise<void> {
    const volume = new KubeletVolume(this.#volumeDirectory(), {
      swap: this.#chance.pick(['rename', 'remove']),
      links: this.#chance.pick(['after', 'before']),
      keepOldRevisions: this.#chance.oneIn(5),
      clock: this.#clock,
      random: this.#chance.next,
    });
    rmSync(volume.path('..data_tmp'), { force: true }); // what a crash left
    const files: Record<string, string> = {};
    for (const key of ['app.yaml', 'conf.d/nested.yaml']) {
      const before = this.observe(volume.path(key));
      if (this.#chance.oneIn(8)) continue;
      files[key] = this.#chance.oneIn(4) && typeof before === 'object' ? before.content : this.#text();
    }
    const hurried = this.#chance.oneIn(2);
    let left = steps;
    for (const _ of volume.steps(files)) {
      if ((left -= 1) < 0) break;
      if (!hurried && this.#chance.oneIn(3)) await turn();
    }
  }

  #setAside(path: string): void {
    if (!existsSync(this.#at(path))) return;
    const aside = this.#at(`aside-${(this.#asides += 1)}`);
    renameSync(this.#at(path), aside);
    if (this.#chance.oneIn(2)) {
      mkdirSync(dirname(this.#at(path)), { recursive: true });
      renameSync(aside, this.#at(path));
    } else rmSync(aside, removal);
    if (path === 'links' && !existsSync(this.#at(path))) this.#retarget();
  }

  #exchange(one: string, other: string): void {
    if (!existsSync(this.#at(one)) || !existsSync(this.#at(other))) return;
    const aside = this.#at('exchange');
    renameSync(this.#at(one), aside);
    renameSync(this.#at(other), this.#at(one));
    renameSync(aside, this.#at(other));
  }

  #retarget(): void {
    const link = this.#at('links/current');
    const target = this.#chance.pick(['../a/b', '../other', '../a/../other', this.#at('a/b'), 'nowhere']);
    mkdirSync(dirname(link), { recursive: true });
    if (this.#chance.oneIn(2)) {
      rmSync(link, { force: true });
      symlinkSync(target, link);
    } else {
      symlinkSync(target, `${link}.next`);
      renameSync(`${link}.next`, link);
    }
  }

  async #write(flags: 'w' | 'wx'): Promise<void> {
    const there = this.observe(this.#plain);
    if (there === 'directory' || there === 'unreadable') return;
    mkdirSync(dirname(this.#plain), { recursive: true });
    const bytes = Buffer.from(this.#text());
    const fd = openSync(this.#plain, flags);
    const piece = Math.ceil(bytes.length / 3);
    for (let at = 0; at < bytes.length; at += piece) {
      if (this.#chance.oneIn(2)) await turn();
      writeSync(fd, bytes.subarray(at, at + piece));
    }
    closeSync(fd);
  }

  #replace(): void {
    rmSync(this.#plain, { recursive: true, force: true });
    mkdirSync(dirname(this.#plain), { recursive: true });
    writeFileSync(`${this.#plain}.next`, this.#text());
    renameSync(`${this.#plain}.next`, this.#plain);
  }

  #replaceBySame(): void {
    const now = this.observe(this.#plain);
    if (typeof now !== 'object') return;
    writeFileSync(`${this.#plain}.next`, now.content);
    renameSync(`${this.#plain}.next`, this.#plain);
  }

  #touch(): void {
    for (const target of this.targets) {
      if (typeof this.observe(target) !== 'object') continue;
      utimesSync(target, this.#chance.below(2 ** 31), this.#chance.below(2 ** 31));
      chmodSync(target, this.#chance.pick([0o600, 0o644]));
      chmodSync(dirname(target), this.#chance.pick([0o700, 0o755]));
    }
  }

  #noise(): void {
    for (const directory of ['.', 'a', 'a/b', 'a/b/volume', 'plain', 'links', 'late']) {
      if (!existsSync(this.#at(directory))) continue;
      const noise = this.#at(join(directory, 'noise'));
      for (let time = 0; time < 5; time += 1) {
        writeFileSync(noise, '');
        unlinkSync(noise);
      }
    }
  }

  #comeLate(): void {
    const directory = this.#at('late/x/y');
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'next'), this.#text());
    renameSync(join(directory, 'next'), join(directory, 'app.yaml'));
  }
}

const removal = { recursive: true, force: true } as const;
