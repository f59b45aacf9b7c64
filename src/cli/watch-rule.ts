/** One rule of `watch`, from the command line or from the file of `--config`. */
import { resolve } from 'node:path';

import { mergeUpdates, ReloadAction, type ActionUpdate } from '../action.js';
import type { Digests, KeyDifference, Snapshot } from '../index.js';
import { actionsOf, reloadOptions, type ActionFlags } from './action-flags.js';
import { EXIT, ExitError } from './exit-code.js';
import { isProgram } from './find-program.js';
import { report } from './report.js';
import type { Session } from './session.js';
import { createWatchers, startWatchers, type WatchedPaths, type WatchFlags } from './watched-paths.js';

/** The flags of `watch`. */
export interface RuleFlags extends ActionFlags, WatchFlags {
  readonly initial?: true;
  readonly once?: true;
}

/** The paths of a rule, and what to do when they change. */
export interface RuleOptions {
  readonly paths: readonly string[];
  readonly flags: RuleFlags;
  readonly command: readonly string[];
}

/** What a rule leaves of a path to the rules that replace it. */
export interface Remainder {
  /** Absolute. */
  readonly path: string;
  /** What was last reported of it. Whatever differs from that has not been handled. */
  readonly digests: Digests;
  /** What was reported of it but not handled successfully. */
  readonly unhandled: ActionUpdate | undefined;
}

/** Watches paths and acts on their changes until its session is closed. */
export class WatchRule {
  readonly #options: RuleOptions;
  readonly #session: Session;
  readonly #watched: readonly WatchedPaths[];
  readonly #reload: ReloadAction | undefined;
  /** What the rules that this one replaces have left. */
  #remainders: readonly Remainder[] = [];
  /** Those that have not reported anything so far. */
  readonly #silent: Set<WatchedPaths>;
  /** Collected until the first checks have ended, so that one action handles what is there at the start. */
  #early: ActionUpdate | undefined;
  #isStarted = false;

