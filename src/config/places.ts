/** What is known of a source besides its values: where each of them stands, and what may surprise its author. */
import { processState } from '../core/process-state.js';

/** Where a value stands. */
export interface Place {
  /** The variable or argument that sets it. */
  readonly name?: string | undefined;
  /** The file of a volume. */
  readonly file?: string | undefined;
  /** From 1. */
  readonly line?: number | undefined;
  /** From 1. */
  readonly column?: number | undefined;
}

/** Finds the place of the value with this path; undefined if it is unknown. */
export type PlaceOf = (path: readonly string[]) => Place | undefined | Promise<Place | undefined>;

/** Something that is read as the format has it, and that its author may not have meant. Contains no values. */
export interface ConfigWarning {
  /**
   * `comment`: a `#` ends an unquoted value of a `.env` file. `binary`: a key of a volume that is not text is left out.
   * `empty`: empty variables are ignored. `serviceLink`: Kubernetes sets a variable for a Service. `unmatched`: a
   * variable sets a key that neither the schema nor another source has. `ignored`: a file of a directory has no parser
   * and is left out.
   */
  readonly code: 'comment' | 'binary' | 'empty' | 'ignored' | 'serviceLink' | 'unmatched';
  /** What it is, with the source, and the line and column if they are known. */
  readonly message: string;
}

const places = processState('places', () => new WeakMap<object, PlaceOf>());

/** Remembers the places of values for as long as these are in use. Returns the values. */
export function withPlaces<T extends object>(values: T, placeOf: PlaceOf): T {
  places().set(values, placeOf);
  return values;
}

/** The places that are known of the values that a provider has returned; undefined if none are. */
export function placesIn(values: unknown): PlaceOf | undefined {
  return places().get(Object(values) as object);
}

/** The line and column of an offset in a text. */
export function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset).split(/\r\n?|\n/);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
