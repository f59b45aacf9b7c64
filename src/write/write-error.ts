import { ResilientError } from '../core/resilient-error.js';

/** Why something could not be written. */
export type WriteErrorCode =
  | 'ERR_WRITE_NO_SPACE'
  | 'ERR_WRITE_READ_ONLY'
  | 'ERR_WRITE_ACCESS'
  | 'ERR_WRITE_NO_DIRECTORY'
  | 'ERR_WRITE_NOT_FILE'
  | 'ERR_WRITE_MOUNTED'
  | 'ERR_WRITE_CROSS_DEVICE'
  | 'ERR_WRITE_SYMLINK'
  /** Another user planted a link or a file in a sticky directory that others can write to. */
  | 'ERR_WRITE_UNTRUSTED'
  /** Another process moved or replaced the temporary file or revision before it was published. */
  | 'ERR_WRITE_CONFLICT'
  | 'ERR_WRITE_SOURCE'
  | 'ERR_WRITE_IO';

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
export class WriteError extends ResilientError {
  override readonly name = 'WriteError';
  readonly code: WriteErrorCode;
  /** The absolute path of the file or volume. */
  readonly path: string;
  readonly step: WriteStep;
  /**
   * What readers see: false, the previous content; true, the new content, and only a later step failed; null, it is not
   * known, because a file server reported the rename as failed, and the temporary file is gone.
   */
  readonly published: boolean | null;

  constructor(
    code: WriteErrorCode,
    message: string,
    details: { readonly path: string; readonly step: WriteStep; readonly published: boolean | null },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.path = details.path;
    this.step = details.step;
    this.published = details.published;
  }
}
