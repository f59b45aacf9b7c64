/**
 * Reads the keys of one volume right after a swap, as `SwapProbe` does for one of them. They are of one instant: all of
 * them come from one revision, and `..data` led to it before the first was read and after the last.
 */
import type { FileSystemCalls } from '../core/file-system.js';
import type { Found, SeenFile, Swap, SwapReader, Turn } from './observation.js';
import { SetSnapshot, type FileState } from './snapshot.js';
import type { SwapProbe } from './swap-probe.js';

/** A larger group is left to the check: reading these takes about a millisecond. */
const MAX_MEMBERS = 64;

/** A group whose members are all keys of one volume. */
interface Group {
  readonly path: string;
  /** By the keys of the group. */
  readonly members: ReadonlyMap<string, SwapProbe>;
  /** Whether the group still has these members. */
  readonly isCurrent: () => boolean;
  /** Makes one observation of those of the members. */
  readonly together: (members: readonly Found[], files: ReadonlyMap<string, SeenFile>) => Found;
}

/** Detects a swap that changes all members of a group. */
export class GroupSwapProbe implements SwapReader {
  readonly place: string;
  readonly #group: Group;
  readonly #first: SwapProbe;

  private constructor(group: Group, first: SwapProbe) {
    this.place = first.place;
    this.#group = group;
    this.#first = first;
  }

  /** Undefined when they are not keys of the same volume, or too many. */
  static of(group: Group): GroupSwapProbe | undefined {
    const [first, ...others] = group.members.values();
    if (!first || others.length >= MAX_MEMBERS) return undefined;
    return others.every(({ place }) => place === first.place) ? new GroupSwapProbe(group, first) : undefined;
  }

  concerns(path: string): boolean {
    for (const member of this.#group.members.values()) if (member.concerns(path)) return true;
    return false;
  }

  isUnchanged(calls: FileSystemCalls, turn: Turn, timestampMs: number | undefined): boolean | undefined {
    const { members, isCurrent } = this.#group;
    if (!isCurrent()) return false;
    for (const member of members.values()) if (!member.isUnchanged(calls, turn, timestampMs)) return false;
    return true;
  }

  read(calls: FileSystemCalls, isRehearsal = false): Swap | undefined {
    const { path, members, isCurrent, together } = this.#group;
    if (!isCurrent()) return undefined;
    try {
      const revision = this.#first.swappedTo(calls, isRehearsal);
      if (revision === undefined) return undefined;
      const swaps: Swap[] = [];
      const files = new Map<string, SeenFile>();
      const states = new Map<string, FileState>();
      for (const [key, member] of members) {
        const swap = member.readRevision(revision, calls);
        if (!swap) return undefined;
        swaps.push(swap);
        for (const file of swap.files.values()) {
          files.set(key, file);
          states.set(key, file.snapshot);
        }
      }
      if (calls.readlink(this.place) !== revision) return undefined;
      return {
        snapshot: new SetSnapshot({
          kind: 'group',
          path,
          realPath: path,
          revision: undefined,
          files: states,
        }),
        files,
        links: swaps[0]?.links ?? '',
        observation: () =>
          together(
            swaps.map(({ observation }) => observation()),
            files,
          ),
      };
    } catch {
      return undefined;
    }
  }
}
