/** A ConfigMap, Secret or projected volume, written with the system calls of kubelet's AtomicWriter. */
import { join } from 'node:path';

import type { Disk } from './disk.js';

/** A file of a volume: its contents, or its contents and its mode (default `0o644`). */
export type VolumeFile = string | { readonly data: string; readonly mode: number };

/** The contents of a volume, by key. */
export type VolumeFiles = Readonly<Record<string, VolumeFile>>;

/** A system call that has been made. */
export interface VolumeStep {
  readonly name: 'mkdir' | 'chown' | 'chmod' | 'open' | 'write' | 'symlink' | 'rename' | 'unlink' | 'rmdir';
  readonly path: string;
}

/** How the volume is written. */
export interface KubeletOptions {
  /** The group that owns the files, as with `fsGroup` in a pod. */
  readonly fsGroup?: number;
  /** `remove`: `..data` is removed and linked again, as on Windows. Default `rename`. */
  readonly swap?: 'rename' | 'remove';
  /** Whether the links of new keys are made before the swap, as by kubelet up to 1.26. Default `after`. */
  readonly links?: 'after' | 'before';
  /** Default false. */
  readonly keepOldRevisions?: boolean;
}

/** kubelet's masks for a volume that is mounted read-only. */
const FILE_MASK = 0o440;
const DIRECTORY_MASK = 0o2550;

type Steps = Generator<VolumeStep, void>;

/** The volume in a directory, which is created with the first revision. */
export class KubeletVolume {
  readonly directory: string;
  readonly #disk: Disk;
  readonly #options: KubeletOptions;

  constructor(disk: Disk, directory: string, options: KubeletOptions = {}) {
    this.#disk = disk;
    this.directory = directory;
    this.#options = options;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  publish(files: VolumeFiles): void {
    for (const _step of this.steps(files));
  }

  /** The same, one system call at a time. To simulate a crash, stop with `break`. */
  *steps(files: VolumeFiles): Steps {
    const { swap = 'rename', links = 'after', keepOldRevisions = false, fsGroup } = this.#options;
    const disk = this.#disk;
    const data = this.path('..data');
    const next = this.path('..data_tmp');
    yield* this.#makeDirectory(this.directory);
    const old = disk.linkTarget(data);
    const removed = old === undefined ? [] : disk.names(this.path(old)).filter((name) => !isIn(name, files));
    if (old !== undefined && removed.length === 0 && this.#holds(old, files)) {
      if (links === 'after') yield* this.#link(files);
      return;
    }
    const stamp = new Date().toISOString().slice(0, 19).replace(/\D/g, '_');
    const revision = `..${stamp}.${Math.floor(Math.random() * 2 ** 32)}`;
    disk.mkdir(this.path(revision), 0o700);
    yield { name: 'mkdir', path: this.path(revision) };
    disk.chmod(this.path(revision), 0o755);
    yield { name: 'chmod', path: this.path(revision) };
    yield* this.#write(this.path(revision), files);
    if (fsGroup !== undefined) yield* this.#giveTo(fsGroup, revision, old);
    if (links === 'before') yield* this.#link(files);
    yield this.#symlink(revision, next);
    if (swap === 'rename') {
      disk.rename(next, data);
      yield { name: 'rename', path: data };
    } else {
      yield* this.#unlink(data);
      yield this.#symlink(revision, data);
      yield* this.#unlink(next);
    }
    if (links === 'after') yield* this.#link(files);
    for (const name of removed) yield* this.#unlink(this.path(name));
    if (old !== undefined && !keepOldRevisions) yield* this.#removeAll(this.path(old));
  }

  #holds(revision: string, files: VolumeFiles): boolean {
    return Object.entries(files).every(
      ([key, file]) => this.#disk.contents(join(this.path(revision), key)) === dataOf(file),
    );
  }

  *#makeDirectory(path: string): Steps {
    if (this.#disk.exists(path)) return;
    yield* this.#makeDirectory(join(path, '..'));
    this.#disk.mkdir(path, 0o777);
    yield { name: 'mkdir', path };
  }

  *#write(revision: string, files: VolumeFiles): Steps {
    for (const [key, file] of Object.entries(files)) {
      const mode = typeof file === 'string' ? 0o644 : file.mode;
      const path = join(revision, key);
      yield* this.#makeDirectory(join(path, '..'));
      const descriptor = this.#disk.open(path, 'w', mode);
      try {
        yield { name: 'open', path };
        this.#disk.write(descriptor, dataOf(file));
        yield { name: 'write', path };
      } finally {
        this.#disk.close(descriptor);
      }
      this.#disk.chmod(path, mode); // `open` applied the umask
      yield { name: 'chmod', path };
    }
  }

  #symlink(target: string, path: string): VolumeStep {
    this.#disk.symlink(target, path);
    return { name: 'symlink', path };
  }

  *#unlink(path: string): Steps {
    if (!this.#disk.exists(path)) return;
    this.#disk.unlink(path);
    yield { name: 'unlink', path };
  }

  *#link(files: VolumeFiles): Steps {
    for (const name of new Set(Object.keys(files).map(firstName))) {
      if (!this.#disk.exists(this.path(name))) yield this.#symlink(`..data/${name}`, this.path(name));
    }
  }

  /** Contents first, as Go's `os.RemoveAll`. */
  *#removeAll(path: string): Steps {
    for (const name of this.#disk.names(path)) {
      const inner = join(path, name);
      if (this.#disk.isDirectory(inner)) yield* this.#removeAll(inner);
      else yield* this.#unlink(inner);
    }
    this.#disk.rmdir(path);
    yield { name: 'rmdir', path };
  }

  *#giveTo(gid: number, revision: string, old: string | undefined): Steps {
    yield* this.#changeGroup(this.path(revision), gid);
    for (const name of this.#disk.names(this.directory)) {
      if (name !== revision && name !== old) yield* this.#changeGroup(this.path(name), gid);
    }
    if (old !== undefined) yield* this.#changeGroup(this.path(old), gid);
    yield* this.#changeGroupOf(this.directory, gid);
  }

  *#changeGroup(path: string, gid: number): Steps {
    if (this.#disk.isDirectory(path)) {
      for (const name of this.#disk.names(path)) yield* this.#changeGroup(join(path, name), gid);
    }
    yield* this.#changeGroupOf(path, gid);
  }

  *#changeGroupOf(path: string, gid: number): Steps {
    this.#disk.changeGroup(path, gid);
    yield { name: 'chown', path };
    if (this.#disk.linkTarget(path) !== undefined) return;
    this.#disk.addMode(path, this.#disk.isDirectory(path) ? DIRECTORY_MASK : FILE_MASK);
    yield { name: 'chmod', path };
  }
}

const dataOf = (file: VolumeFile): string => (typeof file === 'string' ? file : file.data);
const firstName = (key: string): string => key.split('/', 1).join();
const isIn = (name: string, files: VolumeFiles): boolean =>
  Object.keys(files).some((key) => firstName(key) === name);
