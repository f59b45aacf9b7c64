/**
 * Runs the actions for the newest update until they have succeeded. `core/scheduling/worker.ts` of the library has the
 * states: it waits for splay and cooldown, and retries after a backoff.
 *
 * The check runs before each attempt that begins with the first action. If it fails, the update is rejected: nothing is
 * done until the next `trigger()`. With a check, an update that comes while an action runs is checked before the next
 * action: the run begins again, with both updates. No update is lost: one that was not handled successfully is merged
 * into the next one.
 */
import type { ComponentHandle, ComponentStatus, OperationMessage, PointMessages } from 'resilient-watcher';
import {
  Backoff,
  Component,
  markHandled,
  type ComponentEvents,
  type TelemetryTable,
  type StatusDescription,
  Worker,
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

type Told = Pick<ReloadActionEvents, 'started' | 'succeeded' | 'failed'>;
/** Of an error, name, code and message. */
type Published<Payload> = {
  [F in keyof Payload]: Payload[F] extends Error ? PointMessages['error']['error'] : Payload[F];
};
type Messages = { [E in keyof Told]: Published<Told[E][0]> & { readonly component: ComponentHandle } };

/** An event in telemetry that only a `ReloadAction` has. */
export type ReloadActionPoint = {
  [E in keyof Messages]: { readonly name: E; readonly message: Messages[E] };
}[keyof Messages];

/** The attempts are logged, and the runs of which they consist are counted. */
const TELEMETRY: TelemetryTable<Messages, { action: ActionMessage }> = {
  events: {
    started: { fields: ['update', 'attempt'], level: 'routine', text: ({ attempt }) => `attempt ${attempt}` },
    succeeded: {
      fields: ['update', 'attempt', 'durationMs'],
      level: 'routine',
      text: ({ durationMs }) => `done in ${Math.round(durationMs)} ms`,
    },
    failed: {
      fields: ['update', 'attempt', 'error', 'retryDelayMs'],
      level: 'warn',
      text: ({ error: { message }, retryDelayMs }) =>
        `${message}; ${retryDelayMs === null ? 'not retried' : `next attempt in ${Math.round(retryDelayMs)} ms`}`,
    },
  },
  operations: {
    action: {
      measure: ({ action, result }, meter) => meter.count('actions', { action, result }),
    },
  },
  metrics: {
    actions: {
      kind: 'counter',
      unit: '{action}',
      labels: ['target', 'action', 'result'],
      help: 'Runs of checks and actions of a ReloadAction (succeeded, interrupted, error).',
    },
    'action.failing': {
      kind: 'gauge',
      unit: '1',
      of: 'greatest',
      labels: ['target'],
      help: 'Whether the newest update has not been handled: 1 after a check or an action failed, until one succeeds.',
    },
  },
};

/** Ready: the last action, if any, succeeded. */
export const reloadDescription: StatusDescription<ReloadActionStatus> = {
  worksIdle: true,
  telemetry: TELEMETRY,
  metrics: ({ lastSuccessful }) => [
    { metric: 'action.failing', labels: {}, value: lastSuccessful === false ? 1 : 0 },
  ],
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
  readonly #worker: Worker<ActionUpdate>;
  /** The update that is being handled, or was not handled successfully. It is merged into the next one. */
  #missed: ActionUpdate | undefined;
  /** How many of the actions have succeeded for it. */
  #done = 0;
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
    this.#worker = new Worker({
      clock,
      persistent: true,
      merge: mergeUpdates,
      restMs: () => this.#restMs(),
      run: (update, attempt) => this.#attempt(update, attempt),
    });
  }

  override get state(): ReloadActionStatus['state'] {
    const state = this.lifecycleState;
    if (state === 'idle' || state === 'closed') return state;
    return this.#worker.state === 'idle' ? 'ready' : this.#worker.state;
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
    this.#worker.give(update);
  }

  /**
   * What was not handled successfully so far: all updates since the last success, merged; undefined if there are none.
   * After `close()`, this is what is left to the successor.
   */
  get unhandled(): ActionUpdate | undefined {
    const { next } = this.#worker;
    return next ? merged(this.#missed, next) : this.#missed;
  }

  /** Resolves when no update is waiting or being handled. While an action is retried, its update is being handled. */
  idle(): Promise<void> {
    return this.#worker.idle();
  }

  protected override get purpose(): string {
    return `run the action "${this.name}"`;
  }

  protected override onStart(): Promise<unknown> {
    // Not awaited: a file server that does not answer must not hold up the start.
    for (const action of this.#options.actions) action.prepare?.().catch(() => undefined);
    return super.onStart();
  }

  protected override onClose(): Promise<void> {
    return this.#worker.close();
  }

  /** How long an update waits before it is handled. */
  #restMs(): number {
    const { splayMs, cooldownMs, random, clock } = this.#options;
    const cooldown = this.#restsFrom + cooldownMs - clock.monotonic();
    return Math.max(splayMs > 0 ? random() * splayMs : 0, cooldown);
  }

  /** Resolves to the delay before the next attempt, ms; undefined if none follows. */
  async #attempt(newest: ActionUpdate, attempt: number): Promise<number | undefined> {
    const { check, maxAttempts, clock } = this.#options;
    if (attempt === 1) {
      this.#missed = merged(this.#missed, newest);
      this.#done = 0;
      this.#backoff.reset();
    }
    const update = this.#missed ?? newest;
    const begun = clock.monotonic();
    if (check && this.#done === 0) {
      const verdict = await this.#run(check, update);
      if (verdict instanceof ActionError) {
        this.#failed(verdict);
        this.dispatch('rejected', { update, error: verdict });
      }
      if (verdict !== 'succeeded') return undefined;
    }
    this.dispatch('started', { update, attempt });
    const result = await this.#runAll(update);
    if (result instanceof ActionError) {
      const retryDelayMs = attempt < maxAttempts ? this.#backoff.next() : null;
      this.#failed(result);
      this.dispatch('failed', { update, attempt, error: result, retryDelayMs });
      return retryDelayMs ?? undefined;
    }
    if (result === 'succeeded') {
      this.#succeeded();
      this.dispatch('succeeded', { update, attempt, durationMs: clock.monotonic() - begun });
    }
    return undefined;
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

  /** Runs the remaining actions one after another. */
  async #runAll(update: ActionUpdate): Promise<RunResult> {
    const { actions, check } = this.#options;
    for (const action of actions.slice(this.#done)) {
      const result = await this.#run(action, update);
      if (result !== 'succeeded') return result;
      this.#done += 1;
      if (check && this.#done < actions.length && this.#worker.next) return 'superseded';
    }
    return 'succeeded';
  }

  /** Runs one action. */
  async #run(action: Action, update: ActionUpdate): Promise<RunResult> {
    if (this.lifetime.ended) return 'interrupted';
    // Known now, while it is told when the run is over: it may still fulfill, or never stop.
    const onLate = (error: ActionError): void => this.#failed(error);
    const run = (): ReturnType<typeof runAction> =>
      runAction(action, update, { ...this.#options, onLate }, this.lifetime.signal);
    try {
      return await this.trace('action', { action: action.kind ?? 'custom' }, run, String);
    } catch (error) {
      return error as ActionError;
    }
  }
}

function merged(earlier: ActionUpdate | undefined, later: ActionUpdate): ActionUpdate {
  return earlier ? mergeUpdates(earlier, later) : later;
}
