import type { ConfigMap } from './config-value.js';
import type { ConfigWarning, PlaceOf } from './places.js';

/** What reading a source yields. */
export interface Reading {
  readonly values: ConfigMap;
  readonly placeOf: PlaceOf;
  readonly warnings: readonly ConfigWarning[];
}
