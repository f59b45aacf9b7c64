/** The system calls of the publishers. Each one that changes the disk is recorded. */
import fs from 'node:fs';
import { join } from 'node:path';

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

const FLAGS = {
  w: 'O_WRONLY|O_CREAT|O_TRUNC',
  wx: 'O_WRONLY|O_CREAT|O_EXCL',
  'wx+': 'O_RDWR|O_CREAT|O_EXCL',
  a: 'O_WRONLY|O_CREAT|O_APPEND',
  'r+': 'O_RDWR',
} as const;

/** The disk of one sequence. */
export class Disk {
  readonly #record: (call: string) => void;
  readonly #paths = new Map<number, string>();

  /** @param record called after each call, with its name and arguments. */
  constructor(record: (call: string) => void) {
    this.#record = record;
  }

  mkdir(path: string, mode = 0o777): void {
    fs.mkdirSync(path, mode);
    this.#record(`mkdir ${path} ${octal(mode)}`);
  }

  chmod(path: string, mode: number): void {
    fs.chmodSync(path, mode);
    this.#record(`chmod ${path} ${octal(mode)}`);
  }

  /** Adds bits to the mode. */
  addMode(path: string, mask: number): void {
    this.chmod(path, (fs.statSync(path).mode & 0o7777) | mask);
  }

  /** Changes the group of a file, a directory or a link itself. */
  changeGroup(path: string, gid: number): void {
    fs.lchownSync(path, -1, gid);
    this.#record(`lchown ${path} :${gid}`);
  }

  /** @param flags as in `node:fs`. Default: the file is created or truncated. */
  open(path: string, flags: keyof typeof FLAGS = 'w', mode = 0o666): number {
    const descriptor = fs.openSync(path, flags, mode);
    this.#paths.set(descriptor, path);
    this.#record(`open ${path} ${FLAGS[flags]}`);
    return descriptor;
  }

  write(descriptor: number, content: string): void {
    fs.writeFileSync(descriptor, content);
    this.#record(`write ${this.#paths.get(descriptor) ?? ''} ${Buffer.byteLength(content)} bytes`);
  }

  close(descriptor: number): void {
    fs.closeSync(descriptor);
    this.#record(`close ${this.#paths.get(descriptor) ?? ''}`);
    this.#paths.delete(descriptor);
  }

  /** Closes what a sequence that ended early has left open. */
  closeAll(): void {
    for (const descriptor of this.#paths.keys()) this.close(descriptor);
  }

  /** Opens, writes and closes, as a shell does for `>`. */
  writeFile(path: string, content: string): void {
    const descriptor = this.open(path);
    try {
      this.write(descriptor, content);
    } finally {
      this.close(descriptor);
    }
  }

  sync(descriptor: number): void {
    fs.fsyncSync(descriptor);
    this.#record(`fsync ${this.#paths.get(descriptor) ?? ''}`);
  }

  /** Leaves the first bytes of an open file. */
  cut(descriptor: number, length: number): void {
    fs.ftruncateSync(descriptor, length);
    this.#record(`ftruncate ${this.#paths.get(descriptor) ?? ''} ${length}`);
  }

  truncate(path: string): void {
    fs.truncateSync(path);
    this.#record(`truncate ${path}`);
  }

  setTimes(path: string, { atime, mtime }: fs.Stats): void {
    fs.utimesSync(path, atime, mtime);
    this.#record(`utimensat ${path}`);
  }

  symlink(target: string, path: string): void {
    fs.symlinkSync(target, path);
    this.#record(`symlink ${target} ${path}`);
  }

  link(from: string, path: string): void {
    fs.linkSync(from, path);
    this.#record(`link ${from} ${path}`);
  }

  rename(from: string, to: string): void {
    fs.renameSync(from, to);
    this.#record(`rename ${from} ${to}`);
  }

  unlink(path: string): void {
    fs.unlinkSync(path);
    this.#record(`unlink ${path}`);
  }

  rmdir(path: string): void {
    fs.rmdirSync(path);
    this.#record(`rmdir ${path}`);
  }

  /** Removes a file, or a directory with everything in it, if it is there. */
  remove(path: string): void {
    if (!this.exists(path)) return;
    if (!this.isDirectory(path)) {
      this.unlink(path);
      return;
    }
    for (const name of this.names(path)) this.remove(join(path, name));
    this.rmdir(path);
  }

  // Calls that change nothing are not recorded.

  exists(path: string): boolean {
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  }

  isDirectory(path: string): boolean {
    return fs.lstatSync(path).isDirectory();
  }

  /** The names in a directory, sorted; none if it is missing. */
  names(path: string): string[] {
    try {
      return fs.readdirSync(path).sort();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** Undefined if it is no link. */
  linkTarget(path: string): string | undefined {
    try {
      return fs.readlinkSync(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EINVAL') return undefined;
      throw error;
    }
  }

  /** Undefined if it cannot be read. */
  contents(path: string): string | undefined {
    try {
      return fs.readFileSync(path, 'utf8');
    } catch {
      return undefined;
    }
  }
}

const octal = (mode: number): string => `0${mode.toString(8)}`;
