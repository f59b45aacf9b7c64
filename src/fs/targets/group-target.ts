/** Several files as one target: their contents are those of one instant. */
import { GroupSwapProbe } from '../group-swap-probe.js';
import { areLinksUnchanged, mergeChains, type ResolvedChain, type LinkChain } from '../link-chain.js';
import { readingError, targetError } from '../target-error.js';
import {
  MAX_FILES_AT_ONCE,
  type AllowedMounts,
  type Found,
  type Moment,
  type Observation,
  type ReadLimits,
  type SeenFile,
  type SwapReader,
  type Target,
} from '../observation.js';
import { SetSnapshot } from '../snapshot.js';
import { errnoOf, hasMoved } from '../../core/errno.js';
import type { TargetError } from '../target-error.js';
import type { SwapProbe } from '../swap-probe.js';
import { call, freshly, type Effects } from '../effects.js';
import { signatureOfSet } from './revision-observation.js';
import { absoluteGivenPath } from './given-path.js';
import { PathTarget } from './path-target.js';

/** How often a group whose links move while it is read is read again. */
const MAX_READS = 20;

type FoundOrMissing = Extract<Observation, { readonly kind: 'found' | 'missing' }>;

/** The files at these paths. */
export class GroupTarget implements Target {
  readonly #limits: ReadLimits;
  /**
   * The paths by the keys they are reported under. Replaced, never modified, since an observation may be in
   * progress.
   */
  #members: ReadonlyMap<string, PathTarget>;
  /** The members when something was last found, or nothing was. */
  #shown: ReadonlyMap<string, PathTarget> | undefined;
  /** The members that an observation is made of. */
  readonly #observed = new WeakMap<Found, ReadonlyMap<string, PathTarget>>();

  /** @param paths absolute paths by the keys they are reported under. */
  constructor(paths: ReadonlyMap<string, string>, limits: ReadLimits) {
    this.#limits = limits;
    this.#members = new Map([...paths].map(([key, path]) => [key, new PathTarget(path, limits)]));
  }

