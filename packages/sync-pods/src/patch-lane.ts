import type { ApiBackoff } from './api-backoff.js';
import { PatchScope } from './patch-scope.js';

/** A pod whose annotation has to change. */
export interface Entry {
  readonly pod: string;
  readonly lane: Lane;
  /** When the newest change was seen, monotonic ms. */
  changedAt: number;
  /** How many changes it stands for: two may be seen at the same time of the clock. */
  changes: number;
  /** Which patch is next: an index of `DUE_MS`. */
  next: number;
  /** Not before this, monotonic ms. */
  dueAt: number;
  /** When it is looked at next. */
  lookAt: number;
  isSent: boolean;
  /** Once a patch of this pod was refused. */
  refusals?: ApiBackoff;
}

/** The entries of one namespace. */
export class Lane extends PatchScope {
  readonly entries = new Map<string, Entry>();
  /** Those that are due for the first patch of a change, in their order. */
  readonly first = new Set<Entry>();
  /** Those that are due for a repetition. */
  readonly again = new Set<Entry>();

  get isDue(): boolean {
    return this.first.size + this.again.size > 0;
  }

  get isIdle(): boolean {
    return this.entries.size === 0 && this.inFlight === 0;
  }

  place(entry: Entry): void {
    (entry.next === 0 ? this.first : this.again).add(entry);
  }

  displace(entry: Entry): void {
    this.first.delete(entry);
    this.again.delete(entry);
  }

  /** Unless the pod has another entry by now. */
  remove(entry: Entry): void {
    this.displace(entry);
    if (this.entries.get(entry.pod) === entry) this.entries.delete(entry.pod);
  }
}

/** Of a pod that is named `<namespace>/<name>`. */
export function namesIn(name: string): { readonly namespace: string; readonly pod: string } {
  const end = name.indexOf('/');
  return { namespace: name.slice(0, end), pod: name.slice(end + 1) };
}
