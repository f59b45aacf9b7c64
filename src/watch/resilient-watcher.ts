import { basename, resolve } from '../core/ports/platform-path.js';
import { onAbort } from '../core/scheduling/abort.js';
import { Component } from '../core/lifecycle/component.js';
import type { Snapshot } from '../fs/snapshot.js';
import { stableRead } from '../fs/stable-read.js';
import { refuseDirectories } from '../fs/targets/group.js';
import { isGroup, targetAt, type TargetPath } from '../fs/targets/target-at.js';
import type { Target } from '../fs/observation.js';
import { describe } from '../core/options/options.js';
import { differenceSince, digestsOf, type Change, type Digests, type KeyDifference } from './change.js';
import { ChangeStream } from './change-stream.js';
import { Session } from './session.js';
import type { ResilientWatcherEvents, WatcherEvent } from './watcher-events.js';
import {
  resolveWatcherOptions,
  type ResilientWatcherOptions,
  type ResolvedWatcherOptions,
} from './watcher-options.js';
import { watcherDescription, type WatcherStatus } from './watcher-status.js';

const NO_STREAMS: readonly ChangeStream[] = [];

/**
 * Reports every change of a file, a volume, a directory, a tree or a group of files, once and never in part, for as
 * long as the process lives.
 *
 * The path may be a plain file, a link, a key of a volume, or a volume; it may not exist yet, at any depth, and what is
 * there may become something else. A group of files is given as an array; `start()` rejects with a `TargetError`
 * (`ERR_TARGET_DIRECTORY`) if one of its paths is a directory then. `start()` reports the current state as the first
 * `change`.
 *
 * ```ts
 * const watcher = new ResilientWatcher('/etc/policy/policy.yaml');
 * watcher.on('change', ({ current }) => {
 *   if (current.content) apply(current.content);
 * });
 * await watcher.start();
 * ```
 */
