/** Publishers of volumes: kubelet, in its order of today and of earlier releases, and CSI drivers. */
import type { World, Steps } from '../world.js';
import { exists, makeDirectories, removeAll, write, type Fs } from './calls.js';

/** The content of each key. */
export type Payload = ReadonlyMap<string, string>;

/** How `..data` is retargeted, and when the links of the keys are made. */
export interface Manner {
  readonly name: string;
  /** kubelet made the links of new keys before the swap until 1.28, and makes them after it since then. */
  readonly links: 'before' | 'after';
  /** By `rename`, or by removing the link and creating it again after so many ms. */
  readonly gapMs: number | undefined;
  /** Whether the old revision is removed. */
  readonly isTidy: boolean;
  /** To whom the files are given before the swap. */
  readonly group?: number;
}

export const KUBELET: Manner = { name: 'kubelet', links: 'after', gapMs: undefined, isTidy: true };
export const OLD_KUBELET: Manner = { name: 'kubelet 1.28', links: 'before', gapMs: undefined, isTidy: true };
export const CSI_DRIVER: Manner = { name: 'CSI driver', links: 'before', gapMs: 0, isTidy: true };
export const SLOW_DRIVER: Manner = { name: 'CSI driver', links: 'before', gapMs: 60, isTidy: false };

/** What is published, and how. */
export interface Publication {
  readonly fs: Fs;
  readonly world: World;
  readonly directory: string;
  /** What the volume is for those who watch it, if that is not its directory. */
  readonly unit?: string;
  readonly manner: Manner;
  /** The links in each revision: where they lead, by key. */
  readonly links?: Readonly<Record<string, string>>;
}

/** One publication: what kubelet's AtomicWriter does for one payload. */
export function* publish(publication: Publication, revision: string, payload: Payload): Steps {
  const { fs, world, directory, unit = directory, manner, links = {} } = publication;
  const path = `${directory}/${revision}`;
  const link = `${directory}/..data`;
  const old = exists(fs, link) ? fs.readlinkSync(link) : undefined;
  yield;
  fs.mkdirSync(path, 0o700);
  yield;
  fs.chmodSync(path, 0o755);
  yield;
  for (const [key, text] of payload) {
    const above = key.lastIndexOf('/');
    if (above > 0) yield* makeDirectories(fs, `${path}/${key.slice(0, above)}`);
    yield* write(fs, `${path}/${key}`, text);
    if (manner.group === undefined) continue;
    fs.chmodSync(`${path}/${key}`, 0o440);
    yield;
    fs.chownSync(`${path}/${key}`, -1, manner.group);
    yield;
  }
  for (const [key, target] of Object.entries(links)) {
    fs.symlinkSync(target, `${path}/${key}`);
    yield;
  }
  const keys = [...payload.keys(), ...Object.keys(links)];
  const tops = new Set(keys.map((key) => key.split('/', 1).join()));
  const missing = [...tops].filter((top) => !exists(fs, `${directory}/${top}`));
  if (manner.links === 'before') yield* makeLinks(fs, directory, missing);
  // What is linked after the swap is complete with the last link.
  const late = manner.links === 'after' ? missing : [];
  if (late.length > 0) world.begins(unit);
  yield* swap(publication, revision);
  yield* makeLinks(fs, directory, late, () => world.ends(unit));
  if (missing.length > 0) yield;
  for (const { name } of fs.readdirSync(directory, { withFileTypes: true })) {
    if (name.startsWith('..') || tops.has(name)) continue;
    fs.unlinkSync(`${directory}/${name}`);
    yield;
  }
  if (manner.isTidy && old !== undefined) yield* removeAll(fs, `${directory}/${old}`);
}

function* makeLinks(
  fs: Fs,
  directory: string,
  names: readonly string[],
  atLast: () => void = () => undefined,
): Steps {
  for (const [index, name] of names.entries()) {
    fs.symlinkSync(`..data/${name}`, `${directory}/${name}`);
    if (index === names.length - 1) atLast();
    yield;
  }
}

function* swap({ fs, world, directory, unit = directory, manner }: Publication, revision: string): Steps {
  const { gapMs } = manner;
  const link = `${directory}/..data`;
  if (gapMs === undefined) {
    fs.symlinkSync(revision, `${link}_tmp`);
    yield;
    fs.renameSync(`${link}_tmp`, link);
    yield;
    return;
  }
  world.begins(unit);
  if (exists(fs, link)) {
    fs.unlinkSync(link);
    yield gapMs;
  }
  fs.symlinkSync(revision, link);
  world.ends(unit);
  yield;
}

/** Publishes one payload after another. @param pauses before each of them, ms. */
export function* publisher(
  at: Publication,
  payloads: readonly Payload[],
  pauses: readonly number[],
  first = 0,
): Steps {
  for (const [index, payload] of payloads.entries()) {
    yield pauses[index] ?? 0;
    yield* publish(at, `..2030_01_01_00_00_0${(first + index) % 10}.${1000 + first + index}`, payload);
  }
}
