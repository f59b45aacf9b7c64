import { isOnWindows, told } from '../core/ports/platform-path.js';
import { errnoOf, withErrno } from '../core/errors/errno.js';
import type { CodeOf } from '../core/errors/error-codes.js';
import { CodedError, recognize, redactError } from '../core/errors/resilient-error.js';

export type WriteErrorCode = CodeOf<'WriteError'>;

/** The step of an atomic write that failed, in the order of the steps. */
export type WriteStep =
  | 'open-directory'
  | 'resolve'
  | 'compare'
  | 'create-directory'
  | 'create'
  | 'read-source'
  | 'write'
  | 'verify'
  | 'chown'
  | 'chmod'
  | 'sync'
  | 'close'
  | 'rename'
  | 'sync-directory'
  | 'link'
  | 'remove';

/** A file or a volume could not be written. `published` says what readers see. */
export class WriteError extends CodedError<'WriteError'> {
  override readonly name = 'WriteError';
  /** The absolute path of the file or volume. */
  readonly path: string;
  readonly step: WriteStep;
  /**
   * What readers see. False: the previous content, if any. True: the new content, and only a later step failed. Null:
   * it is not known, because a file server reported the rename as failed, and the temporary file is gone.
   */
  readonly published: boolean | null;

  constructor(
    code: WriteErrorCode,
    message: string,
    details: { readonly path: string; readonly step: WriteStep; readonly published: boolean | null },
    options?: ErrorOptions,
  ) {
    super(code, message, options);
    this.path = told(details.path);
    this.step = details.step;
    this.published = details.published;
  }
}
recognize(WriteError, 'WriteError');

/** A reason to refuse or abandon a write. `failureOf` turns it into a `WriteError`. */
export class Refusal extends Error {
  readonly code: WriteErrorCode;

  constructor(code: WriteErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** How far a write is. */
export interface Progress {
  /** What is being written. */
  path: string;
  step: WriteStep;
  /** Whether readers see the new content. Null while that is not known: from the rename on, until its outcome is. */
  published: boolean | null;
}

/** The error for what was thrown at this point. */
export function failureOf(progress: Progress, thrown: unknown): WriteError {
  if (thrown instanceof WriteError) return thrown;
  const { path, step, published } = progress;
  const failure = (code: WriteErrorCode, what: string, options?: ErrorOptions): WriteError => {
    const message = `Cannot write "${told(path)}": ${what}, at step "${step}". ${STATES[`${published}`]}.`;
    return new WriteError(code, message, { path, step, published }, options);
  };
  if (thrown instanceof Refusal) return failure(thrown.code, thrown.message);
  const errno = errnoOf(withErrno(thrown)) ?? '';
  // A source of data may quote what it holds.
  const cause = redactError(thrown);
  const [code, what]: Explanation =
    step === 'read-source'
      ? ['ERR_WRITE_SOURCE', `the source of the data failed: ${messageOf(cause)}`]
      : (explanationOf(errno, step) ?? ['ERR_WRITE_IO', messageOf(cause)]);
  return failure(code, errno === '' ? what : `${what} (${errno})`, { cause });
}

const STATES = {
  true: 'Readers see the change; only a later step failed',
  false: 'Nothing has changed for readers',
  null: 'It is not known whether readers see the change; read it back, or write again',
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

type Explanation = readonly [WriteErrorCode, string];

function explanationOf(errno: string, step: WriteStep): Explanation | undefined {
  if (!isOnWindows() || !['EPERM', 'EACCES', 'EBUSY'].includes(errno)) return EXPLANATIONS[errno];
  const isHeld = step === 'rename' || errno === 'EBUSY';
  const what = isHeld
    ? 'another process (an editor, a virus scanner, an indexer, a reader) holds the file open, or it may not be replaced'
    : 'permission denied; check who may change the directory and the file, and whether the file is read-only';
  return ['ERR_WRITE_ACCESS', what];
}

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  ENOSPC: ['ERR_WRITE_NO_SPACE', 'no space (or no inode) is left on the file system'],
  EDQUOT: ['ERR_WRITE_NO_SPACE', 'the disk quota is exceeded'],
  EFBIG: ['ERR_WRITE_NO_SPACE', 'the file would exceed the size limit of the file system or of the process'],
  EROFS: ['ERR_WRITE_ACCESS', 'the file system is read-only; check readOnlyRootFilesystem and the mount'],
  EACCES: ['ERR_WRITE_ACCESS', 'permission denied; the directory must be writable, too'],
  EPERM: [
    'ERR_WRITE_ACCESS',
    'not permitted: an immutable file, a sticky directory, or an owner that may not be set',
  ],
  ENOENT: ['ERR_WRITE_NO_DIRECTORY', 'its directory does not exist; "createDirectory: true" creates it'],
  ENOTDIR: ['ERR_WRITE_NO_DIRECTORY', 'there is a file where its path needs a directory'],
  EISDIR: ['ERR_WRITE_NOT_FILE', 'it is a directory'],
  ENOTEMPTY: ['ERR_WRITE_NOT_FILE', 'it is a directory'],
  EBUSY: [
    'ERR_WRITE_MOUNTED',
    'it is mounted by itself (subPath, docker -v file:file); mount its directory instead',
  ],
  EXDEV: ['ERR_WRITE_MOUNTED', 'its directory spans several file systems'],
  EMFILE: ['ERR_WRITE_IO', 'the process has too many files open; raise its limit (ulimit -n)'],
  ENFILE: ['ERR_WRITE_IO', 'the system has too many files open'],
  ENAMETOOLONG: ['ERR_WRITE_IO', 'a name has more than 255 bytes, or the path is too long'],
  ESTALE: ['ERR_WRITE_IO', 'the file server has removed or replaced the directory or file meanwhile'],
  ELOOP: ['ERR_WRITE_NOT_FILE', 'too many symbolic links, or a loop of them'],
};
