/** The table of findings: everything that can prevent or delay updates of a mounted file. */

/** The severity. `never`: no update will be seen. `degraded`: late, or only by polling. `note`: worth knowing. */
export const SEVERITIES = ['never', 'degraded', 'note'] as const;

type Severity = (typeof SEVERITIES)[number];

interface Kind {
  readonly severity: Severity;
  readonly fix: string;
}

const KINDS = {
  SUBPATH: {
    severity: 'never',
    fix: 'Mount the whole volume as a directory and use the file in it; kubelet never updates a subPath mount, and sync-pods, the command that makes kubelet update volumes at once, cannot change that.',
  },
  FILE_MOUNT: {
    severity: 'never',
    fix: 'Mount the directory instead of the single file: a bind mount keeps the file that it was made with.',
  },
  UNREADABLE: {
    severity: 'never',
    fix: 'Set `fsGroup` or `runAsUser` in the securityContext, or `defaultMode` of the volume, so that the user of the process can read it.',
  },
  WRONG_TARGET: {
    severity: 'never',
    fix: 'Correct the path, or the links on it: it must lead to a regular file or a directory.',
  },
  IO_ERROR: {
    severity: 'never',
    fix: 'Check the mount and the log of the node: the file system reports an error.',
  },
  NODE_PERMISSION: {
    severity: 'never',
    fix: 'Start Node.js with --allow-fs-read for the whole directory or volume; the directories above it may be denied.',
  },
  DANGLING: {
    severity: 'degraded',
    fix: 'It is noticed when it is created. If it should exist already, check the keys of the volume and its `items`.',
  },
  MISSING: {
    severity: 'degraded',
    fix: 'The path is noticed when it is created. If it should already exist, check its name and the mount.',
  },
  NO_EVENTS_FS: {
    severity: 'degraded',
    fix: 'Changes made elsewhere are found by polling, by default every second. Lower --poll to see them sooner.',
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
  TOKEN_AUDIENCE: {
    severity: 'never',
    fix: 'Set `audience` of the projected token, or ask for a token with `resilient-watcher token --audience`.',
  },
  CERTIFICATE_REJECTED: {
    severity: 'never',
    fix: 'Correct what the message names: a program keeps the last good set in use, and one that starts has none.',
  },
  CERTIFICATE_EXPIRED: {
    severity: 'degraded',
    fix: 'It should have been renewed by now. Look at the events of the pod, the Certificate and the PodCertificateRequest.',
  },
  CERTIFICATE_CHAIN: {
    severity: 'note',
    fix: 'Have the certificate issued again, or correct the chain after it: some clients reject it.',
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
    fix: 'Set a shorter `expirationSeconds` (at least 600): kubelet replaces a token at 80% of its lifetime, and after 24 h at the latest.',
  },
} satisfies Readonly<Record<string, Kind>>;

/** The stable name of a finding. */
export type FindingId = keyof typeof KINDS;

/** One reason why updates of a path are not seen, or are seen late. */
export interface Finding {
  /** The stable name of its kind. */
  readonly id: FindingId;
  /** The severity of its kind. */
  readonly severity: Severity;
  /** What was found, and where. */
  readonly message: string;
  /** What to do about it. */
  readonly fix: string;
}

/** A finding with the severity of its kind, and its fix unless there is a better one. */
export function finding(id: FindingId, message: string, fix: string = KINDS[id].fix): Finding {
  return { id, severity: KINDS[id].severity, message, fix };
}
