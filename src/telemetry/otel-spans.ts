import { AsyncLocalStorage } from 'node:async_hooks';

import type * as api from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';

import { systemClock } from '../core/ports/clock.js';
import { followNames, operationChannel } from '../core/telemetry/telemetry.js';
import { attributesOf } from './otel-metrics.js';
import { count, type Operation } from './observe.js';
import { typeOf } from '../core/telemetry/telemetry-points.js';

type Message = Operation['message'];

/**
 * Operations whose span is created when they end, if at all: most checks find nothing, and spans for all would hide
 * the others.
 */
const AFTERWARDS: ReadonlySet<string> = new Set(['check']);

/**
 * Creates a span for each operation, but only for checks that find a change or fail. An operation within another one,
 * such as the write within a publication, is its child. Ends when the returned function is called.
 */
export function recordSpans({ context, trace, SpanStatusCode }: typeof api, tracer: Tracer): () => void {
  const contexts = new AsyncLocalStorage<Context>();
  const spans = new WeakMap<Message, Span>();
  const begun = new WeakMap<Message, { readonly at: number; readonly parent: Context }>();
  const parent = (): Context => contexts.getStore() ?? context.active();

  /** The context in which the work of an operation runs. */
  const enter = (name: string, message: Message): Context => {
    begun.set(message, { at: systemClock.now(), parent: parent() });
    if (AFTERWARDS.has(name)) return parent();
    const span = tracer.startSpan(spanName(name), { attributes: attributesAtStart(message) }, parent());
    spans.set(message, span);
    return trace.setSpan(parent(), span);
  };

  const leave = ({ name, message }: Operation, durationMs: number): void => {
    const start = begun.get(message);
    if (!start) return;
    const span =
      spans.get(message) ??
      (message.result === 'unchanged'
        ? undefined
        : tracer.startSpan(
            spanName(name),
            { startTime: start.at, attributes: attributesAtStart(message) },
            start.parent,
          ));
    if (!span) return;
    if (message.result !== undefined) span.setAttribute('resilient_watcher.result', message.result);
    if (message.error) {
      span.setAttribute('error.type', typeOf(message.error));
      span.setStatus({ code: SpanStatusCode.ERROR, message: message.error.message });
    }
    span.end(AFTERWARDS.has(name) ? start.at + durationMs : undefined);
  };

  const subscription = count({ settled: leave });
  const bound = new Set<string>();
  const endNames = followNames('operations', (name) => {
    bound.add(name);
    operationChannel(name).start.bindStore(contexts, (message) => enter(name, message as Message));
  });
  return () => {
    endNames();
    subscription.close();
    for (const name of bound) operationChannel(name).start.unbindStore(contexts);
  };
}

const spanName = (name: string): string => `resilient_watcher.${name}`;

/** The attributes of a message that have single words as values. */
function attributesAtStart({ component, result: _result, error: _error, ...details }: Message): Attributes {
  return attributesOf({
    ...(details as Readonly<Record<string, string>>),
    ...(component && { component: component.kind, target: component.name }),
  });
}
