/** Finds out why a path never shows an update, or only late. */
import { access, constants, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import { systemClock, type Clock, type TargetError } from 'resilient-watcher';
import { errnoOf, examine, examineCertificates, isoTime } from 'resilient-watcher/internal';

import { finding, SEVERITIES, type Finding } from './finding.js';
import { insteadOf } from './instead-of.js';
import { inotifyUsage, type InotifyUsage } from './inotify-usage.js';
import { tokenFindings } from './token-findings.js';

/** The result of `diagnose()` for one path. Plain data without contents. */
export interface Diagnosis {
  /** The examined path, absolute. */
  readonly path: string;
  /** The path with all links resolved; null if the chain of links is broken. */
  readonly realPath: string | null;
  /** The links of the chain, in order. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** The file systems along the chain. */
  readonly mounts: readonly { readonly path: string; readonly type: string }[];
  /** The target of `..data`; null outside a volume. */
  readonly revision: string | null;
  /**
   * When the revision was published, or the file or an entry of the plain directory was changed, epoch ms, by the
   * timestamps of the file system; null if unknown.
   */
  readonly revisionAt: number | null;
  /** The use of the inotify limits of this user; null if there is no `/proc`. */
  readonly inotify: InotifyUsage | null;
  /** The findings, the most severe first. */
  readonly findings: readonly Finding[];
}

/** Timestamps that are further in the future are not due to rounding, ms. */
const SKEW_MS = 60_000;

/** A secret of Compose belongs to whom it belongs on the host. */
const COMPOSE_FIX =
  'Give the file of the secret on the host an owner or a mode that lets the `user` of the service read it: Compose ignores `uid`, `gid` and `mode` of a secret whose source is a file.';

/** Options of `diagnose`. */
export interface DiagnoseOptions {
  /** The clock that timestamps and tokens are compared with. Default: the system clock. */
  readonly clock?: Pick<Clock, 'now'> | undefined;
  /** Audiences that a token at the path must be for. Default: any. */
  readonly audiences?: readonly string[] | undefined;
}

/**
 * Finds out what prevents or delays updates of a path.
 * @throws {TypeError} (rejects) for an invalid path.
 */
export async function diagnose(
  path: string | URL,
  { clock = systemClock, audiences = [] }: DiagnoseOptions = {},
): Promise<Diagnosis> {
  const now = clock.now();
  const [examination, inotify] = await Promise.all([examine('diagnose', path), inotifyUsage()]);
  const { path: target, end, links, mounts, stale } = examination;
  const isFound = end.kind === 'found';
  const realPath = isFound ? end.path : null;
  const revisionAt = isFound ? await changedAt(end) : null;
  const findings = [
    ...(await endFindings(target, end)),
    ...(realPath === null ? [] : await accessFindings(realPath)),
    ...staleFindings(stale),
    ...mounts.flatMap(({ point, kind }) =>
      kind.place === 'remote'
        ? [finding('NO_EVENTS_FS', `"${point}" is on ${kind.name}, which reports no events`)]
        : [],
    ),
    ...limitFindings(inotify),
    ...(isFound && end.stat.isFile() ? await tokenFindings(end.path, now, audiences) : []),
    ...(realPath === null ? [] : await certificateFindings(target, realPath, now)),
    ...skewFindings(target, revisionAt, now),
  ];
  return {
    path: target,
    realPath,
    links,
    mounts: mounts.map(({ point, kind }) => ({ path: point, type: kind.name })),
    revision: end.route.way.revision ?? null,
    revisionAt,
    inotify,
    findings: findings.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity)),
  };
}

type Examination = Awaited<ReturnType<typeof examine>>;
type End = Examination['end'];

/** A plain directory does not change with the files in it. */
async function changedAt(found: Extract<End, { kind: 'found' }>): Promise<number> {
  let latest = Number(found.stat.ctimeNs / 1_000_000n);
  if (!found.stat.isDirectory() || found.route.way.revision !== undefined) return latest;
  for (const entry of await readdir(found.path).catch(() => [])) {
    const { ctimeMs } = await stat(join(found.path, entry)).catch(() => ({ ctimeMs: 0 }));
    latest = Math.max(latest, Math.trunc(ctimeMs));
  }
  return latest;
}

