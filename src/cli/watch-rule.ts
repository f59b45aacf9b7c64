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

/** What a rule leaves to the one that replaces it, for one of its watchers. */
export interface Remainder {
  /** Absolute. */
  readonly paths: readonly string[];
  /** What was last reported. Whatever differs from it has not been handled. */
  readonly digests: Digests;
  /** What was reported but not handled successfully. */
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
  /** Collected until all have been checked, so that one action handles what is there at the start. */
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
      else this.#act(watched.updateOf(change));
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
      await startWatchers(this.#watched);
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
    for (const { watcher } of this.#watched) {
      if (watcher.status().target !== 'missing') continue;
      const { path } = watcher;
      output.log('warn', 'missing', `${path}: does not exist; it will be seen when it is created`, { path });
    }
    // That nothing is there is known without a report.
    for (const watched of this.#silent) {
      const { current } = watched.watcher;
      if (current) this.#begin(watched, current, 'start');
    }
    this.#isStarted = true;
    if (this.#early) this.#act(this.#early);
    this.#early = undefined;
  }

  /** Closes the rule, and resolves to what it leaves to its replacement. */
  async close(): Promise<readonly Remainder[]> {
    const { paths = [], cause = '' } = merged(this.#early, this.#reload?.unhandled) ?? {};
    const left = this.#watched.flatMap((watched): readonly Remainder[] => {
      if (this.#silent.has(watched)) return this.#remaindersOf(watched);
      const own = paths.filter(({ path }) => watched.paths.includes(resolve(path)));
      const unhandled = own.length > 0 ? { paths: own, cause } : undefined;
      return [{ paths: watched.paths, digests: watched.watcher.digests(), unhandled }];
    });
    await this.#session.close();
    return left;
  }

  /** Acts on the first contents as far as that is asked for: with `--initial`, or for the rules that it replaces. */
  #begin(watched: WatchedPaths, current: Snapshot, cause: string): void {
    this.#silent.delete(watched);
    const remainders = this.#options.flags.initial ? [everythingOf(watched)] : this.#remaindersOf(watched);
    // What could not be read at the start, and so was not known, is a change.
    if (remainders.length === 0 && cause !== 'start') remainders.push(everythingOf(watched));
    for (const { paths, digests, unhandled } of remainders) {
      const isSame =
        paths.length === watched.paths.length && paths.every((path) => watched.paths.includes(path));
      const difference = watched.watcher.changedSince(isSame ? digests : {});
      const isNewer = keysOf(difference).length > 0;
      const newer = isNewer ? watched.updateOf({ ...difference, current, cause }) : undefined;
      const update = merged(isSame ? unhandled : undefined, newer);
      if (!update) continue;
      if (this.#isStarted) this.#act(update);
      else this.#early = merged(this.#early, update);
    }
  }

  /** Not an error: the command may be on a volume that is filled later. */
  async #checkCommand(): Promise<void> {
    const [program] = this.#options.command;
    if (program === undefined || (await isProgram(program))) return;
    const message = `${program}: there is no such program${program.includes('/') ? '' : ' in PATH'}; each action fails until there is`;
    this.#session.output.log('warn', 'missing-program', message, { program });
  }

  #remaindersOf(watched: WatchedPaths): Remainder[] {
    return this.#remainders.filter(({ paths }) => paths.some((path) => watched.paths.includes(path)));
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

/** As if nothing had been handled. */
function everythingOf({ paths }: WatchedPaths): Remainder {
  return { paths, digests: {}, unhandled: undefined };
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
