/**
 * Runs the actions for the newest update until they have succeeded.
 *
 * | state      | `trigger()`                        | its time is up | succeeds            | fails                         |
 * |------------|------------------------------------|----------------|---------------------|-------------------------------|
 * | `idle`     | starts it, → `waiting`             | –              | –                   | –                             |
 * | `ready`    | → `waiting`: splay and cooldown    | –              | –                   | –                             |
 * | `waiting`  | merged into the update that waits  | → `running`    | –                   | –                             |
 * | `running`  | waits for the action under way     | –              | next one or `ready` | → `retrying`, after a backoff |
 * | `retrying` | merged; tried at once              | → `running`    | –                   | –                             |
 * | `closed`   | throws                             | –              | –                   | –                             |
 *
 * The check runs before each attempt that begins with the first action. If it fails, the update is rejected: nothing is
 * done until the next `trigger()`. With a check, an update that comes while an action runs is checked before the next
 * action: the run begins again, with both updates. No update is lost: one that was not handled successfully is merged into the next one.
 */
import type { ComponentHandle, ComponentStatus, OperationMessage } from 'resilient-watcher';
import {
  Backoff,
  begin,
  Component,
  markHandled,
  sleep,
  type ComponentEvents,
  type TelemetryTable,
  type StatusDescription,
} from 'resilient-watcher/internal';

import { type Action, ActionError } from './action.js';
import { runAction } from './action-run.js';
import {
  resolveReloadOptions,
  type ReloadActionOptions,
  type ResolvedReloadOptions,
} from './reload-options.js';
import { mergeUpdates, type ActionUpdate } from './action-update.js';

/** The events of a `ReloadAction`. No event contains file contents. `attempt` counts from 1 for each update. */
export interface ReloadActionEvents extends ComponentEvents {
  /** An attempt begins. It has no other event if it gives way to a newer update. */
  started: [event: { readonly update: ActionUpdate; readonly attempt: number }];
  /** All actions have succeeded for the update. */
  succeeded: [
    event: { readonly update: ActionUpdate; readonly attempt: number; readonly durationMs: number },
  ];
  /** An attempt failed. `retryDelayMs` is null if it was the last one. */
  failed: [
    event: {
      readonly update: ActionUpdate;
      readonly attempt: number;
      readonly error: ActionError;
      readonly retryDelayMs: number | null;
    },
  ];
  /** The check failed: nothing is done for this update. */
  rejected: [event: { readonly update: ActionUpdate; readonly error: ActionError }];
}

/** The status of a `ReloadAction`. Times are epoch ms. */
export interface ReloadActionStatus extends ComponentStatus {
  /** `idle`: not started. `ready`: nothing to do. */
  readonly state: 'idle' | 'ready' | 'waiting' | 'running' | 'retrying' | 'closed';
  /** Whether the last update was handled successfully; null before the first one. */
  readonly lastSuccessful: boolean | null;
  /** When an update was last handled successfully. */
  readonly lastSuccessAt: number | null;
}

/** A run of an action or a check of a `ReloadAction`. `result`: `succeeded`, or `interrupted` by `close()`. */
export interface ActionMessage extends OperationMessage {
  readonly component: ComponentHandle;
  /** What kind of action: `exec`, `signal`, `webhook`, or `custom`. */
  readonly action: string;
}

/** An operation in telemetry that only a `ReloadAction` has. */
export interface ActionOperation {
  readonly name: 'action';
  readonly message: ActionMessage;
}

const TELEMETRY: TelemetryTable<Record<string, object>, { action: ActionMessage }> = {
  operations: {
    action: {
      title: 'action',
      measure: ({ action, result }, meter) => meter.count('actions', { action, result }),
    },
  },
  metrics: {
    actions: {
      kind: 'counter',
      unit: '{action}',
      labels: ['action', 'result'],
      help: 'Runs of checks and actions of a ReloadAction (succeeded, interrupted, error).',
    },
  },
};