  get path(): string {
    return [...this.#members.values()].map(({ path }) => path).join(', ');
  }

  fresh(): GroupTarget {
    return new GroupTarget(new Map([...this.#members].map(([key, { path }]) => [key, path])), this.#limits);
  }

  /** A relative path is resolved against the working directory, and is the key as it is given. */
  add(given: string | URL): void {
    const path = absoluteGivenPath('path', given);
    if ([...this.#members.values()].some((member) => member.path === path)) {
      throw new TypeError(`Cannot add "${path}": it is in the group already`);
    }
    const key = typeof given === 'string' ? given : path;
    this.#members = new Map([...this.#members, [key, new PathTarget(path, this.#limits)]]);
  }

  remove(given: string | URL): void {
    const path = absoluteGivenPath('path', given);
    const rest = [...this.#members].filter(([, member]) => member.path !== path);
    if (rest.length === this.#members.size)
      throw new TypeError(`Cannot remove "${path}": it is not in the group`);
    if (rest.length === 0)
      throw new TypeError(`Cannot remove "${path}": it is the last one; close the watcher`);
    this.#members = new Map(rest);
  }

  *observe(known?: Found, allowedMounts?: AllowedMounts, now?: Moment): Effects<Observation> {
    for (let reading = 0; ; reading += 1) {
      const group = this.#members;
      const earlier = known && this.#observed.get(known) === group ? known.members : undefined;
      const members: Observation[] = [];
      for (const [index, member] of [...group.values()].entries()) {
        const before = earlier?.[index];
        const earlierFile = before?.kind === 'found' ? before : undefined;
        members.push(yield* member.observe(earlierFile, allowedMounts, now));
      }
      const seen = this.#together(group, members);
      if (seen.kind !== 'found' && seen.kind !== 'missing') return seen;
      try {
        if (yield* freshly(areAsRead(members))) return this.#regrouped(seen, group);
      } catch (error) {
        if (errnoOf(error) === undefined) throw error;
        const at = (error as NodeJS.ErrnoException).path ?? this.path;
        return { kind: 'unreadable', chain: seen.chain, error: readingError(at, error) };
      }
      if (reading === MAX_READS) return { kind: 'unstable', chain: seen.chain };
    }
  }

  *observeSwap(known: Found, allowedMounts?: AllowedMounts): Effects<Found | undefined> {
    const group = this.#members;
    if (this.#observed.get(known) !== group) return undefined;
    const { members = [] } = known;
    const seen: Observation[] = [];
    let swapped = false;
    for (const [index, member] of [...group.values()].entries()) {
      const before = members[index];
      if (before?.kind !== 'found') return undefined;
      const after = yield* member.observeSwap(before, allowedMounts);
      // What was there before may have disappeared before the swap.
      if (!after && !(yield* member.isUnchanged(before))) return undefined;
      swapped ||= after !== undefined;
      seen.push(after ?? before);
    }
    try {
      if (!swapped || !(yield* freshly(areAsRead(seen)))) return undefined;
    } catch {
      return undefined;
    }
    const together = this.#together(group, seen);
    return together.kind === 'found' ? together : undefined;
  }

  swapReader(known: Found): SwapReader | undefined {
    const group = this.#members;
    if (this.#observed.get(known) !== group) return undefined;
    const members = new Map<string, SwapProbe>();
    for (const [index, [key, member]] of [...group].entries()) {
      const before = known.members?.[index];
      const isFile = before?.kind === 'found' && before.snapshot.kind === 'file';
      const probe = isFile ? member.swapReader(before) : undefined;
      if (!probe) return undefined;
      members.set(key, probe);
    }
    return GroupSwapProbe.of({
      path: this.path,
      members,
      isCurrent: () => this.#members === group,
      together: (seen, files) => this.#found(group, seen, files),
    });
  }

  *isUnchanged(known: Found): Effects<boolean> {
    const group = this.#members;
    if (this.#observed.get(known) !== group) return false;
    const { members = [] } = known;
    if (members.length > MAX_FILES_AT_ONCE) return false;
    for (const [index, member] of [...group.values()].entries()) {
      const before = members[index];
      if (before?.kind !== 'found' || !(yield* member.isUnchanged(before))) return false;
    }
    return true;
  }

  *resolve(allowedMounts?: AllowedMounts): Effects<ResolvedChain> {
    const chains: ResolvedChain[] = [];
    for (const member of this.#members.values()) chains.push(yield* member.resolve(allowedMounts));
    // A member that cannot be resolved makes the whole group unreadable.
    const unresolved = chains.find(({ end }) => end.kind !== 'found' && end.kind !== 'missing');
    const merged = mergeAll(chains);
    return unresolved ? { ...merged, end: unresolved.end } : merged;
  }

  /** The same, and which members are others than before. */
  #regrouped(seen: FoundOrMissing, group: ReadonlyMap<string, PathTarget>): Observation {
    const before = this.#shown ?? group;
    this.#shown = group;
    if (before === group) return seen;
    const regrouped = { ...seen, isRegrouped: (key: string) => before.get(key) !== group.get(key) };
    if (regrouped.kind === 'found') this.#observed.set(regrouped, group);
    return regrouped;
  }

  #together(group: ReadonlyMap<string, PathTarget>, members: readonly Observation[]): Observation {
    const keys = [...group.keys()];
    const files = new Map<string, SeenFile>();
    const chain = mergeAll(members.map((member) => member.chain));
    const limited: string[] = [];
    for (const [index, member] of members.entries()) {
      if (member.kind === 'missing') continue;
      if (member.kind !== 'found') return { ...member, chain };
      const [file] = member.files.values();
      if (member.snapshot.kind !== 'file' || !file)
        return { kind: 'unreadable', chain, error: notAFile(member) };
      files.set(keys[index] ?? '', file);
      if (member.limited) limited.push(member.limited);
    }
    const [first] = members;
    return files.size === 0 && first?.kind === 'missing'
      ? { kind: 'missing', chain: { ...chain, end: first.chain.end } }
      : this.#found(group, members, files, chain, limited[0]);
  }

  #found(
    group: ReadonlyMap<string, PathTarget>,
    members: readonly Observation[],
    files: ReadonlyMap<string, SeenFile>,
    chain = mergeAll(members.map((member) => member.chain)),
    limited?: string,
  ): Found {
    const { path } = this;
    const states = new Map([...files].map(([key, { snapshot }]) => [key, snapshot]));
    const found: Found = {
      kind: 'found',
      chain,
      snapshot: new SetSnapshot({ kind: 'group', path, realPath: path, revision: undefined, files: states }),
      files,
      directories: new Map(),
      signature: signatureOfSet(files),
      limited,
      members,
    };
    this.#observed.set(found, group);
    return found;
  }
}

function mergeAll<W extends LinkChain>(chains: readonly W[]): W {
  return chains.reduce((merged, chain) => mergeChains(merged, [chain]));
}

/** Whether every link is as it was when its file was read: then all that was read existed at one instant. */
function* areAsRead(members: readonly Observation[]): Effects<boolean> {
  try {
    for (const { kind, chain } of members) {
      if (!(yield* areLinksUnchanged(chain))) return false;
      if (kind === 'missing' && chain.end.kind === kind && (yield* exists(chain.end.path))) return false;
    }
    return true;
  } catch (error) {
    if (hasMoved(error)) return false;
    throw error;
  }
}

function* exists(path: string): Effects<boolean> {
  try {
    yield* call('lstat', path);
    return true;
  } catch (error) {
    if (hasMoved(error)) return false;
    throw error;
  }
}

function notAFile({ snapshot }: Found): TargetError {
  const cause = new Error('it is a directory; in a group every path must be that of a file');
  return targetError('ERR_TARGET_NOT_FILE', snapshot.path, cause);
}