export class ResilientWatcher
  extends Component<ResilientWatcherEvents, WatcherStatus>
  implements AsyncIterable<Change>
{
  readonly #target: Target;
  readonly #options: ResolvedWatcherOptions;
  readonly #session: Session;
  #streams = NO_STREAMS;
  #lastChange: Change | undefined;

  /**
   * @param path the file or directory, as a path or a `file:` URL, or several files. A relative path is resolved
   * against the working directory now. Globs are not expanded.
   * @throws {TypeError} for a value that is not a path, an empty array, the same path twice, an unknown option, one of
   * the wrong type, or one that has no effect in this combination.
   * @throws {RangeError} for a number out of range.
   */
  constructor(path: TargetPath, options?: ResilientWatcherOptions) {
    const { options: resolved, tree } = resolveWatcherOptions(options, { isGroup: isGroup(path) });
    const target = targetAt(path, resolved, tree);
    const { signal, clock, name = defaultName(target) } = resolved;
    super({ kind: 'ResilientWatcher', name, signal, clock, description: watcherDescription });
    this.#target = target;
    this.#options = resolved;
    this.#session = new Session(target, resolved, this.lifetime, this.#report, (cause, look) =>
      this.trace('check', { cause }, look, (result) => result),
    );
  }

  /** The watched path, absolute; for a group, all paths. */
  get path(): string {
    return this.#target.path;
  }

  /** What was last reported; undefined until the first check has ended and the target has been readable. */
  get current(): Snapshot | undefined {
    return this.#session.reported;
  }

  override get state(): WatcherStatus['state'] {
    return this.lifecycleState === 'running' ? this.#session.state : this.lifecycleState;
  }

  override status(): WatcherStatus {
    const { name, path, state, lastError } = this;
    return { name, path, state, ...this.#session.status(), lastError };
  }

  /**
   * Checks now. Resolves when a check that began after this call has ended and its result has been reported; for a group
   * of which only some links have been retargeted, after `groupSettleMs` at the latest. A file that is being written in
   * place is reported later, once it has settled.
   * @throws {ClosedError} (rejects) when the watcher is closed; the signal's reason when that has aborted.
   * @throws {Error} (rejects) when the watcher has not been started.
   */
  async check(): Promise<void> {
    this.throwIfClosed();
    if (this.lifecycleState === 'idle') {
      throw new Error(`Cannot check "${this.path}": the watcher has not been started; call start() first`);
    }
    await this.start();
    await this.#session.check();
  }

  /**
   * The digest of each file as last reported, by its key, as plain data. Save the digests when a process ends, and pass
   * them to `changedSince()` in the next process to find out what has changed in the meantime. For a file that is not
   * read, the digest consists of inode, size and timestamps. A digest protects a long secret, not a short one.
   * @throws {Error} when nothing has been reported yet.
   */
  digests(): Digests {
    return digestsOf(this.#reported('list the digests of'));
  }

  /**
   * Which files, as last reported, differ from saved digests.
   *
   * ```ts
   * const { added, changed, removed } = watcher.changedSince(JSON.parse(await readFile(saved, 'utf8')));
   * ```
   * @throws {TypeError} for a value that cannot come from `digests()`.
   * @throws {Error} when nothing has been reported yet.
   */
  changedSince(digests: Digests): KeyDifference {
    if (typeof digests !== 'object' || (digests as unknown) === null || Array.isArray(digests)) {
      throw new TypeError(
        `changedSince: digests must be an object as returned by digests(), got ${describe(digests)}`,
      );
    }
    return differenceSince(digests, this.#reported('compare'));
  }

  /**
   * Adds a file to a group, or includes a removed path of a tree again, with everything below it. The path need not
   * exist. Resolves when the files at the path have been reported, as a `change` in which their keys are `added`; if
   * other files of a group are changing at that moment, together with these. A directory that is added to a group is
   * `unreadable`, and the other files are watched nevertheless. While a file of the group or the root of
   * the tree cannot be read, nothing is added: then it resolves when `unreadable` has been emitted, and the files are
   * reported when all can be read again.
   *
   * A relative path is resolved against the working directory for a group, and against the root, like a key, for a
   * tree. If a path of a tree and a directory above it were both added or removed, the last call decides.
   * @throws {TypeError} (rejects) when this is neither a group nor a tree, when the path is already in it, and for a
   * path that is not below the tree, or that the option `ignore` excludes.
   * @throws {ClosedError} (rejects) when the watcher is closed; the signal's reason when that has aborted.
   */
  add(path: string | URL): Promise<void> {
    return this.#regroup('add', path);
  }

  /**
   * Removes a file from a group, or a path with everything below it from a tree. The path need not exist. It is no
   * longer reported on, and the backend `fs` closes its native watches. Resolves when the removal has been reported,
   * as a `change` in which its keys are `removed`. See `add()`.
   * @throws {TypeError} (rejects) when this is neither a group nor a tree, when the path is not in it, and when nothing
   * would be left: close the watcher instead.
   * @throws {ClosedError} (rejects) when the watcher is closed; the signal's reason when that has aborted.
   */
  remove(path: string | URL): Promise<void> {
    return this.#regroup('remove', path);
  }

  /**
   * Reads the target as it is now, whatever was reported. Does not need `start()`.
   * @throws {TargetError} (rejects) when it cannot be read, or keeps changing (`ERR_TARGET_IO`).
   */
  snapshot(): Promise<Snapshot> {
    return stableRead(this.#target.fresh(), this.#options);
  }

  /**
   * Resolves when no check is requested or under way, and no attempt to subscribe is under way. It does not wait for a
   * quiet period or for the delay before the next attempt.
   */
  idle(): Promise<void> {
    return this.#session.idle();
  }

  /** The changes as they come, beginning with the last one. A slow consumer gets the newest state, never a backlog. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Change> {
    const stream = new ChangeStream(() => {
      this.#streams = this.#streams.filter((each) => each !== stream);
      unlisten();
    });
    if (this.#lastChange) stream.push(this.#lastChange);
    this.#streams = [...this.#streams, stream];
    // Before the start nothing else listens to the signal.
    const unlisten = onAbort(this.#options.signal, () => stream.end());
    if (this.lifecycleState === 'closed') stream.end();
    return stream;
  }

  protected override get purpose(): string {
    return `watch "${this.path}"`;
  }

  protected override onStart(): Promise<void> {
    return refuseDirectories(this.#target, this.#options);
  }

  protected override onRunning(): Promise<void> {
    return this.#session.start();
  }

  protected override onClose(): void {
    for (const stream of this.#streams) stream.end();
    this.#session.close();
  }

  protected override telemetryOf(event: string, payload: object | undefined): object | undefined {
    if (event !== 'change') return payload;
    const change = payload as Change;
    const { kind, revision } = change.current;
    return { ...change, kind, revision, delayMs: this.#session.delayOf(change) };
  }

  #reported(what: string): Snapshot {
    if (this.current) return this.current;
    throw new Error(`Cannot ${what} "${this.path}": nothing has been reported yet; call start() first`);
  }

  async #regroup(what: 'add' | 'remove', path: string | URL): Promise<void> {
    this.throwIfClosed();
    this.#target[what](path);
    if (this.lifecycleState === 'idle') return;
    await this.start();
    await this.#session.regrouped();
  }

  readonly #report = (event: WatcherEvent): void => {
    if (event.name === 'change') {
      this.#lastChange = event.payload;
      this.tell('change', event.payload);
      for (const stream of this.#streams) stream.push(event.payload);
      return;
    }
    if (event.name === 'error') {
      this.fail(event.payload);
      return;
    }
    if (event.name === 'unreadable' || event.name === 'degraded') this.recordError(event.payload.error);
    this.tell(event.name, event.payload);
  };
}

function defaultName({ paths }: Target): string {
  return paths.map((path) => basename(resolve(path)) || '/').join(', ');
}

/**
 * Creates and starts a watcher. A `listener` of `change` is also called for the state at the start.
 *
 * ```ts
 * await using watcher = await watch('/etc/policy/policy.yaml', ({ current }) => {
 *   if (current.content) apply(current.content);
 * });
 * ```
 * Without a listener, `watcher.current` is the current state, and `for await (const change of watcher)` begins with it.
 * @throws what the constructor and `start()` of `ResilientWatcher` throw.
 */
export function watch(
  path: TargetPath,
  listener: ((change: Change) => unknown) | undefined,
  options?: ResilientWatcherOptions,
): Promise<ResilientWatcher>;
// The last one is the one that TypeScript 7 explains when an option is wrong.
export function watch(path: TargetPath, options?: ResilientWatcherOptions): Promise<ResilientWatcher>;
export async function watch(
  path: TargetPath,
  listenerOrOptions?: ((change: Change) => unknown) | ResilientWatcherOptions,
  options?: ResilientWatcherOptions,
): Promise<ResilientWatcher> {
  const [listener, given] =
    typeof listenerOrOptions === 'function'
      ? [listenerOrOptions, options]
      : [undefined, listenerOrOptions ?? options];
  const watcher = new ResilientWatcher(path, given);
  if (listener) watcher.on('change', listener);
  await watcher.start();
  return watcher;
}
