/** What `watch` does for one command line, or for one rule of its configuration. */
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

/** Paths, and what a change of them leads to. */
export interface RuleOptions {
  readonly paths: readonly string[];
  readonly flags: RuleFlags;
  readonly command: readonly string[];
}

type Digests = ReturnType<ResilientWatcher['digests']>;

/** What a rule has acted on, for each of its paths; `unfinished` when it has not acted on the newest contents. */
export type Progress = ReadonlyMap<string, Digests | 'unfinished'>;

/** Watches paths and acts on their changes until its session is closed. */
export class WatchRule {
  readonly #options: RuleOptions;
  readonly #session: Session;
  readonly #watchers: readonly ResilientWatcher[];
  readonly #reload: ReloadAction | undefined;

  /**
   * Does no I/O.
   * @param session its own; closed when the rule is.
   * @throws {ExitError} for flags that do not go together.
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

  /** @param progress of the rules that this one replaces: what they have missed is acted on. */
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

  /** Closes it, and resolves with what the rule that replaces it has to know. */
  async close(): Promise<Progress> {
    const status = this.#reload?.status();
    const isFinished = !status || (status.state === 'ready' && status.lastSuccessful !== false);
    const progress = this.#watchers
      .filter(({ current }) => current !== undefined)
      .map((watcher) => [watcher.name, isFinished ? watcher.digests() : 'unfinished'] as const);
    await this.#session.close();
    return new Map(progress);
  }

  /** Acts on what is there, as far as it has not been acted on. */
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

/** @throws {ExitError} when there is nothing to watch. */
export function checkPaths(paths: readonly string[]): void {
  if (paths.includes('')) throw new ExitError(EXIT.usage, 'a path is empty');
  if (paths.length > 0) return;
  throw new ExitError(
    EXIT.usage,
    'there is no path. The value of a flag is not one, and paths come before --',
  );
}
