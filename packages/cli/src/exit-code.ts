/** The exit codes of the program. They are part of its interface. */
export const EXIT = {
  ok: 0,
  /** An action failed, or a token, file or address that is required is not available. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** `doctor`: updates of the path can never be seen. */
  frozen: 3,
  /** `doctor`: updates are seen late, or only by polling. */
  degraded: 4,
  /** Timed out, as for `timeout(1)`. */
  timeout: 124,
  /** As in a shell: the command is not executable, or does not exist. */
  notExecutable: 126,
  notFound: 127,
} as const;

/** Ends the program with this exit code and message. */
export class ExitError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Ends the program because its command line is wrong. */
export class UsageError extends ExitError {
  constructor(message: string) {
    super(EXIT.usage, message);
  }
}
