/** One rule of `watch`, from the command line or from the file of `--config`. */
import { ReloadAction, updateOf, type ActionUpdate } from '../action.js';
import type { ResilientWatcher } from '../index.js';
import { actionsOf, reloadOptions, type ActionFlags } from './action-flags.js';
import { EXIT, ExitError } from './exit-code.js';
import { report } from './report.js';
import type { Session } from './session.js';
import { createWatchers, startWatchers, type WatchFlags } from './watched-paths.js';

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

type Digests = ReturnType<ResilientWatcher['digests']>;

/** The contents that a rule has acted on, by path; `unfinished` if it has not acted on the newest. */
export type Progress = ReadonlyMap<string, Digests | 'unfinished'>;

/** Watches paths and acts on their changes until its session is closed. */
export class WatchRule {
  readonly #options: RuleOptions;
  readonly #session: Session;
  readonly #watchers: readonly ResilientWatcher[];
  readonly #reload: ReloadAction | undefined;

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
    this.#watchers = createWatchers(paths, flags, session, (change, path) => {
      if (change.cause !== 'start') this.#act(updateOf(change, path));
    });
  }

  /** @param progress of the rules that this one replaces; changes that they did not handle are handled. */
  async start(progress: Progress = new Map()): Promise<void> {
    await this.#reload?.start();
    await startWatchers(this.#watchers);
    const { paths, flags } = this.#options;
    const { output } = this.#session;
    output.log('info', 'ready', `watching ${paths.join(', ')}`, { paths });
    for (const watcher of this.#watchers) {
      if (watcher.status().target !== 'missing') continue;
      const { path } = watcher;
      output.log('warn', 'missing', `${path}: does not exist; it will be seen when it is created`, { path });
    }
    for (const watcher of this.#watchers) {
      const done = flags.initial ? 'unfinished' : progress.get(watcher.name);
      if (done !== undefined) this.#catchUp(watcher, done);
    }
  }

  /** Closes the rule, and resolves to the progress that its replacement needs. */
  async close(): Promise<Progress> {
    const status = this.#reload?.status();
    const isFinished = !status || (status.state === 'ready' && status.lastSuccessful !== false);
    const progress = this.#watchers
      .filter(({ current }) => current !== undefined)
      .map((watcher) => [watcher.name, isFinished ? watcher.digests() : 'unfinished'] as const);
    await this.#session.close();
    return new Map(progress);
  }

  /** Acts on the present contents as far as they have not been handled. */
  #catchUp(watcher: ResilientWatcher, done: Digests | 'unfinished'): void {
    const { path, current } = watcher;
    if (!current) return;
    const difference = watcher.changedSince(done === 'unfinished' ? {} : done);
    if (Object.values(difference).every(({ length }) => length === 0)) return;
    this.#act({ paths: [{ path, ...difference, revision: current.revision ?? null }], cause: 'start' });
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

/** @throws {ExitError} if there is nothing to watch. */
export function checkPaths(paths: readonly string[]): void {
  if (paths.includes('')) throw new ExitError(EXIT.usage, 'a path is empty');
  if (paths.length > 0) return;
  throw new ExitError(
    EXIT.usage,
    'there is no path. The value of a flag is not one, and paths come before --',
  );
}
