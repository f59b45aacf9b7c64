/** How far a write has got, and what to tell people when it gets no further. */
import { WriteError, errnoOf, type WriteErrorCode, type WriteStep } from '../core/errors.js';

/** Kept up to date by the write itself, so that a failure anywhere can say where it was. */
export class WriteProgress {
  /** What is being written. */
  path: string;
  step: WriteStep = 'resolve';
  /** Readers see the new content. */
  published = false;

  constructor(path: string) {
    this.path = path;
  }

  /** The error for what was thrown at this point. */
  failure(cause: unknown): WriteError {
    if (cause instanceof WriteError) return cause;
    const errno = errnoOf(cause);
    const { code, what } = this.#explain(errno, cause);
    return this.#error(code, `${what}${errno === undefined ? '' : ` (${errno})`}`, { cause });
  }

  /** The error for something that is refused, whatever the system would say. */
  refusal(code: WriteErrorCode, what: string): WriteError {
    return this.#error(code, what);
  }

  #error(code: WriteErrorCode, what: string, options?: ErrorOptions): WriteError {
    const { path, step, published } = this;
    const state = published
      ? 'The new content is in place, but what makes it durable and complete did not all succeed'
      : 'Readers see what was there before';
    return new WriteError(
      code,
      `Cannot write "${path}": ${what}, at step "${step}". ${state}.`,
      { path, step, published },
      options,
    );
  }

  #explain(errno: string | undefined, cause: unknown): { code: WriteErrorCode; what: string } {
    if (this.step === 'read-source') {
      return { code: 'ERR_WRITE_SOURCE', what: `the source of the data failed: ${messageOf(cause)}` };
    }
    const known = errno === undefined ? undefined : EXPLANATIONS[errno];
    if (!known) return { code: 'ERR_WRITE_IO', what: messageOf(cause) };
    const [code, what] = known;
    return { code, what };
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

const EXPLANATIONS: Readonly<Record<string, readonly [WriteErrorCode, string]>> = {
  ENOSPC: ['ERR_WRITE_NO_SPACE', 'no space (or no inode) is left on the file system'],
  EDQUOT: ['ERR_WRITE_NO_SPACE', 'the disk quota is used up'],
  EFBIG: ['ERR_WRITE_NO_SPACE', 'the file would be larger than the file system or the process limit allows'],
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
    'not permitted; the file may be immutable, the directory sticky, or the owner not yours to give',
  ],
  ENOENT: [
    'ERR_WRITE_NO_DIRECTORY',
    'its directory does not exist, or was removed meanwhile; "createDirectory: true" makes it',
  ],
  ENOTDIR: ['ERR_WRITE_NO_DIRECTORY', 'something on the way to it is not a directory'],
  EISDIR: ['ERR_WRITE_NOT_FILE', 'a directory stands there'],
  ENOTEMPTY: ['ERR_WRITE_NOT_FILE', 'a directory stands there'],
  EBUSY: [
    'ERR_WRITE_MOUNTED',
    'it is in use as a mount point: a file that is mounted by itself (subPath, docker -v file:file) cannot be replaced; mount its directory instead',
  ],
  EXDEV: [
    'ERR_WRITE_CROSS_DEVICE',
    'its directory is spread over several file systems, and a rename cannot cross them',
  ],
  ELOOP: ['ERR_WRITE_SYMLINK', 'too many symbolic links, or a loop of them'],
};
