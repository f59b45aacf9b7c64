/** The table of findings in manifests. Some of them are also found at a path, and have their row there. */
import { finding as findingAtPath, type Finding as FindingAtPath } from '../doctor/finding.js';

const KINDS = {
  IMMUTABLE: {
    severity: 'never',
    fix: 'Remove `immutable: true`, or publish each version under a new name and roll the pods.',
  },
  ENV_FROM: {
    severity: 'never',
    fix: 'Mount the Secret or ConfigMap as a volume: environment variables are read once, when the container starts, and sync-pods, the command that makes kubelet update volumes at once, cannot change that.',
  },
  ENV_FILE: {
    severity: 'never',
    fix: 'Read and follow the file itself: `fileKeyRef` is read once, when the container starts.',
  },
  IMAGE_VOLUME: {
    severity: 'never',
    fix: 'Name a new image and roll the pods, or mount a ConfigMap: an image volume never changes while its pod lives.',
  },
  UNDEFINED_VOLUME: {
    severity: 'never',
    fix: 'Define the volume, or correct its name: the API server refuses the pod.',
  },
  MISSING_KEY: {
    severity: 'never',
    fix: 'Correct the name, or add the key: without it, the container does not start, or finds a directory in place of the file.',
  },
  EXPIRATION_REFUSED: {
    severity: 'never',
    fix: 'Set `expirationSeconds` of a token to at least 600, `maxExpirationSeconds` of a pod certificate to at least 3600: the API server refuses less.',
  },
  KEY_TYPE: {
    severity: 'never',
    fix: 'Set `keyType`, such as `ECDSAP256`: without it, kubelet never gets a certificate, and the pod does not start.',
  },
  TRUST_SELECTOR: {
    severity: 'never',
    fix: 'Set either `name`, or `signerName` with `labelSelector` (`{}` selects all): without a selector, no bundle is selected.',
  },
  CA_READ_ONCE: {
    severity: 'never',
    fix: 'Set `RESILIENT_WATCHER_CA` and `NODE_OPTIONS=--import resilient-watcher/trust`, or restart the program after each change: this variable is read once, at the start.',
  },
  CA_PATH: {
    severity: 'never',
    fix: 'Mount the volume of the bundle at this path, or correct the path.',
  },
  SERVICE_LINKS: {
    severity: 'note',
    fix: 'Set `enableServiceLinks: false` in the spec of the pod, unless the program reads these variables.',
  },
  SPLIT_CERTIFICATE: {
    severity: 'note',
    fix: 'Use `credentialBundlePath` instead of `keyPath` and `certificateChainPath`: a reader of two files can get the key of one certificate and the chain of another.',
  },
  SHORT_CERTIFICATE: {
    severity: 'note',
    fix: 'Follow the file. If the program reads it only once, set `maxExpirationSeconds` (up to 91 days, if the signer allows it) and restart the program before that.',
  },
  NO_FS_GROUP: {
    severity: 'note',
    fix: 'Set `fsGroup` in the securityContext of the pod, or `defaultUser` of the volume (alpha in Kubernetes 1.37): without it, a non-root container cannot read Secrets and tokens of mode 0600.',
  },
} satisfies Readonly<Record<string, Pick<FindingAtPath, 'severity' | 'fix'>>>;

type FindingId = keyof typeof KINDS | 'SUBPATH' | 'MISSING' | 'UNREADABLE' | 'LONG_PROJECTION';

/** One reason why updates are not seen, or are seen late. */
export interface Finding extends Omit<FindingAtPath, 'id'> {
  /** The stable name of its kind. */
  readonly id: FindingId;
}

/** A finding with the severity and the fix of its kind. */
export function finding(id: FindingId, message: string): Finding {
  return isOwn(id) ? { id, message, ...KINDS[id] } : { ...findingAtPath(id, message), id };
}

function isOwn(id: FindingId): id is keyof typeof KINDS {
  return id in KINDS;
}
