/** Thrown by the parsers of this library. Its message quotes no values, so it is safe to report. */
export class ParseFailure extends Error {
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(
    message: string,
    at: { readonly line?: number | undefined; readonly column?: number | undefined } = {},
  ) {
    super(message);
    this.line = at.line;
    this.column = at.column;
  }
}

/** The line of an offset, from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}
