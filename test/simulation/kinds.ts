/** The kinds of schedules: what is watched, and who changes it. */
import type { ResilientWatcherOptions } from '../../src/index.js';
import { exists, type Fs } from './actors/calls.js';
import { editor, EDITS, type Edit } from './actors/editors.js';
import { CSI_DRIVER, KUBELET, OLD_KUBELET, publisher, SLOW_DRIVER, type Payload } from './actors/volumes.js';
import type { Habit } from './consumers/habits.js';
import type { Watched } from './consumers/watching.js';
import type { Needs } from './readability.js';
import * as views from './views.js';
import type { World } from './world.js';

/** A watched target on a machine, with its publishers. */
export interface Scene extends Watched {
  /** What is there now. */
  readonly see: (fs: Fs) => views.View;
  /** Whether something happens that no event tells, so that only a resync finds it. */
  readonly isSilent?: boolean;
  /** Whether something keeps the watcher from being told of events, so that it polls for a while. */
  readonly isDeafened?: boolean;
  /** Whether somebody writes all the time, for whom the first report must not wait. */
  readonly isLogged?: boolean;
  /** How late events are, ms; 0 by default. */
  readonly lateMs?: number;
  /** How long a change is held that is neither a loss nor empty, ms; `SETTLE_MS` by default. */
  readonly heldMs?: number | undefined;
  /** Whether all units are reported when the last of them is due; unless it is a tree, by default. */
  readonly areTogether?: boolean;
  /** What a program does with it; `HABITS` by default. */
  readonly habits?: Readonly<Record<string, Habit>>;
  /** What is read, if somebody takes permissions away. */
  readonly needs?: (fs: Fs) => Needs;
}

/** The default of `settleMs`. */
export const SETTLE_MS = 50;

/** The default of `groupSettleMs`. */
export const GROUP_SETTLE_MS = 200;

/** The default of `missingGraceMs`: for what belongs together and may lose a file without a swap to another revision. */
export const GRACE_MS = 500;

/** What a swap publishes is told in the turn of its event. */
export const AT_ONCE = 0;

export type Kind = (world: World) => Scene;

export const VOLUME = '/m/v';
const OTHER = '/m/w';
export const FILES = '/m/d';
export const KEYS = ['a', 'certs/crt', 'certs/key'];

const MANNERS = [KUBELET, OLD_KUBELET, CSI_DRIVER, SLOW_DRIVER];
export const PAUSES_MS = [0, 1, 7, 30, 80, 300, 700, 2_500];

/** Directories that are there from the beginning. */
export function directories(world: World, ...paths: string[]): void {
  const { fs } = world.machine.process();
  for (const path of paths) if (!exists(fs, path)) fs.mkdirSync(path, 0o755);
}

/** What is published one after another, up to three times. */
export function payloads(
  { choices, canBeEmptied }: World,
  keys: readonly string[],
  first = 0,
  count = 1 + choices.choose(3),
): Payload[] {
  const all: Payload[] = [];
  for (let revision = first; revision < first + count; revision += 1) {
    const before = all.at(-1);
    const payload = new Map<string, string>();
    all.push(payload);
    if (canBeEmptied && choices.choose(3) === 1) continue;
    for (const key of keys) {
      // Now and then a key is left out, or stays the same.
      const what = choices.choose(3, 0.2);
      if (what === 1 && key !== keys[0]) continue;
      const same = what === 2 ? before?.get(key) : undefined;
      payload.set(key, same ?? `${key}@${revision}`);
    }
  }
  return all;
}

/** How long the publisher waits before each of them, ms. */
export function pausesOf({ choices }: World, published: readonly Payload[]): number[] {
  return published.map(() => choices.oneOf(PAUSES_MS));
}

/** A volume, published up to three times. */
export function volume(world: World, directory: string, keys = KEYS): void {
  const { choices } = world;
  const count = 1 + choices.choose(3);
  const manner = choices.oneOf(MANNERS);
  const published = payloads(world, keys, 0, count);
  const pauses = pausesOf(world, published);
  world.actor(manner.name, (fs) => publisher({ fs, world, directory, manner }, published, pauses));
}

/** Files that several programs edit. Returns how. */
export function files(world: World, paths: readonly string[], edits = Object.keys(EDITS)): readonly Edit[] {
  const { choices } = world;
  const list: Edit[] = [];
  for (let count = 1 + choices.choose(3); count > 0; count -= 1) {
    list.push({
      edit: choices.oneOf(edits),
      path: choices.oneOf(paths),
      // Each piece that is written differs from what was there, and programs that replace a file change its length.
      text: `${count} one ${count} two ${count} six ${count}`,
      pauseMs: choices.oneOf([0, 2, 20, 45, 80, 700]),
      beforeMs: choices.oneOf(PAUSES_MS),
    });
  }
  world.actor('editor', (fs) => editor(fs, world, list));
  return list;
}

/** Options that all targets have. */
export function options({ choices, backend }: World): ResilientWatcherOptions {
  // With `parcel`, a resync may find a change before its event comes.
  const resyncIntervalMs = choices.oneOf(backend === 'fs' ? [0, 5_000, 400] : [0]);
  return { resyncIntervalMs, backend };
}

const isFromVolume = (unit: string) => (): string => unit;

