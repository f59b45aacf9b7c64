import type { ReloadAction } from '../action.js';
import { oneLine } from './output.js';
import type { Session } from './session.js';

/** Prints the events of a `ReloadAction`. */
export function report(reload: ReloadAction, { output }: Session): void {
  const { name: action } = reload;
  const shown = oneLine(action);
  reload.on('started', ({ attempt }) => {
    output.log('debug', 'started', `${shown}: attempt ${attempt}`, { action, attempt });
  });
  reload.on('succeeded', ({ update, attempt, durationMs }) => {
    const revisions = update.paths.flatMap(({ revision }) => revision ?? []);
    const message = `${shown}: done in ${Math.round(durationMs)} ms`;
    output.log('info', 'succeeded', message, { action, attempt, durationMs, revisions });
  });
  reload.on('failed', ({ error: { message, code }, attempt, retryDelayMs }) => {
    const next = retryDelayMs === null ? 'not retried' : `next attempt in ${Math.round(retryDelayMs)} ms`;
    output.log('warn', 'failed', `${message}; ${next}`, { action, attempt, code, retryDelayMs });
  });
  reload.on('rejected', ({ error: { message, code } }) => {
    output.log('warn', 'rejected', `the check failed, so nothing was done: ${message}`, { action, code });
  });
  reload.on('error', ({ message }) => output.log('error', 'error', message));
}
