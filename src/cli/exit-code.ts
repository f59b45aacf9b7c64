/** How the program ends; part of its interface. */
export const EXIT = {
  ok: 0,
  /** An action, or what was asked for, failed. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The path can never show an update. */
  frozen: 3,
  /** It works, but by polling only. */
  degraded: 4,
  /** As `timeout(1)`. */
  timeout: 124,
  /** As a shell: the command cannot be run, or does not exist. */
  notExecutable: 126,
  notFound: 127,
} as const;

/** Ends the program with a message for people. */
export class ExitError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}
