/** The entry point "@resilient-watcher/cli/doctor", which finds out why a path never shows an update, or only late. */
export { diagnose, type DiagnoseOptions, type Diagnosis } from './doctor/diagnosis.js';
export type { Finding } from './doctor/finding.js';
