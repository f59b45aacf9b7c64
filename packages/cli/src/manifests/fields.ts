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

/** A pod, and where it is described. */
export interface Pod {
  /** The object it is in, such as `Deployment/web`. */
  readonly where: string;
  readonly namespace: string;
  readonly labels: Fields;
  readonly spec: Fields;
  readonly volumes: ReadonlyMap<string, Fields>;
  /** Those that run first and those that are attached later, too. */
  readonly containers: readonly Fields[];
}

/** Whether kubelet updates the files of the volume. */
export function isUpdated(volume: Fields): boolean {
  return ['configMap', 'secret', 'projected', 'downwardAPI'].some((source) => source in volume);
}

/** The driver of a CSI volume may replace its files, too, as secrets-store does. */
export function isReplaced(volume: Fields): boolean {
  return isUpdated(volume) || 'csi' in volume;
}
