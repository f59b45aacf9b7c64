/**
 * Events that say what does not work, and that nobody hears. Silence would look like success, so the first one of each
 * name, and each `error`, becomes a process warning.
 *
 * | heard by                                                | the warning |
 * |---------------------------------------------------------|-------------|
 * | a listener, or the component of which this one is a part | none        |
 * | `logTo`, `observe` with `point`, a channel's subscriber  | none        |
 * | metrics, spans, `for await`, `status()`, health checks   | one         |
 *
 * Telemetry does not show what a function of the application threw, nor where. Such an `error` is a warning unless a
 * listener hears it.
 */
import { ListenerError } from '../errors/errors.js';
import { warnOf } from './listener-guards.js';
import { ResilientError } from '../errors/resilient-error.js';
import { isHeardByTelemetry } from '../telemetry/telemetry.js';

const TROUBLE: ReadonlySet<string> = new Set([
  'unreadable',
  'rejected',
  'reverted',
  'warning',
  'retry',
  'undelivered',
  'failed',
  'expired',
]);

/** The payload of such an event: with an `error`, or a problem itself. */
interface Trouble {
  readonly error?: { readonly name: string; readonly code?: string; readonly message: string };
  readonly code?: string;
  readonly message?: string;
}

/** Remembers which events of one component were warned of. */
export class UnheardEvents {
  readonly #warned = new Set<string>();

  /** Called with an event that has no listener. */
  emitted(
    component: { readonly kind: string; readonly name: string },
    event: string,
    payload: unknown,
  ): void {
    if (event === 'error') {
      if (!isHeardByTelemetry(event) || !isShown(payload)) warnOf(payload as Error);
      return;
    }
    if (!TROUBLE.has(event) || this.#warned.has(event) || isHeardByTelemetry(event)) return;
    this.#warned.add(event);
    const { kind, name } = component;
    const trouble = Object(payload) as Trouble;
    const { code, message } = trouble.error ?? trouble;
    process.emitWarning(`${kind} "${name}": ${event}: ${message}`, {
      type: trouble.error?.name ?? 'Warning',
      ...(code !== undefined && { code }),
      detail: `Nothing listens to "${event}", so only the first one is shown: add a listener, or log all events with logTo(console)`,
    });
  }
}

/** Whether telemetry shows the message of an error. */
function isShown(error: unknown): boolean {
  return error instanceof ResilientError && !(error instanceof ListenerError);
}
