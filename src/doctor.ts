/** The entry point "resilient-watcher/doctor": why a path never shows an update, or how soon it will. */
export { diagnose, type DiagnoseOptions, type Diagnosis } from './doctor/diagnosis.js';
export type { Finding, FindingId, Severity } from './doctor/finding.js';
export type { InotifyUsage, Usage } from './doctor/inotify-usage.js';
export { findingsInManifests } from './doctor/manifest.js';
