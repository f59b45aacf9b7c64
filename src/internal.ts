/**
 * The entry point "resilient-watcher/internal": for the packages of this repository, at exactly this version. It is no API:
 * any release may change it. It has what they need beyond the other entry points, and nothing that none of them uses.
 */
import './index.js';

export { onAbort } from './core/scheduling/abort.js';
export { Backoff } from './core/scheduling/backoff.js';
export { promised } from './core/ports/file-system.js';
export { durationText, isoTime, kubernetesTime } from './core/ports/clock.js';
export { Component, type ComponentEvents } from './core/lifecycle/component.js';
export { withDeadline } from './core/scheduling/deadline.js';
export { errnoOf } from './core/errors/errno.js';
export type { CodeOf } from './core/errors/error-codes.js';
export type { LifecycleState } from './core/lifecycle/lifecycle.js';
export {
  describe,
  flag,
  hasMethods,
  isNonEmptyString,
  isStringMap,
  matching,
  milliseconds,
  nonEmptyString,
  number,
  optional,
  port,
  PORT_OPTIONS,
  required,
  resolveOptions,
} from './core/options/options.js';
export { markHandled, Outcome } from './core/scheduling/outcome.js';
export { CodedError, recognize, redactError } from './core/errors/resilient-error.js';
export { redact } from './core/options/redaction.js';
export { isOnWindows } from './core/ports/platform-path.js';
export type { TelemetryTable } from './core/telemetry/telemetry-definitions.js';
export { SerialQueue } from './core/scheduling/serial-queue.js';
export { sleep } from './core/scheduling/sleep.js';
export type { StatusDescription, Verdict } from './core/telemetry/status-description.js';
export { USER_AGENT } from './core/options/version.js';
export { Worker } from './core/scheduling/worker.js';
export { withoutTrailingSlashes } from './fs/absolute-path.js';
export { Globs } from './fs/globs.js';
export { examine } from './fs/examine.js';
export { sha256 } from './fs/snapshot.js';
export { DATA_LINK, isEntryName } from './fs/volume-layout.js';
export { apiFailureOf, otherFailure, pauseAfter, statusOf } from './kubernetes/api-failure.js';
export { ApiFailure } from './kubernetes/api-request.js';
export { podServer } from './kubernetes/cluster-access.js';
export { examineCertificates } from './tls/examine-certificates.js';
export { Generations, trustsLess } from './tls/generation.js';
export { endConnections, followConnections } from './tls/server-connections.js';
export { checkNoLists, checkTlsFiles } from './tls/tls-files.js';