/** Ready: the last action, if any, succeeded. */
export const reloadDescription: StatusDescription<ReloadActionStatus> = {
  worksIdle: true,
  telemetry: TELEMETRY,
  health({ lastSuccessful, lastError }) {
    if (lastSuccessful !== false) return {};
    return { unready: `the last action failed: ${lastError?.code ?? 'interrupted'}` };
  },
};

/** How a run ended. `interrupted`: by `close()`. `superseded`: by an update that is to be checked first. */
type RunResult = 'succeeded' | 'interrupted' | 'superseded' | ActionError;

/**
 * Acts on changes: one run at a time, the newest update wins, failures are retried.
 *
 * ```ts
 * const reload = new ReloadAction({
 *   action: commandAction({ command: 'nginx', args: ['-s', 'reload'] }),
 *   check: commandAction({ command: 'nginx', args: ['-t'] }),
 * });
 * watcher.on('change', (change) => reload.trigger(updateOf(change, watcher.path)));
 * ```
 */
export class ReloadAction extends Component<ReloadActionEvents, ReloadActionStatus> {
  readonly #options: ResolvedReloadOptions;
  readonly #backoff: Backoff;
  #phase: 'ready' | 'waiting' | 'running' | 'retrying' = 'ready';
  #pending: ActionUpdate | undefined;
  /** The update that is being handled, or was not handled successfully. It is merged into the next one. */
  #missed: ActionUpdate | undefined;
  /** Aborts to end the current pause early. */
  #pausing: AbortController | undefined;
  #loop: Promise<void> | undefined;
  #lastSuccessful: boolean | null = null;
  #lastSuccessAt: number | null = null;
  /** When it last succeeded, by the monotonic clock. */
  #restsFrom = -Infinity;

  /** @throws {TypeError | RangeError} for a wrong option. */
  constructor(options: ReloadActionOptions) {
    const resolved = resolveReloadOptions(options);
    const { name, retryDelayMs, maxRetryDelayMs, random, signal, clock } = resolved;
    super({ kind: 'ReloadAction', name, signal, clock, description: reloadDescription });
    this.#options = resolved;
    this.#backoff = new Backoff({ firstDelayMs: retryDelayMs, maxDelayMs: maxRetryDelayMs, random });
  }

  override get state(): ReloadActionStatus['state'] {
    const state = this.lifecycleState;
    return state === 'idle' || state === 'closed' ? state : this.#phase;
  }

  override status(): ReloadActionStatus {
    return {
      name: this.name,
      state: this.state,
      lastError: this.lastError,
      lastSuccessful: this.#lastSuccessful,
      lastSuccessAt: this.#lastSuccessAt,
    };
  }

