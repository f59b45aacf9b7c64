import { isoTime } from '../core/clock.js';

/** A time in the JSON of Kubernetes: RFC 3339 in whole seconds. */
export const kubernetesTime = (epochMs: number): string => `${isoTime(epochMs).slice(0, 19)}Z`;
