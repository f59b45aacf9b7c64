/** The entry point "@resilient-watcher/cli/action": what to do when something has changed. */
export { ActionError, type Action } from './action/action.js';
export { commandAction, type CommandActionOptions } from './action/command-action.js';
export { ProcessGroup, type ProcessExit } from './action/process-group.js';
export {
  ReloadAction,
  type ActionMessage,
  type ActionOperation,
  type ReloadActionEvents,
  type ReloadActionPoint,
  type ReloadActionStatus,
} from './action/reload-action.js';
export type { ReloadActionOptions } from './action/reload-options.js';
export { signalAction, type SignalTarget } from './action/signal-action.js';
export { mergeUpdates, updateOf, type ActionUpdate, type PathUpdate } from './action/action-update.js';
export { webhookAction, type WebhookActionOptions } from './action/webhook-action.js';