  /**
   * Runs the actions for an update as soon as possible. Returns immediately; the first call starts the component.
   * @throws {ClosedError} once closed; the signal's reason when that has aborted.
   */
  trigger(update: ActionUpdate): void {
    this.throwIfClosed();
    void markHandled(this.start());
    this.#pending = merged(this.#pending, update);
    if (this.#phase === 'retrying') this.#pausing?.abort();
    if (this.#loop) return;
    const loop = begin(
      (begun) => (this.#loop = begun),
      () => this.#drain(),
    );
    void this.lifetime.track(loop);
  }

  /**
   * What was not handled successfully so far: all updates since the last success, merged; undefined if there are none.
   * After `close()`, this is what is left to the successor.
   */
  get unhandled(): ActionUpdate | undefined {
    return this.#pending ? merged(this.#missed, this.#pending) : this.#missed;
  }

  /** Resolves when no update is waiting or being handled. While an action is retried, its update is being handled. */
  async idle(): Promise<void> {
    while (this.#loop) await this.#loop;
  }

  protected override get purpose(): string {
    return `run the action "${this.name}"`;
  }

  protected override onClose(): void {
    this.#pausing?.abort();
  }

  async #drain(): Promise<void> {
    while (this.#pending) {
      this.#phase = 'waiting';
      const delayMs = this.#delayMs();
      if (delayMs > 0) await this.#pause(delayMs);
      if (this.lifetime.ended) break;
      const update = merged(this.#missed, this.#pending);
      this.#pending = undefined;
      this.#missed = update;
      await this.#settle(update);
    }
    this.#phase = 'ready';
    // Not a microtask later: an update that came meanwhile would wait for the next one.
    this.#loop = undefined;
  }

  /** How long an update waits before it is handled. */
  #delayMs(): number {
    const { splayMs, cooldownMs, random, clock } = this.#options;
    const cooldown = this.#restsFrom + cooldownMs - clock.monotonic();
    return Math.max(splayMs > 0 ? random() * splayMs : 0, cooldown);
  }

  /** Handles the update until it succeeds, is rejected, or a newer one arrives. */
  async #settle(update: ActionUpdate): Promise<void> {
    const { actions, check, maxAttempts, clock } = this.#options;
    const remaining = [...actions];
    this.#backoff.reset();
    for (let attempt = 1; !this.lifetime.ended; attempt += 1) {
      this.#phase = 'running';
      const begun = clock.monotonic();
      if (check && remaining.length === actions.length) {
        const verdict = await this.#run(check, update);
        if (verdict instanceof ActionError) {
          this.#failed(verdict);
          this.dispatch('rejected', { update, error: verdict });
        }
        if (verdict !== 'succeeded') return;
      }
      this.dispatch('started', { update, attempt });
      const result = await this.#runAll(remaining, update);
      if (result === 'interrupted' || result === 'superseded') return;
      if (result === 'succeeded') {
        this.#succeeded();
        this.dispatch('succeeded', { update, attempt, durationMs: clock.monotonic() - begun });
        return;
      }
      const retryDelayMs = attempt < maxAttempts ? this.#backoff.next() : null;
      this.#failed(result);
      this.dispatch('failed', { update, attempt, error: result, retryDelayMs });
      if (retryDelayMs === null || this.#hasNewer()) return;
      this.#phase = 'retrying';
      await this.#pause(retryDelayMs);
      if (this.#hasNewer()) return;
    }
  }

  #hasNewer(): boolean {
    return this.#pending !== undefined;
  }

  #succeeded(): void {
    this.#missed = undefined;
    this.#lastSuccessful = true;
    this.#lastSuccessAt = this.#options.clock.now();
    this.#restsFrom = this.#options.clock.monotonic();
  }

  #failed(error: ActionError): void {
    this.#lastSuccessful = false;
    this.recordError(error);
  }

  /** Runs the actions one after another, and removes those that succeeded from the list. */
  async #runAll(remaining: Action[], update: ActionUpdate): Promise<RunResult> {
    for (let action = remaining[0]; action; action = remaining[0]) {
      const result = await this.#run(action, update);
      if (result !== 'succeeded') return result;
      remaining.shift();
      if (this.#options.check && remaining.length > 0 && this.#hasNewer()) return 'superseded';
    }
    return 'succeeded';
  }

  /** Runs one action. */
  async #run(action: Action, update: ActionUpdate): Promise<RunResult> {
    if (this.lifetime.ended) return 'interrupted';
    const run = (): ReturnType<typeof runAction> =>
      runAction(action, update, this.#options, this.lifetime.signal);
    try {
      return await this.trace('action', { action: action.kind ?? 'custom' }, run, String);
    } catch (error) {
      return error as ActionError;
    }
  }

  /** Waits until the delay is over, a newer update is to be tried at once, or it is closed. */
  async #pause(delayMs: number): Promise<void> {
    if (this.lifetime.ended) return;
    const { signal } = (this.#pausing = new AbortController());
    await sleep(this.#options.clock, delayMs, { signal }).catch(() => undefined);
  }
}

function merged(earlier: ActionUpdate | undefined, later: ActionUpdate): ActionUpdate {
  return earlier ? mergeUpdates(earlier, later) : later;
}
