/** How far a write has got, and the error for a write that gets no further. */
import { errnoOf } from '../core/errno.js';
import { WriteError, type WriteErrorCode, type WriteStep } from './write-error.js';
import { redactError } from '../core/resilient-error.js';

/** A write is refused, or found to be disturbed. `WriteProgress.failure` makes a `WriteError` of it. */
export class Refusal extends Error {
  readonly code: WriteErrorCode;

  constructor(code: WriteErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Kept up to date by the write itself, so that a failure anywhere can say where it was. */
export class WriteProgress {
  /** What is being written. */
  path: string;
  step: WriteStep = 'resolve';
  /** Whether readers see the new content; null: unknown. */
  published: boolean | null = false;
  /** The rename has begun. Until then nothing can be published. */
  isRenaming = false;

  constructor(path: string) {
    this.path = path;
  }

  /** The error for what was thrown at this point. */
  failure(thrown: unknown): WriteError {
    if (thrown instanceof WriteError) return thrown;
    if (thrown instanceof Refusal) return this.#error(thrown.code, thrown.message);
    const errno = errnoOf(thrown);
    // A source of data may quote what it holds.
    const cause = redactError(thrown);
    const { code, what } = this.#explain(errno, cause);
    return this.#error(code, `${what}${errno === undefined ? '' : ` (${errno})`}`, { cause });
  }

  #error(code: WriteErrorCode, what: string, options?: ErrorOptions): WriteError {
    const { path, step, published } = this;
    return new WriteError(
      code,
      `Cannot write "${path}": ${what}, at step "${step}". ${STATES[String(published) as keyof typeof STATES]}.`,
      { path, step, published },
      options,
    );
  }

  #explain(errno: string | undefined, cause: Error): { code: WriteErrorCode; what: string } {
    if (this.step === 'read-source') {
      return { code: 'ERR_WRITE_SOURCE', what: `the source of the data failed: ${messageOf(cause)}` };
    }
    const known = errno === undefined ? undefined : EXPLANATIONS[errno];
    if (!known) return { code: 'ERR_WRITE_IO', what: messageOf(cause) };
    const [code, what] = known;
    return { code, what };
  }
}

const STATES = {
  true: 'The new content is in place, but not everything after that succeeded',
  false: 'The old content is still in place',
  null: 'It is not known whether the old or the new content is in place; read it, or write again',
};

/**
 * Without the code and the paths of a system error: both are in our message already, and the paths may lead through a
 * descriptor.
 */
function messageOf(cause: Error): string {
  const { message, code = '', syscall } = cause as NodeJS.ErrnoException;
  const start = message.startsWith(`${code}: `) ? code.length + 2 : 0;
  const end = syscall === undefined ? -1 : message.indexOf(`, ${syscall}`);
  return message.slice(start, end < 0 ? undefined : end);
}

const EXPLANATIONS: Readonly<Record<string, readonly [WriteErrorCode, string]>> = {
  ENOSPC: ['ERR_WRITE_NO_SPACE', 'no space (or no inode) is left on the file system'],
  EDQUOT: ['ERR_WRITE_NO_SPACE', 'the disk quota is exceeded'],
  EFBIG: ['ERR_WRITE_NO_SPACE', 'the file would exceed the size limit of the file system or of the process'],
  EROFS: [
    'ERR_WRITE_READ_ONLY',
    'the file system is read-only; in a container, check readOnlyRootFilesystem and the mount, and write to a writable volume',
  ],
  EACCES: [
    'ERR_WRITE_ACCESS',
    'permission denied; the directory must be writable too, since the file is replaced and not overwritten',
  ],
  EPERM: [
    'ERR_WRITE_ACCESS',
    'not permitted; the file may be immutable, the directory sticky, or the process may not change the owner',
  ],
  ENOENT: [
    'ERR_WRITE_NO_DIRECTORY',
    'its directory does not exist, or was removed meanwhile; "createDirectory: true" creates it',
  ],
  ENOTDIR: ['ERR_WRITE_NO_DIRECTORY', 'a component of its path is not a directory'],
  EISDIR: ['ERR_WRITE_NOT_FILE', 'it is a directory'],
  ENOTEMPTY: ['ERR_WRITE_NOT_FILE', 'it is a directory'],
  EBUSY: [
    'ERR_WRITE_MOUNTED',
    'it is a mount point: a file that is mounted by itself (subPath, docker -v file:file) cannot be replaced; mount its directory instead',
  ],
  EXDEV: [
    'ERR_WRITE_CROSS_DEVICE',
    'its directory spans several file systems, and a rename cannot cross them',
  ],
  EMFILE: ['ERR_WRITE_IO', 'the process has too many files open; raise its limit (ulimit -n)'],
  ENFILE: ['ERR_WRITE_IO', 'the system has too many files open'],
  ENAMETOOLONG: ['ERR_WRITE_IO', 'a name has more than 255 bytes, or the path is too long'],
  ESTALE: ['ERR_WRITE_IO', 'the file server has removed or replaced the directory or file meanwhile'],
  ELOOP: ['ERR_WRITE_SYMLINK', 'too many symbolic links, or a loop of them'],
};
