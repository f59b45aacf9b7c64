/**
 * An administrator who mounts something over what programs write, or over the directory that it is in, and unmounts it again.
 * Readers are in a container, and do not see it.
 */
import { CREATE, exists, type Fs } from '../actors/calls.js';
import { Errno } from '../machine/machine.js';
import type { Mount } from '../machine/mounts.js';
import { Violation, type World } from '../world.js';

/** What is mounted: this directory, or a file of it. */
const KEPT = '/kept';
const FILE = `${KEPT}/deep/b`;

export class Mounting {
  /** Whether the kernel says on which mount a descriptor is. */
  readonly hasMountIds: boolean;
  readonly #world: World;
  /** Of a container. */
  readonly #fs: Fs;
  readonly #path: string;
  readonly #isVolume: boolean;
  readonly #mounts: { readonly mount: Mount; readonly point: string }[] = [];
  /** What has to stay as it is, by path. */
  readonly #kept = new Map<string, string>();

  /** @param path of the file or volume. @param uid the user of all programs. */
  constructor(world: World, path: string, isVolume: boolean, uid: number) {
    const { choices, machine } = world;
    const { fs } = machine.process();
    this.#world = world;
    this.#fs = machine.process({ isContained: true }).fs;
    this.#path = path;
    this.#isVolume = isVolume;
    this.hasMountIds = choices.choose(3) !== 2;
    fs.mkdirSync(KEPT, 0o755);
    if (choices.choose(3) === 2) machine.mount(KEPT, { type: 'tmpfs' });
    fs.mkdirSync(`${KEPT}/deep`, 0o755);
    for (const file of [`${KEPT}/a`, FILE]) {
      const fd = fs.openSync(file, CREATE, 0o644);
      fs.writeSync(fd, Buffer.from('kept'), 0, 4, null);
      fs.closeSync(fd);
    }
    for (const each of [KEPT, `${KEPT}/deep`, `${KEPT}/a`, FILE]) fs.chownSync(each, uid, uid);
    this.#kept.set(KEPT, treeOf(this.#fs, KEPT));
  }

  /** @param isAtRest nobody writes. */
  mount(isAtRest: boolean): void {
    const { choices } = this.#world;
    for (let count = 1 + choices.choose(2, 0.3); count > 0; count -= 1) {
      const points = this.#points();
      if (points.length > 0) this.#mountOn(choices.oneOf(points), isAtRest);
    }
  }

