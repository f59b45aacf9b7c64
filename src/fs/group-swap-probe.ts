/**
 * Reads the keys of one volume right after a swap, as `SwapProbe` does for one of them. They are of one instant: all of
 * them come from one revision, and `..data` led to it before the first was read and after the last.
 */
import type { FileSystemCalls } from '../core/file-system.js';
import type { Found, SwapReader } from './observation.js';
import type { SwapProbe } from './swap-probe.js';

/** A larger group is left to the check: reading these takes about a millisecond. */
const MAX_MEMBERS = 64;

/** Where to look for a swap that changes all members of a group. */
export class GroupSwapProbe implements SwapReader {
  readonly place: string;
  readonly #members: readonly SwapProbe[];
  readonly #together: (members: readonly Found[]) => Found | undefined;

  private constructor(
    place: string,
    members: readonly SwapProbe[],
    together: (members: readonly Found[]) => Found | undefined,
  ) {
    this.place = place;
    this.#members = members;
    this.#together = together;
  }

  /**
   * Undefined when they are not all keys of one volume, or too many.
   * @param together makes one observation of those of the members.
   */
  static of(
    members: readonly (SwapProbe | undefined)[],
    together: (members: readonly Found[]) => Found | undefined,
  ): GroupSwapProbe | undefined {
    const probes = members.filter((member) => member !== undefined);
    const [first] = probes;
    if (!first || probes.length < members.length || probes.length > MAX_MEMBERS) return undefined;
    if (probes.some(({ place }) => place !== first.place)) return undefined;
    return new GroupSwapProbe(first.place, probes, together);
  }

  concerns(path: string): boolean {
    return this.#members.some((member) => member.concerns(path));
  }

  read(calls: FileSystemCalls): Found | undefined {
    try {
      const revision = this.#members[0]?.swappedTo(calls);
      if (revision === undefined) return undefined;
      const found: Found[] = [];
      for (const member of this.#members) {
        const file = member.readRevision(revision, calls);
        if (!file) return undefined;
        found.push(file);
      }
      return calls.readlink(this.place) === revision ? this.#together(found) : undefined;
    } catch {
      return undefined;
    }
  }
}
