/** The events of the components: the lines of `logTo`, without the class of the component. */
import { logTo, type StructuredLogger } from 'resilient-watcher';

import type { Output } from './output.js';

/** Lines about what works. A failure of the same has another level. */
const DETAILS: readonly string[] = [
  'start',
  'close',
  'restart',
  'started',
  'token.request',
  'token.delivery',
];

/** The message of the library names options that this program does not have. */
const ABOVE_LIMIT =
  'some files are too large or too many to be read; they are compared by inode and timestamps';

/** The fields of a line; those that are not listed differ by event. */
interface LineFields {
  readonly event: string;
  readonly component: string;
  readonly name: string;
  readonly code?: string;
  readonly message?: string;
}

/** Prints what the components of this process say, until the result is closed. */
export function printTelemetry(output: Output): ReturnType<typeof logTo> {
  const printing = (level: keyof StructuredLogger) => (given: object, line: string) => {
    const { event, message: _, ...fields } = given as LineFields;
    const { component, name, code } = fields;
    const text = line.replace(`${component} "${name}"`, () => name);
    const shown = code === 'limit' ? `${name}: ${ABOVE_LIMIT}` : text;
    output.log(level === 'info' && DETAILS.includes(event) ? 'debug' : level, event, shown, fields);
  };
  return logTo({
    debug: printing('debug'),
    info: printing('info'),
    warn: printing('warn'),
    error: printing('error'),
  });
}
