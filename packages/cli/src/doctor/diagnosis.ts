/** Finds out why a path never shows an update, or only late. */
import nodeFileSystem from 'node:fs';
import { access, constants, readdir, stat } from 'node:fs/promises';
import { geteuid } from 'node:process';

import { isoTime, systemClock, type Clock } from '../core/ports/clock.js';
import { errnoOf } from '../core/errors/errno.js';
import { errorCodeOf } from '../core/errors/errors.js';
import { run, type Steps } from '../core/scheduling/steps.js';
import type { TargetError } from '../fs/target-error.js';
import { checkPath } from '../core/options/options.js';
import { absolutePath, within } from '../fs/absolute-path.js';
import { Disk, noAnswers } from '../fs/disk.js';
import type { Mount } from '../fs/mount-table.js';
import { Mounts, staleMount } from '../fs/mounts.js';
import { linksIn, resolve, type Resolution } from '../fs/resolve.js';
import { DATA_LINK } from '../fs/volume-layout.js';
import { finding, SEVERITIES, type Finding } from './finding.js';
import { inotifyUsage, type InotifyUsage } from './inotify-usage.js';
import { chainFindings } from './chain-findings.js';
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
  const target = absolutePath(checkPath('diagnose', 'path', path));
  const mounts = Mounts.of(nodeFileSystem, 0);
  await mounts.ask(target);
  const [found, inotify] = await Promise.all([resolution(target, mounts), inotifyUsage()]);
  const isFound = found.kind === 'found';
  const realPath = isFound ? found.path : null;
  const revisionAt = isFound ? await changedAt(found) : null;
  const passed = mountsOf(found, mounts);
  const findings = [
    ...endFindings(target, found),
    ...(realPath === null ? [] : await accessFindings(realPath)),
    ...(isFound ? mountFindings(found.path, found.stat.isFile() ? 'file' : 'directory', mounts) : []),
    ...passed.flatMap(({ point, kind }) =>
      kind.place === 'remote'
        ? [finding('NO_EVENTS_FS', `"${point}" is on ${kind.name}, which reports no events`)]
        : [],
    ),
    ...limitFindings(inotify),
    ...(isFound && found.stat.isFile() ? await tokenFindings(found.path, now, audiences) : []),
    ...(realPath === null ? [] : await chainFindings(realPath, now)),
    ...skewFindings(target, revisionAt, now),
  ];
  return {
    path: target,
    realPath,
    links: linksOf(found),
    mounts: passed.map(({ point, kind }) => ({ path: point, type: kind.name })),
    revision: found.route.way.revision ?? null,
    revisionAt,
    inotify,
    findings: findings.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity)),
  };
}

/** Where the path leads; for a volume, to its revision. */
async function resolution(path: string, mounts: Mounts): Promise<Resolution> {
  return run(throughVolume(path, new Disk(nodeFileSystem, mounts, systemClock, noAnswers())));
}

function* throughVolume(path: string, disk: Disk): Steps<Resolution> {
  const found = yield* resolve(path, disk);
  if (found.kind !== 'found' || !found.stat.isDirectory()) return found;
  const published = yield* resolve(within(path, DATA_LINK), disk);
  return published.route.way.links === found.route.way.links ? found : published;
}

function linksOf({ route }: Resolution): Diagnosis['links'] {
  return Array.from(linksIn(route.way.links), ({ path, target }) => ({ path, target }));
}

/** A plain directory does not change with the files in it. */
async function changedAt(found: Extract<Resolution, { kind: 'found' }>): Promise<number> {
  let latest = Number(found.stat.ctimeNs / 1_000_000n);
  if (!found.stat.isDirectory() || found.route.way.revision !== undefined) return latest;
  for (const entry of await readdir(found.path).catch(() => [])) {
    const { ctimeMs } = await stat(within(found.path, entry)).catch(() => ({ ctimeMs: 0 }));
    latest = Math.max(latest, Math.trunc(ctimeMs));
  }
  return latest;
}

/** The mounts on the path, each once. */
function mountsOf(found: Resolution, mounts: Mounts): Mount[] {
  const places = ['/', ...found.route.directories.map(({ path }) => path)];
  if (found.kind === 'found') places.push(found.path);
  return [...new Map(places.map((place) => [mounts.at(place).point, mounts.at(place)])).values()];
}

function endFindings(path: string, found: Resolution): Finding[] {
  switch (found.kind) {
    case 'missing':
      return found.route.way.links === ''
        ? [finding('MISSING', `"${found.path}" does not exist`)]
        : [finding('DANGLING', `"${path}" leads to "${found.path}", which does not exist`)];
    case 'unreadable':
      return [unreadable(path, found.error)];
    case 'found':
      return found.stat.isFile() || found.stat.isDirectory()
        ? []
        : [finding('WRONG_TARGET', `"${found.path}" is a pipe, a socket or a device`)];
  }
}

/** The file, or the directory and its entries. Resolving the path needs no read permission. */
async function accessFindings(realPath: string): Promise<Finding[]> {
  const entries = await readdir(realPath).catch(() => []);
  for (const path of [realPath, ...entries.map((entry) => within(realPath, entry))]) {
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

function unreadable(path: string, { code, message, cause }: TargetError): Finding {
  // The permission model of Node.js has its own error code.
  if (cause instanceof Error && errorCodeOf(cause) === 'ERR_ACCESS_DENIED') {
    return finding('NODE_PERMISSION', `Node.js was not given permission to read "${path}"`);
  }
  if (code === 'ERR_TARGET_IO') return finding('IO_ERROR', message);
  return code === 'ERR_TARGET_ACCESS'
    ? finding('UNREADABLE', `${message} (this process runs as uid ${geteuid?.() ?? 'unknown'})`)
    : finding('WRONG_TARGET', message);
}

function mountFindings(realPath: string, kind: 'file' | 'directory', mounts: Mounts): Finding[] {
  const mount = mounts.at(realPath);
  switch (staleMount(mount, realPath, kind)?.kind) {
    case 'revision':
      return [finding('SUBPATH', `"${mount.point}" is a subPath mount of one revision`)];
    case 'file':
      return [finding('FILE_MOUNT', `"${realPath}" is mounted by itself (subPath, or a bind mount)`)];
    case undefined:
      return [];
  }
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
