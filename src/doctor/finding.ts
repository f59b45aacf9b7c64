/** The table of findings: what can prevent or delay updates of a mounted file. */

/** How bad it is. `never`: no update will be seen. `degraded`: late, or by polling. `note`: worth knowing. */
export type Severity = 'never' | 'degraded' | 'note';

interface Kind {
  readonly severity: Severity;
  readonly fix: string;
}

const KINDS = {
  SUBPATH: {
    severity: 'never',
    fix: 'Mount the whole volume as a directory and use the file in it; kubelet never updates a subPath mount.',
  },
  FILE_MOUNT: {
    severity: 'never',
    fix: 'Mount the directory instead of the single file: a bind mount keeps the file it was made with.',
  },
  IMMUTABLE: {
    severity: 'never',
    fix: 'Remove `immutable: true`, or publish each version under a new name and roll the pods.',
  },
  ENV_FROM: {
    severity: 'never',
    fix: 'Mount the Secret or ConfigMap as a volume: environment variables are read once, when the container starts.',
  },
  DANGLING: {
    severity: 'never',
    fix: 'Something along the chain of links does not exist. Check the keys of the volume and its `items`.',
  },
  UNREADABLE: {
    severity: 'never',
    fix: 'Set `fsGroup` or `runAsUser` in the securityContext, or `defaultMode` of the volume, so that the user of the process may read it.',
  },
  NODE_PERMISSION: {
    severity: 'never',
    fix: 'Start Node.js with --allow-fs-read for the whole directory or volume; the directories above it may be denied.',
  },
  MISSING: {
    severity: 'degraded',
    fix: 'It is noticed when it is created. If it should exist already, check its name and the mount.',
  },
  NO_EVENTS_FS: {
    severity: 'degraded',
    fix: 'Changes that are made elsewhere are found by polling, by default every second. Lower --poll to see them sooner.',
  },
  INOTIFY_INSTANCES: {
    severity: 'degraded',
    fix: 'Raise fs.inotify.max_user_instances on the node, or run fewer watching processes as this user.',
  },
  INOTIFY_WATCHES: {
    severity: 'degraded',
    fix: 'Raise fs.inotify.max_user_watches on the node, or watch fewer directories.',
  },
  TOKEN_STALE: {
    severity: 'degraded',
    fix: 'kubelet should have replaced this token by now. Check the mount and the clock of the node.',
  },
  TOKEN_FUTURE: {
    severity: 'degraded',
    fix: 'The token is not valid yet by the clock of this machine. Check the clocks of the node and the API server.',
  },
  CLOCK_SKEW: {
    severity: 'degraded',
    fix: 'The clock of this machine and the timestamps of the volume disagree. Synchronize the clock of the node.',
  },
  LONG_PROJECTION: {
    severity: 'note',
    fix: 'Set a shorter `expirationSeconds` (at least 600): kubelet replaces a token at 80 % of its life, after 24 h at the latest.',
  },
  NO_FS_GROUP: {
    severity: 'note',
    fix: 'Set `fsGroup` in the securityContext of the pod: without it a non-root container may not read Secrets and tokens of mode 0600.',
  },
} as const satisfies Readonly<Record<string, Kind>>;

/** The stable name of a finding. */
export type FindingId = keyof typeof KINDS;

/** One reason why updates of a path are not seen, or are seen late. */
export interface Finding {
  /** Its stable name. */
  readonly id: FindingId;
  /** How bad it is. */
  readonly severity: Severity;
  /** What was found, and where. */
  readonly message: string;
  /** What to do about it. */
  readonly fix: string;
}

/** A finding with the severity and the fix of its kind. */
export function finding(id: FindingId, message: string): Finding {
  return { id, message, ...KINDS[id] };
}