  /** The newest first. */
  unmount(): void {
    for (const { point } of this.#mounts) this.#kept.delete(point);
    for (const { mount, point } of this.#mounts.splice(0).reverse()) {
      this.#world.note('administrator', `unmounts ${point}`);
      this.#world.machine.unmount(mount);
    }
  }

  /** @throws {Violation} if something that is mounted has changed. */
  check(): void {
    for (const [path, before] of this.#kept) {
      const now = treeOf(this.#fs, path);
      if (now !== before) throw new Violation(10, `what is mounted is ${now} instead of ${before}`);
    }
  }

  /**
   * After a write or a clear that began while something was mounted.
   * @param refusal why it has failed. @param left what it could not remove.
   * @throws {Violation} if that is wrong, or more is left than has to be.
   */
  checkErrors(refusal: unknown, left: unknown): void {
    const isOnFile = !this.#isVolume && this.#mounts.some(({ point }) => point === this.#path);
    if (isOnFile) assertSaid(refusal, 'rename');
    else if (refusal !== undefined && refusal !== left) throw refusal as Error;
    const revisions = this.#oldRevisions();
    if (revisions.length > 0) assertSaid(left, 'remove');
    else if (left) throw new Violation(10, `nothing is mounted in a revision, but: ${JSON.stringify(left)}`);
    const isIn = (revision: string): boolean =>
      this.#mounts.some(({ point }) => `${point}/`.startsWith(`${this.#path}/${revision}/`));
    for (const each of revisions)
      if (!isIn(each)) throw new Violation(10, `nothing is mounted in ${each}, and it is left`);
  }

  /** After a write that began when all was unmounted. @throws {Violation} if an old revision is left. */
  checkSwept(): void {
    this.check();
    const revisions = this.#oldRevisions();
    if (revisions.length > 0) throw new Violation(10, `${revisions.join()} is left`);
  }

  /** The revisions that readers do not see. */
  #oldRevisions(): string[] {
    if (!this.#isVolume || !exists(this.#fs, this.#path)) return [];
    const entries = this.#fs.readdirSync(this.#path, { withFileTypes: true });
    const link = `${this.#path}/..data`;
    const current = exists(this.#fs, link) ? this.#fs.readlinkSync(link) : undefined;
    return entries.filter((entry) => entry.isDirectory() && entry.name !== current).map(({ name }) => name);
  }

  #points(): string[] {
    const points = [this.#path.slice(0, this.#path.lastIndexOf('/'))];
    if (!exists(this.#fs, this.#path)) return points;
    const pending = this.#pending();
    const inside = below(this.#fs, this.#path).filter(
      (path) => !pending.some((each) => path.startsWith(each)),
    );
    return [...points, this.#path, ...inside];
  }

  /** The revisions that are being written: nobody but the writer knows their names. */
  #pending(): string[] {
    if (!this.#isVolume) return [];
    const entries = this.#fs.readdirSync(this.#path, { withFileTypes: true });
    // A sweep asks the time with files of such names.
    const links = entries.filter((entry) => entry.isSymbolicLink() && entry.name.startsWith('..data_tmp-'));
    return links.map(({ name }) => `${this.#path}/${this.#fs.readlinkSync(`${this.#path}/${name}`)}`);
  }

  /** What is in the directory itself is replaced, so nothing else is mounted there. */
  #mountOn(point: string, isAtRest: boolean): void {
    const { choices, machine } = this.#world;
    const isTarget = point === this.#path;
    const isDirectory = isDirectoryAt(this.#fs, point);
    const isHome = isDirectory && (isTarget || !point.startsWith(this.#path));
    const isItself = isHome || choices.choose(3) === 2;
    const source = isItself ? point : isDirectory ? KEPT : FILE;
    try {
      this.#mounts.push({
        mount: machine.mount(point, { type: 'none', bind: source, isPrivate: true }),
        point,
      });
    } catch (error) {
      // It is covered by the first one.
      if (error instanceof Errno) return;
      throw error;
    }
    this.#world.note('administrator', `mounts ${source} on ${point}`);
    // Below it, programs find what was there without the mounts that it covers: a directory that was bound onto itself
    // is an old one of theirs.
    if (isHome)
      for (const path of this.#kept.keys()) if (path.startsWith(`${point}/`)) this.#kept.delete(path);
    // Who has opened it before goes on in it.
    if (isItself && !isHome && isAtRest) this.#kept.set(point, treeOf(this.#fs, point));
  }
}

const isDirectoryAt = (fs: Fs, path: string): boolean => fs.inodeAt(path)?.kind === 'directory';

/** The files and directories in a directory. */
function below(fs: Fs, path: string): string[] {
  if (!isDirectoryAt(fs, path)) return [];
  const entries = fs.readdirSync(path, { withFileTypes: true }).filter((entry) => !entry.isSymbolicLink());
  return entries.flatMap(({ name }) => [`${path}/${name}`, ...below(fs, `${path}/${name}`)]);
}

/** Everything about a file or directory, and what is in it. */
function treeOf(fs: Fs, path: string): string {
  const stat = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (!stat) return 'gone';
  const { mode, uid, gid } = stat;
  const about = `${mode.toString(8)} ${uid}:${gid}`;
  if (!stat.isDirectory()) return `${about} "${String(fs.inodeAt(path)?.bytes)}"`;
  const names = fs.readdirSync(path, { withFileTypes: true }).map(({ name }) => name);
  return `${about} {${names.map((name) => `${name}: ${treeOf(fs, `${path}/${name}`)}`).join()}}`;
}

/** @throws {Violation} if an error, or the last one of a status, does not say that something is mounted. */
function assertSaid(error: unknown, step: string): void {
  const { code, message } = (error ?? {}) as { readonly code?: string; readonly message?: string };
  if (code === 'ERR_WRITE_MOUNTED' && message?.includes(`at step "${step}"`)) return;
  throw new Violation(10, `something is mounted, and the error at step "${step}" is: ${message}`);
}
