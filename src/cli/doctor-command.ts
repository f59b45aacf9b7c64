import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';

import type { Command } from 'commander';

import { isoTime, systemClock } from '../core/clock.js';
import { diagnose, findingsInManifests, type Diagnosis, type Finding } from '../doctor.js';
import { ResilientWatcher } from '../index.js';
import { duration } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Session } from './session.js';

interface Flags {
  readonly manifest?: string;
  readonly live?: number;
}

/** `doctor`: why a mount never changes. */
export function addDoctorCommand(command: Command): Command {
  return command
    .description('say why a path will never show an update, or how soon it will')
    .argument('[path...]', 'what to examine')
    .option('--live <duration>', 'wait this long for a real update, and time it', duration)
    .option('--manifest <file>', 'examine manifests instead (YAML or JSON; - is stdin)')
    .addHelpText(
      'after',
      `
Exit code 0: updates will be seen. 3: never. 4: by polling only.

Examples:
  resilient-watcher doctor /etc/config /etc/tls/tls.crt
  helm template . | resilient-watcher doctor --manifest -`,
    );
}

/** Runs `doctor`. */
export async function runDoctor(paths: readonly string[], flags: Flags, session: Session): Promise<void> {
  if (flags.manifest !== undefined) {
    if (paths.length > 0) throw new ExitError(EXIT.usage, 'give paths or --manifest, not both');
    const findings = findingsInManifests(await documentsIn(flags.manifest));
    session.output.result(findings.length === 0 ? 'nothing found' : listOf(findings), { findings });
    session.end(exitCodeFor(findings));
    return;
  }
  if (paths.length === 0) throw new ExitError(EXIT.usage, 'give the paths to examine, or --manifest');
  const all: Finding[] = [];
  for (const path of paths) {
    const diagnosis = await diagnose(path);
    all.push(...diagnosis.findings);
    session.output.result(pageOf(diagnosis), diagnosis);
  }
  if (flags.live === undefined) session.end(exitCodeFor(all));
  else await waitForUpdate(paths, flags.live, session);
}

async function documentsIn(file: string): Promise<unknown[]> {
  const reading = file === '-' ? readAll(process.stdin) : readFile(file, 'utf8');
  const text = await reading.catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ExitError(EXIT.usage, `${file} cannot be read: ${reason}`);
  });
  const { parseAllDocuments } = await import('yaml').catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ExitError(EXIT.usage, `--manifest needs the package yaml: npm install yaml (${reason})`);
  });
  const documents = [...parseAllDocuments(text)];
  const [error] = documents.flatMap(({ errors }) => errors);
  if (error) throw new ExitError(EXIT.usage, `${file === '-' ? 'stdin' : file} is not YAML: ${error.code}`);
  return documents.map((document): unknown => document.toJS());
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
  if (revisionAt !== null) lines.push(`  changed   ${isoTime(revisionAt)}, ${ageOf(revisionAt)} ago`);
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

function ageOf(at: number): string {
  const seconds = Math.max(0, Math.round((systemClock.now() - at) / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** An update takes kubelet about a minute: its sync period, and the delay of its cache. */
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