  /**
   * Does no I/O.
   * @param session the session of this rule; closed with it.
   * @throws {ExitError} for flags that cannot be combined.
   */
  constructor(options: RuleOptions, session: Session) {
    const { paths, flags, command } = options;
    this.#options = options;
    this.#session = session;
    const action = actionsOf(flags, command, session);
    if (action.length > 0) {
      this.#reload = session.closeAtEnd(new ReloadAction({ ...reloadOptions(flags, session), action }));
      this.#follow(this.#reload);
    }
    this.#watched = createWatchers(paths, flags, session, (change, watched) => {
      if (this.#silent.has(watched)) this.#begin(watched, change.current, change.cause);
      else this.#handle(watched.updateOf(change));
    });
    this.#silent = new Set(this.#watched);
  }

  /**
   * Resolves when the present contents are known, or the rule has been closed meanwhile.
   * @param remainders of the rules that this one replaces; changes that they did not handle are handled.
   */
  async start(remainders: readonly Remainder[] = []): Promise<void> {
    this.#remainders = remainders;
    try {
      await this.#reload?.start();
      await startWatchers(this.#watched, this.#session);
      await this.#checkCommand();
    } catch (error) {
      if (!this.#session.signal.aborted) throw error;
    }
    if (!this.#session.signal.aborted) this.#started();
  }

  #started(): void {
    const { output } = this.#session;
    const { paths } = this.#options;
    output.log('info', 'ready', `watching ${paths.join(', ')}`, { paths });
    for (const watched of this.#watched) {
      const { watcher } = watched;
      if (watcher.current)
        for (const path of watched.missing) {
          output.log('warn', 'missing', `${path}: does not exist; it will be seen when it is created`, {
            path,
          });
        }
      watcher.on('readable', () => this.#beginUnreported(watched));
      void watcher.start().then(
        () => this.#beginUnreported(watched),
        () => undefined,
      );
      this.#beginUnreported(watched);
    }
    this.#isStarted = true;
    if (this.#early) this.#act(this.#early);
    this.#early = undefined;
  }

  /** Closes the rule, and resolves to what it leaves to its replacement. */
  async close(): Promise<readonly Remainder[]> {
    const unhandled = this.#early ?? this.#reload?.unhandled;
    const left = this.#watched.flatMap((watched): readonly Remainder[] => {
      if (this.#silent.has(watched)) return this.#toBegin(watched, this.#isStarted);
      return watched.paths.map((path) => ({
        path,
        digests: watched.digestsAt(path),
        unhandled: unhandled && ofPath(unhandled, path),
      }));
    });
    await this.#session.close();
    return left;
  }

  /** That nothing is there is known without a report. */
  #beginUnreported(watched: WatchedPaths): void {
    const { current } = watched.watcher;
    if (current && this.#silent.has(watched)) this.#begin(watched, current, 'start');
  }

  /** Handles the first contents as far as that is asked for. */
  #begin(watched: WatchedPaths, current: Snapshot, cause: string): void {
    this.#silent.delete(watched);
    // What was not known at the start is a change.
    for (const { path, digests, unhandled } of this.#toBegin(watched, this.#isStarted || cause !== 'start')) {
      const difference = watched.changedAt(path, digests);
      const isNewer = keysOf(difference).length > 0;
      const update = merged(
        unhandled,
        isNewer ? watched.updateOf({ ...difference, current, cause }) : undefined,
      );
      if (update) this.#handle(update);
    }
  }

  /** What the first contents are compared with. Nothing, unless there are rules before this one, or it is a change. */
  #toBegin({ paths }: WatchedPaths, isChange: boolean): readonly Remainder[] {
    return paths.flatMap((path) => {
      const left = this.#remainders.filter((remainder) => remainder.path === path);
      const isAll = this.#options.flags.initial ?? (isChange && left.length === 0);
      return isAll ? [...left, { path, digests: {}, unhandled: undefined }] : left;
    });
  }

  /** Not an error: the command may be on a volume that is filled later. */
  async #checkCommand(): Promise<void> {
    const [program] = this.#options.command;
    if (program === undefined || (await isProgram(program))) return;
    const message = `${program}: there is no such program${program.includes('/') ? '' : ' in PATH'}; each action fails until there is`;
    this.#session.output.log('warn', 'missing-program', message, { program });
  }

  #handle(update: ActionUpdate): void {
    if (this.#isStarted) this.#act(update);
    else this.#early = merged(this.#early, update);
  }

  #act(update: ActionUpdate): void {
    if (this.#reload) this.#reload.trigger(update);
    else if (this.#options.flags.once) this.#session.end(EXIT.ok);
  }

  #follow(reload: ReloadAction): void {
    const { once, exitOnError } = this.#options.flags;
    report(reload, this.#session);
    if (once) reload.on('succeeded', () => this.#session.end(EXIT.ok));
    if (!exitOnError) return;
    for (const event of ['failed', 'rejected'] as const) {
      reload.on(event, () => this.#session.end(EXIT.failed));
    }
  }
}

/** The part of an update that is about this path. */
function ofPath({ paths, cause }: ActionUpdate, path: string): ActionUpdate | undefined {
  const own = paths.filter((update) => resolve(update.path) === path);
  return own.length > 0 ? { paths: own, cause } : undefined;
}

function merged(
  earlier: ActionUpdate | undefined,
  later: ActionUpdate | undefined,
): ActionUpdate | undefined {
  return earlier && later ? mergeUpdates(earlier, later) : (later ?? earlier);
}

function keysOf({ added, changed, removed }: KeyDifference): readonly string[] {
  return [...added, ...changed, ...removed];
}

/** @throws {ExitError} if there is nothing to watch, or the same twice. */
export function checkPaths(paths: readonly string[]): void {
  if (paths.includes('')) throw new ExitError(EXIT.usage, 'a path is empty');
  const known = absolutePaths(paths);
  const twice = known.find((path, index) => known.indexOf(path) < index);
  if (twice !== undefined) throw new ExitError(EXIT.usage, `${twice} is given twice`);
  if (paths.length > 0) return;
  throw new ExitError(
    EXIT.usage,
    'there is no path. The value of a flag is not one, and paths come before --',
  );
}

/** @throws {ExitError} for a relative path whose working directory is gone. */
function absolutePaths(paths: readonly string[]): string[] {
  try {
    return paths.map((path) => resolve(path));
  } catch {
    throw new ExitError(EXIT.usage, 'the working directory was removed; give absolute paths');
  }
}
