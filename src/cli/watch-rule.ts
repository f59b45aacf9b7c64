/** What `watch` does for one command line, or for one rule of its configuration. */
import { ReloadAction, updateOf } from '../action.js';
import type { Change } from '../index.js';
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

/** Watches paths and acts on their changes until its session is closed. */
export class WatchRule {
  readonly #options: RuleOptions;
  readonly #session: Session;
  readonly #watchers: ReturnType<typeof createWatchers>;
  readonly #reload: ReloadAction | undefined;
  #actsOnStart: boolean;

  /**
   * Does no I/O.
   * @param session its own; closed when the rule is.
   * @throws {ExitError} for flags that do not go together.
   */
  constructor(options: RuleOptions, session: Session) {
    const { paths, flags, command } = options;
    this.#options = options;
    this.#session = session;
    this.#actsOnStart = flags.initial ?? false;
    const action = actionsOf(flags, command, session);
    if (action.length > 0) {
      this.#reload = session.closeAtEnd(new ReloadAction({ ...reloadOptions(flags, session), action }));
      this.#follow(this.#reload);
    }
    this.#watchers = createWatchers(paths, flags, session, (change, path) => this.#onChange(change, path));
  }

  get paths(): readonly string[] {
    return this.#options.paths;
  }

  /** Whether the newest change has not been acted on. */
  get isBehind(): boolean {
    const status = this.#reload?.status();
    return status !== undefined && (status.state !== 'ready' || status.lastSuccessful === false);
  }

  /** @param isBehind whether a rule that this one replaces has left something to be done. */
  async start(isBehind = false): Promise<void> {
    this.#actsOnStart ||= isBehind;
    await this.#reload?.start();
    await startWatchers(this.#watchers);
    const { paths } = this;
    this.#session.output.log('info', 'ready', `watching ${paths.join(', ')}`, { paths });
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  #onChange(change: Change, path: string): void {
    if (change.cause === 'start' && !this.#actsOnStart) return;
    if (this.#reload) this.#reload.trigger(updateOf(change, path));
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
  if (paths.length > 0) return;
  throw new ExitError(
    EXIT.usage,
    'no path to watch. The value of a flag is not a path; paths come before --',
  );
}
