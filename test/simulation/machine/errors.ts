/** How system calls fail. */
import { getSystemErrorMap } from 'node:util';

const ERRORS = new Map([...getSystemErrorMap()].map(([errno, [code, text]]) => [code, { errno, text }]));

/** A call fails. `before` may throw it, too. */
export class Errno extends Error {
  readonly code: string;
  readonly errno: number;
  syscall?: string;
  path?: string;
  dest?: string;

  constructor(code: string) {
    super(ERRORS.get(code)?.text);
    this.code = code;
    this.errno = ERRORS.get(code)?.errno ?? 0;
  }

  /** Adds what `node:fs` tells about the call. */
  in(syscall: string, path?: string, dest?: string): this {
    this.syscall = syscall;
    if (path !== undefined) this.path = path;
    if (dest !== undefined) this.dest = dest;
    const where = path === undefined ? '' : ` '${path}'`;
    const text = ERRORS.get(this.code)?.text ?? 'unknown error';
    this.message = `${this.code}: ${text}, ${syscall}${where}${dest === undefined ? '' : ` -> '${dest}'`}`;
    return this;
  }
}

/** A call that does not return, because it touches a mount that hangs. */
export class Stuck extends Error {
  readonly mount: { readonly isHung: boolean };

  constructor(mount: { readonly isHung: boolean }) {
    super('A call hangs');
    this.mount = mount;
  }
}

/** A call of a process that was killed. */
export class Killed extends Error {
  constructor() {
    super('The process was killed');
  }
}

/** As `strerror()`: without a code. */
export function systemText(error: unknown): string {
  if (!(error instanceof Errno)) return String(error);
  return TEXTS[error.code] ?? 'Input/output error';
}

const TEXTS: Readonly<Record<string, string>> = {
  EBADF: 'Bad file descriptor',
  ENOENT: 'No such file or directory',
  ENOTDIR: 'Not a directory',
  EACCES: 'Permission denied',
  ENOSPC: 'No space left on device',
};
