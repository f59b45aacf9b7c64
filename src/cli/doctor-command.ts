import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';

import type { Command } from 'commander';

import { durationText, isoTime, systemClock } from '../core/clock.js';
import { diagnose, findingsInManifests, type Diagnosis, type Finding } from '../doctor.js';
import { ResilientWatcher } from '../index.js';
import { duration, refuseUnused, text } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Invocation } from './invocation.js';
import type { Session } from './session.js';
import { checkPaths } from './watch-rule.js';

interface Flags {
  readonly manifest?: string;
  readonly live?: number;
}

/** `doctor`: explains why a mount never changes. */
export function addDoctorCommand(command: Command): void {
  command
    .description('explain why a path never shows an update, or measure how soon it does')
    .argument('[path...]', 'what to examine')
    .option('--live <duration>', 'wait this long for a real update, and measure when it arrives', duration)
    .option('--manifest <file>', 'examine manifests instead (YAML or JSON; - is stdin)', text)
    .addHelpText(
      'after',
      `
Exit codes: 0 if updates are seen, 3 if they never will be, 4 if they are late or only seen by polling, 124 if none came
within --live, 2 if a manifest cannot be read.

Examples:
  resilient-watcher doctor /etc/config /etc/tls/tls.crt
  helm template . | resilient-watcher doctor --manifest -`,
    );
}

/** Runs `doctor`. */
export async function runDoctor({ paths, flags, session }: Invocation<Flags>): Promise<void> {
  if (flags.manifest !== undefined) {
    if (paths.length > 0) throw new ExitError(EXIT.usage, 'give paths or --manifest, not both');
    refuseUnused(flags, ['live'], 'paths instead of --manifest');
    const findings = findingsInManifests(await documentsIn(flags.manifest));
    await session.output.result(findings.length === 0 ? 'nothing found' : listOf(findings), { findings });
    session.end(exitCodeFor(findings));
    return;
  }
  if (paths.length === 0) throw new ExitError(EXIT.usage, 'give the paths to examine, or --manifest');
  checkPaths(paths);
  const all: Finding[] = [];
  for (const path of paths) {
    const diagnosis = await diagnose(path);
    all.push(...diagnosis.findings);
    await session.output.result(pageOf(diagnosis), diagnosis);
  }
  if (flags.live === undefined) session.end(exitCodeFor(all));
  else await waitForUpdate(paths, flags.live, session);
}

async function documentsIn(file: string): Promise<unknown[]> {
  const reading = file === '-' ? readAll(process.stdin) : readFile(file, 'utf8');
  const manifests = await reading.catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ExitError(EXIT.usage, `${file} cannot be read: ${reason}`);
  });
  const { parseAllDocuments } = await import('yaml').catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ExitError(EXIT.usage, `--manifest needs the package yaml: npm install yaml (${reason})`);
  });
  const documents = [...parseAllDocuments(manifests)];
  const [error] = documents.flatMap(({ errors }) => errors);
  const name = file === '-' ? 'stdin' : file;
  if (error) throw new ExitError(EXIT.usage, `${name} is not YAML: ${error.code}`);
  const values = documents.map((document): unknown => document.toJS());
  // As when the command before the pipe has failed.
  if (!values.some(isManifest)) throw new ExitError(EXIT.usage, `${name} contains no manifest`);
  return values;
}

function isManifest(value: unknown): boolean {
  return typeof (Object(value) as { readonly kind?: unknown }).kind === 'string';
}

function exitCodeFor(findings: readonly Finding[]): number {
  if (findings.some(({ severity }) => severity === 'never')) return EXIT.frozen;
  return findings.some(({ severity }) => severity === 'degraded') ? EXIT.degraded : EXIT.ok;
}

function listOf(findings: readonly Finding[]): string {
  return findings
    .map(
      ({ id, severity, message, fix }) => `${severity.padEnd(8)} ${id}\n         ${message}\n         ${fix}`,
    )
    .join('\n');
}

function pageOf({
  path,
  realPath,
  links,
  mounts,
  revision,
  revisionAt,
  inotify,
  findings,
}: Diagnosis): string {
  const lines = [path];
  for (const { path: from, target } of links) lines.push(`  link      ${from} -> ${target}`);
  if (realPath !== null) lines.push(`  leads to  ${realPath}`);
  for (const { path: at, type } of mounts) lines.push(`  mount     ${at} (${type})`);
  if (revision !== null) lines.push(`  revision  ${revision}`);
  if (revisionAt !== null)
    lines.push(`  changed   ${isoTime(revisionAt)}, ${durationText(systemClock.now() - revisionAt)} ago`);
  if (inotify) {
    const { instances, watches } = inotify;
    lines.push(
      `  inotify   ${instances.used} of ${instances.limit ?? '?'} instances, ${watches.used} of ${watches.limit ?? '?'} watches of this user`,
    );
  }
  lines.push(
    findings.length === 0 ? '  nothing stands in the way of updates' : listOf(findings).replace(/^/gm, '  '),
  );
  return lines.join('\n');
}

/** kubelet takes about a minute for an update: its sync period plus the delay of its cache. */
async function waitForUpdate(paths: readonly string[], liveMs: number, session: Session): Promise<void> {
  const { output } = session;
  const begun = systemClock.monotonic();
  const timer = systemClock.schedule(() => {
    output.log('error', 'timeout', `no update within ${liveMs / 1_000} s`);
    session.end(EXIT.timeout);
  }, liveMs);
  session.callAtEnd(() => timer.cancel());
  for (const path of paths) {
    const watcher = session.closeAtEnd(new ResilientWatcher(path, { signal: session.signal }));
    watcher.on('change', ({ cause }) => {
      if (cause === 'start') return;
      const seconds = ((systemClock.monotonic() - begun) / 1_000).toFixed(1);
      output.log('info', 'update', `${path}: updated after ${seconds} s, noticed by ${cause}`, {
        path,
        cause,
      });
      session.end(EXIT.ok);
    });
    await watcher.start();
  }
  output.log('info', 'live', `waiting up to ${liveMs / 1_000} s for an update; change the object now`);
}
