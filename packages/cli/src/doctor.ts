/** The entry point "resilient-watcher/doctor", which finds out why a path never shows an update, or only late. */
import './index.js';

export { diagnose, type DiagnoseOptions, type Diagnosis } from './doctor/diagnosis.js';
export type { Finding } from './doctor/finding.js';
