/** What a queue of patches is told, and what it tells. */
import type { Clock, Random } from 'resilient-watcher';

/** A patch that is due. */
export interface DuePatch {
  /** Whether it is the first one after a change. */
  readonly isFirst: boolean;
  /** The number in its value; 0: none. */
  readonly repetition: number;
  readonly sinceChangeMs: number;
}

/** A patch that failed. */
export interface PatchFailure {
  readonly error: unknown;
  /** What fails with it, such as `patch pods in shop`. */
  readonly what: string;
  /** The pod, if only that is refused. */
  readonly pod: string | undefined;
  /** Whether it is one more in a row; otherwise it is known already. */
  readonly isCounted: boolean;
  /** The time until the next attempt. */
  readonly delayMs: number;
}

/** The limits of a queue, and what it does with what is due. */
export interface QueueOptions {
  readonly maxPatchesPerSecond: number;
  readonly burst: number;
  readonly maxDelayMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Sets the annotation; resolves to false if it has this value. */
  readonly patch: (pod: string, due: DuePatch) => Promise<boolean>;
  /** Asks by a dry run whether a patch of the pod would succeed; resolves to false if the pod is not known. */
  readonly ask: (pod: string) => Promise<boolean>;
  /** A pod in the namespace, or in any: each time another one. */
  readonly anyPod: (namespace: string | undefined) => string | undefined;
  readonly isHealthy: (what: string) => boolean;
  /** Asks the API server whether we may patch pods in the namespace. */
  readonly isAllowed: (namespace: string) => Promise<boolean>;
  /** The pod has waited for too long. */
  readonly onBehind: (pod: string, waitedMs: number) => void;
  readonly onFailure: (failure: PatchFailure) => void;
  /** Nothing speaks against the next patch. */
  readonly onSuccess: (what: string) => void;
}
