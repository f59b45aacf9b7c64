/** Which metrics count the operations of the library, and what the log calls them. */
import { telemetryOf, type OperationDefinition } from '../core/telemetry/telemetry-definitions.js';
import type { OperationMessages, OperationName } from '../core/telemetry/telemetry-messages.js';
import type { Operation } from './observe.js';

/**
 * Checks and writes are too frequent for a log, so they have no title. A reload is logged as its change or rejection,
 * and a request that failed as its `retry` or `error`.
 */
const OPERATIONS: { readonly [N in OperationName]: OperationDefinition<OperationMessages[N]> } = {
  check: { measure: ({ cause }, meter) => meter.count('checks', { cause }) },
  'token.request': {
    title: 'token request',
    measure({ reason, result }, meter, seconds) {
      meter.count('token.requests', { reason, result });
      meter.record('token.request.duration', seconds);
    },
  },
  'token.delivery': {
    title: 'token delivery',
    measure: ({ sink, result }, meter) => meter.count('token.deliveries', { sink, result }),
  },
  'config.reload': { measure: ({ result }, meter) => meter.count('config.reloads', { result }) },
  write: {
    measure({ result }, meter, seconds) {
      meter.count('writes', { result });
      meter.record('write.duration', seconds);
    },
  },
  publish: {
    title: 'publication',
    measure: ({ result }, meter) => meter.count('publishes', { result }),
  },
};

/** The definition of an operation of the library or of a package. */
export function operationOf({ name, message }: Operation): OperationDefinition | undefined {
  if (Object.hasOwn(OPERATIONS, name)) return OPERATIONS[name];
  return message.component && telemetryOf(message.component.kind)?.operations?.[name];
}