async function endFindings(path: string, found: End): Promise<Finding[]> {
  switch (found.kind) {
    case 'missing': {
      const others = await othersBeside(found.path);
      return found.route.way.links === ''
        ? [finding('MISSING', `"${found.path}" does not exist${others}`)]
        : [finding('DANGLING', `"${path}" leads to "${found.path}", which does not exist${others}`)];
    }
    case 'unreadable':
      return [unreadable(path, found.error)];
    case 'found':
      return found.stat.isFile() || found.stat.isDirectory()
        ? []
        : [finding('WRONG_TARGET', `"${found.path}" is a pipe, a socket or a device`)];
  }
}

/** What is in the directory of a missing entry; of a volume, its keys. */
async function othersBeside(missing: string): Promise<string> {
  const [name, directory] = [basename(missing), dirname(missing)];
  if (name.startsWith('..')) return '';
  const entries = await readdir(directory).catch(() => undefined);
  if (!entries) return '';
  const names = entries.filter((entry) => !entry.startsWith('..'));
  return names.length === 0 ? `; "${directory}" is empty` : insteadOf(name, names);
}

/** The file, or the directory and its entries. Resolving the path needs no read permission. */
async function accessFindings(realPath: string): Promise<Finding[]> {
  const entries = await readdir(realPath).catch(() => []);
  for (const path of [realPath, ...entries.map((entry) => join(realPath, entry))]) {
    try {
      await access(path, constants.R_OK);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === 'EACCES' || errno === 'EPERM') {
        return [
          finding(
            'UNREADABLE',
            `"${path}" may not be read by uid ${process.geteuid?.() ?? 'unknown'} (${errno})`,
            fixFor(path),
          ),
        ];
      }
    }
  }
  return [];
}

/** Compose mounts each secret by itself; in a pod, kubelet sets the variable. */
function fixFor(unreadable: string): string | undefined {
  const isOfCompose = /^(\/proc\/\d+\/root)?(\/var)?\/run\/secrets\/[^/]+$/.test(unreadable);
  return isOfCompose && process.env['KUBERNETES_SERVICE_HOST'] === undefined ? COMPOSE_FIX : undefined;
}

function unreadable(path: string, { code, message, cause }: TargetError): Finding {
  // The permission model of Node.js has its own error code.
  if (errnoOf(cause) === 'ERR_ACCESS_DENIED') {
    return finding('NODE_PERMISSION', `Node.js was not given permission to read "${path}"`);
  }
  if (code === 'ERR_TARGET_IO') return finding('IO_ERROR', message);
  return code === 'ERR_TARGET_ACCESS'
    ? finding(
        'UNREADABLE',
        `${message} (this process runs as uid ${process.geteuid?.() ?? 'unknown'})`,
        fixFor(path),
      )
    : finding('WRONG_TARGET', message);
}

function staleFindings(stale: Examination['stale']): Finding[] {
  return stale.map(({ kind, path }) =>
    kind === 'revision'
      ? finding('SUBPATH', `"${path}" is a subPath mount of one revision`)
      : finding('FILE_MOUNT', `"${path}" is mounted by itself (subPath, or a bind mount)`),
  );
}

const CERTIFICATE_FINDINGS = {
  rejected: 'CERTIFICATE_REJECTED',
  expired: 'CERTIFICATE_EXPIRED',
  chain: 'CERTIFICATE_CHAIN',
} as const;

async function certificateFindings(path: string, realPath: string, now: number): Promise<Finding[]> {
  const problems = await examineCertificates(path, realPath, now);
  return problems.map(({ kind, message }) => finding(CERTIFICATE_FINDINGS[kind], message));
}

function limitFindings(usage: InotifyUsage | null): Finding[] {
  if (!usage) return [];
  return (['instances', 'watches'] as const)
    .filter((what) => {
      const { used, limit } = usage[what];
      return usage.exhausted === what || (limit !== null && used >= limit);
    })
    .map((what) => {
      const { used, limit } = usage[what];
      const shown = `no inotify ${what} are left: limit ${limit ?? 'unknown'} for this user, ${used} used by processes visible here`;
      return finding(what === 'instances' ? 'INOTIFY_INSTANCES' : 'INOTIFY_WATCHES', shown);
    });
}

function skewFindings(path: string, revisionAt: number | null, now: number): Finding[] {
  if (revisionAt === null || revisionAt <= now + SKEW_MS) return [];
  return [finding('CLOCK_SKEW', `"${path}" was changed at ${isoTime(revisionAt)}, which is in the future`)];
}
