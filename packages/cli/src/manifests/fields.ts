/** Reads documents of unknown shape: a value of another type counts as absent. */

/** A map of a manifest. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value if it is a map, otherwise an empty map. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The maps in the value if it is a list. */
export function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fields) : [];
}

/** The sources of one kind in a projected volume. */
export function sourcesOf(volume: Fields, kind: string): Fields[] {
  return list(fields(volume['projected'])['sources'])
    .filter((source) => kind in source)
    .map((source) => fields(source[kind]));
}

/** The value, if it is a string. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
