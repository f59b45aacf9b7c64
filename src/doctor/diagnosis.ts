/** Finds out why a path will never show an update, or how soon it will. */
import { access, constants, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { geteuid } from 'node:process';

import { isoTime, systemClock, type Clock } from '../core/clock.js';
import { errnoOf } from '../core/errno.js';
import { errorCodeOf } from '../core/errors.js';
import type { TargetError } from '../fs/target-error.js';
import { nodeFileSystem } from '../core/file-system.js';
import { checkPath } from '../core/options.js';
import { absolutePath } from '../fs/absolute-path.js';
import { runAsync } from '../fs/effects.js';
import { fileSystemKind } from '../fs/file-system-kind.js';
import { hopsOf, type ResolvedChain } from '../fs/link-chain.js';
import { readMounts, staleMountIn } from '../fs/mount-table.js';
import { PathTarget } from '../fs/targets/path-target.js';
import { finding, type Finding } from './finding.js';
import { inotifyUsage, type InotifyUsage } from './inotify-usage.js';
import { tokenFindings } from './token-findings.js';

/** The result of `diagnose()` for one path. Plain data without contents. */
export interface Diagnosis {
  /** The examined path, absolute. */
  readonly path: string;
  /** The path with all links resolved; null when the chain of links is broken. */
  readonly realPath: string | null;
  /** The links of the chain, in order. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** The file systems along the chain. */
  readonly mounts: readonly { readonly path: string; readonly type: string }[];
  /** What `..data` points to; null outside a volume. */
  readonly revision: string | null;
  /** When the revision was published, epoch ms, by the timestamp of its directory or file; null if unknown. */
  readonly revisionAt: number | null;
  /** The use of the inotify limits of this user; null where there is no `/proc`. */
  readonly inotify: InotifyUsage | null;
  /** The findings, the most severe first. */
  readonly findings: readonly Finding[];
}

/** Larger files are not tokens, and are not read. */
const MAX_TOKEN_BYTES = 65_536;

const LIMITS = { maxContentBytes: MAX_TOKEN_BYTES, maxTotalBytes: MAX_TOKEN_BYTES, maxFiles: 1 };

/** Timestamps this far in the future are not due to rounding, ms. */
const SKEW_MS = 60_000;

const SEVERITIES = ['never', 'degraded', 'note'];

/** Options of `diagnose`. */
export interface DiagnoseOptions {
  /** The clock that timestamps and tokens are compared with. Default: the system clock. */
  readonly clock?: Pick<Clock, 'now'> | undefined;
}

/**
 * Finds out what keeps a path from showing updates.
 * @throws {TypeError} (rejects) for an invalid path.
 */
export async function diagnose(
  path: string,
  { clock = systemClock }: DiagnoseOptions = {},
): Promise<Diagnosis> {
  const now = clock.now();
  const target = new PathTarget(absolutePath(checkPath('diagnose', 'path', path)), LIMITS);
  const chain = await runAsync(target.resolve(), nodeFileSystem);
  const [mounts, inotify] = await Promise.all([mountsOf(chain), inotifyUsage()]);
  const realPath = chain.end.kind === 'found' ? chain.end.path : null;
  const revisionAt = chain.end.kind === 'found' ? Number(chain.end.stat.ctimeNs / 1_000_000n) : null;
  const findings = [
    ...endFindings(chain),
    ...(realPath === null ? [] : await accessFindings(realPath)),
    ...(chain.end.kind === 'found'
      ? await mountFindings(chain.end.path, chain.end.stat.isFile() ? 'file' : 'directory')
      : []),
    ...mounts.flatMap(({ path: at, type, isRemote }) =>
      isRemote ? [finding('NO_EVENTS_FS', `"${at}" is on ${type}, which reports no events`)] : [],
    ),
    ...limitFindings(inotify),
    ...(realPath !== null && mayBeToken(chain) ? await tokenFindings(realPath, now) : []),
    ...skewFindings(target.path, revisionAt, now),
  ];
  return {
    path: target.path,
    realPath,
    links: [...hopsOf(chain)].map(([from, to]) => ({ path: from, target: to })),
    mounts: mounts.map(({ path: at, type }) => ({ path: at, type })),
    revision: chain.revision ?? null,
    revisionAt,
    inotify,
    findings: findings.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity)),
  };
}

function mayBeToken({ end }: ResolvedChain): boolean {
  return end.kind === 'found' && end.stat.isFile() && end.stat.size <= MAX_TOKEN_BYTES;
}

function endFindings({ end, links, path }: ResolvedChain): Finding[] {
  switch (end.kind) {
    case 'missing':
      return links !== ''
        ? [finding('DANGLING', `"${path}" leads to "${end.path}", which does not exist`)]
        : [finding('MISSING', `"${end.path}" does not exist`)];
    case 'unreadable':
      return [unreadable(path, end.error)];
    case 'found':
    case 'unstable':
    case 'disallowed':
      return [];
  }
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
          finding('UNREADABLE', `"${path}" may not be read by uid ${geteuid?.() ?? 'unknown'} (${errno})`),
        ];
      }
    }
  }
  return [];
}

/** The permission model of Node.js refuses with a code of its own. */
function unreadable(path: string, error: TargetError): Finding {
  if (error.cause instanceof Error && errorCodeOf(error.cause) === 'ERR_ACCESS_DENIED') {
    return finding('NODE_PERMISSION', `Node.js was not given permission to read "${path}"`);
  }
  return finding('UNREADABLE', `${error.message} (this process runs as uid ${geteuid?.() ?? 'unknown'})`);
}

async function mountFindings(realPath: string, kind: 'file' | 'directory'): Promise<Finding[]> {
  const mount = staleMountIn(await runAsync(readMounts(), nodeFileSystem), realPath, kind);
  return mount ? [finding(mount.kind === 'revision' ? 'SUBPATH' : 'FILE_MOUNT', mount.message)] : [];
}

async function mountsOf({
  mounts,
}: ResolvedChain): Promise<{ readonly path: string; readonly type: string; readonly isRemote: boolean }[]> {
  return Promise.all(
    [...mounts.values()].map(async (path) => {
      const stat = await nodeFileSystem.statfs(path).catch(() => undefined);
      const kind = stat && fileSystemKind(stat.type, process.platform);
      return { path, type: kind?.name ?? 'unknown', isRemote: kind?.place === 'remote' };
    }),
  );
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