export const KINDS: Readonly<Record<string, Kind>> = {
  key(world) {
    directories(world, '/m', VOLUME);
    volume(world, VOLUME);
    const path = `${VOLUME}/${world.choices.oneOf(['a', 'certs/key'])}`;
    return {
      path,
      options: options(world),
      heldMs: AT_ONCE,
      unitOf: isFromVolume(VOLUME),
      see: (fs) => views.file(fs, path),
    };
  },

  volume(world) {
    directories(world, '/m', VOLUME);
    volume(world, VOLUME);
    return {
      path: VOLUME,
      options: options(world),
      heldMs: AT_ONCE,
      unitOf: isFromVolume(VOLUME),
      see: (fs) => views.directory(fs, VOLUME, false),
    };
  },

  inside(world) {
    directories(world, '/m', VOLUME);
    volume(world, VOLUME);
    const path = `${VOLUME}/certs`;
    return {
      path,
      options: options(world),
      heldMs: AT_ONCE,
      unitOf: isFromVolume(VOLUME),
      see: (fs) => views.inside(fs, path),
    };
  },

  group(world) {
    directories(world, '/m', VOLUME);
    volume(world, VOLUME);
    const paths = [`${VOLUME}/a`, `${VOLUME}/certs/key`, `${VOLUME}/certs/crt`];
    return {
      path: paths,
      options: options(world),
      heldMs: AT_ONCE,
      unitOf: isFromVolume(VOLUME),
      see: (fs) => views.group(fs, paths),
    };
  },

  groups(world) {
    directories(world, '/m', VOLUME, OTHER, FILES);
    volume(world, VOLUME, ['a', 'certs/key']);
    volume(world, OTHER, ['a', 'b']);
    files(world, [`${FILES}/f`]);
    const paths = [`${VOLUME}/a`, `${VOLUME}/certs/key`, `${OTHER}/a`, `${OTHER}/b`, `${FILES}/f`];
    return {
      path: paths,
      options: options(world),
      heldMs: GROUP_SETTLE_MS,
      unitOf: unitOfPath,
      see: (fs) => views.group(fs, paths),
    };
  },

  /** A tree on a volume. */
  on(world) {
    directories(world, '/m', VOLUME);
    volume(world, VOLUME);
    return {
      path: VOLUME,
      options: { ...options(world), recursive: true },
      isTree: true,
      heldMs: AT_ONCE,
      unitOf: isFromVolume(VOLUME),
      see: (fs) => views.directory(fs, VOLUME, true),
    };
  },

  /** A tree around volumes, with plain files and links that lead into a volume. */
  around(world) {
    directories(world, '/m', VOLUME, OTHER, FILES, '/m/l');
    const { fs } = world.machine.process();
    fs.symlinkSync('../v/a', '/m/l/a');
    fs.symlinkSync('../v/certs/key', '/m/l/key');
    volume(world, VOLUME, ['a', 'certs/key']);
    volume(world, OTHER, ['a']);
    files(world, [`${FILES}/f`, `${FILES}/g`, '/m/h']);
    return {
      path: '/m',
      options: { ...options(world), recursive: true },
      isTree: true,
      unitOf: (key) => unitOfPath(`/m/${key}`),
      see: (observer) => views.directory(observer, '/m', true),
    };
  },

  /** A plain directory with links that lead into a volume. */
  links(world) {
    directories(world, '/m', VOLUME, FILES);
    const { fs } = world.machine.process();
    fs.symlinkSync('../v/a', `${FILES}/a`);
    fs.symlinkSync('../v/certs/key', `${FILES}/key`);
    volume(world, VOLUME, ['a', 'certs/key']);
    files(world, [`${FILES}/f`]);
    return {
      path: FILES,
      options: options(world),
      isTree: true,
      unitOf: (key) => (key === 'a' || key === 'key' ? VOLUME : `${FILES}/${key}`),
      see: (observer) => views.directory(observer, FILES, false),
    };
  },

  file(world) {
    directories(world, '/m', FILES);
    files(world, [`${FILES}/f`]);
    return {
      path: `${FILES}/f`,
      options: options(world),
      unitOf: isFromVolume(`${FILES}/f`),
      see: (fs) => views.file(fs, `${FILES}/f`),
    };
  },

  directory(world) {
    directories(world, '/m', FILES);
    files(world, [`${FILES}/f`, `${FILES}/g`, `${FILES}/h`]);
    return {
      path: FILES,
      options: options(world),
      unitOf: (key) => `${FILES}/${key}`,
      see: (fs) => views.directory(fs, FILES, false),
    };
  },

  tree(world) {
    directories(world, '/m', FILES, `${FILES}/e`);
    files(world, [`${FILES}/f`, `${FILES}/e/f`, '/m/g']);
    return {
      path: '/m',
      options: { ...options(world), recursive: true },
      isTree: true,
      unitOf: (key) => `/m/${key}`,
      see: (fs) => views.directory(fs, '/m', true),
    };
  },
};

/** Volumes that lose all of their keys: kubelet publishes an empty one for an optional object that is deleted. */
export const emptied: Kind = (world) => {
  world.canBeEmptied = true;
  const names = new Set(['around', 'links', 'on', 'key', 'volume', 'inside', 'group', 'groups']);
  const kinds = Object.entries(KINDS).filter(([name]) => names.has(name));
  return world.choices.oneOf(kinds.map(([, kind]) => kind))(world);
};

/** In `/m`, keys of a volume and links into it belong together. */
export function unitOfPath(path: string): string {
  if (path.startsWith('/m/l/')) return VOLUME;
  return [VOLUME, OTHER].find((each) => path.startsWith(`${each}/`)) ?? path;
}

export function rename(view: views.View, to: (key: string) => string): views.View {
  return new Map([...view].map(([key, text]) => [to(key), text]));
}
