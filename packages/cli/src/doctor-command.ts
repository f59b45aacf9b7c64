import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';

import type { Command } from 'commander';
import type { YAMLParseError } from 'yaml';
import { durationText, errnoOf, isoTime } from 'resilient-watcher/internal';

import { checkPaths, each, text } from './arguments.js';
import { diagnose, type Diagnosis, type Finding as FindingAtPath } from './doctor.js';
import { EXIT, UsageError } from './exit-code.js';
import type { Io } from './io.js';
import { oneLine } from './output.js';
import { findingsInManifests, type Finding as FindingInManifest } from './manifests.js';
import type { Invocation, Subcommand } from './subcommand.js';

type Finding = FindingAtPath | FindingInManifest;

interface Flags {
  readonly manifest?: readonly string[];
  readonly audience?: readonly string[];
}

function addDoctorCommand(command: Command): void {
  command
    .description('explain why a path never shows an update')
    .argument('[path...]', 'what to examine')
    .option(
      '--manifest <file>',
      'examine manifests instead (YAML or JSON; - is stdin; repeatable)',
      each(text),
    )
    .option('--audience <name>', 'an audience that a token must be for (repeatable)', each(text))
    .addHelpText(
      'after',
      `
Exit codes: 0 if updates are seen, 3 if they never will be, 4 if they are late or only seen by polling, 2 if a manifest
cannot be read.

Examples:
  resilient-watcher doctor /etc/config /etc/tls/tls.crt
  helm template . | resilient-watcher doctor --manifest -`,
    );
}

/** Runs `doctor`. */
async function runDoctor({ paths, flags, execution }: Invocation<Flags>): Promise<void> {
  if (flags.manifest !== undefined) {
    if (paths.length > 0) throw new UsageError('give paths or --manifest, not both');
    const documents = [];
    for (const file of flags.manifest) documents.push(...(await documentsIn(file, execution.io)));
    const findings = findingsInManifests(documents);
    const shown = findings.length === 0 ? ['nothing found'] : listOf(findings);
    await execution.output.result(textOf(shown), { findings });
    execution.end(exitCodeFor(findings));
    return;
  }
  if (paths.length === 0) throw new UsageError('give the paths to examine, or --manifest');
  checkPaths(paths);
  const all: Finding[] = [];
  for (const path of paths) {
    const diagnosis = await diagnose(path, { audiences: flags.audience });
    all.push(...diagnosis.findings);
    await execution.output.result(textOf(pageOf(diagnosis, execution.io)), diagnosis);
  }
  execution.end(exitCodeFor(all));
}

async function documentsIn(file: string, { stdin }: Io): Promise<unknown[]> {
  const name = file === '-' ? 'stdin' : file;
  const refuse = (says: string, cause: unknown): never => {
    throw new UsageError(`${says}: ${(cause as Error).message}`);
  };
  const reading = file === '-' ? readAll(stdin()) : readFile(file, 'utf8');
  const manifests = await reading.catch((cause: unknown) => {
    const errno = errnoOf(cause);
    if (errno === 'ENOENT') throw new UsageError(`${name} does not exist`);
    if (errno === 'EISDIR') throw new UsageError(`${name} is a directory; name the files in it`);
    return refuse(`${name} cannot be read`, cause);
  });
  let values: unknown[];
  try {
    values = jsonIn(manifests) ?? (await yamlIn(manifests));
  } catch (error) {
    return refuse(`${name} is not YAML`, error);
  }
  // The command before the pipe may have failed.
  if (!values.some(isManifest)) throw new UsageError(`${name} contains no manifest`);
  return values;
}

/** JSON is parsed faster. */
function jsonIn(manifests: string): unknown[] | undefined {
  try {
    return [JSON.parse(manifests) as unknown];
  } catch {
    return undefined;
  }
}

async function yamlIn(manifests: string): Promise<unknown[]> {
  const { parseAllDocuments } = await import('yaml');
  // As Kubernetes reads it: 0400 is octal.
  const documents = [...parseAllDocuments(manifests, { version: '1.1' })];
  const [error] = documents.flatMap(({ errors }) => errors);
  if (error) {
    // Its message may quote the manifest.
    const what = error.code.toLowerCase().replaceAll('_', ' ');
    throw new Error(`${what}${placeOf(error)}${adviceFor(manifests)}`);
  }
  // Throws for aliases that expand to millions of values.
  return documents.map((document): unknown => document.toJS());
}

function placeOf({ linePos }: Pick<YAMLParseError, 'linePos'>): string {
  const at = linePos?.[0];
  return at ? ` at line ${at.line}, column ${at.col}` : '';
}

/** Templates are not YAML. */
function adviceFor(manifests: string): string {
  return manifests.includes('{{') ? '; render a chart with `helm template` first' : '';
}

function isManifest(value: unknown): boolean {
  return typeof (Object(value) as { readonly kind?: unknown }).kind === 'string';
}

function exitCodeFor(findings: readonly Finding[]): number {
  if (findings.some(({ severity }) => severity === 'never')) return EXIT.frozen;
  return findings.some(({ severity }) => severity === 'degraded') ? EXIT.degraded : EXIT.ok;
}

/** The findings by kind: all of one kind have the same remedy. */
function listOf(findings: readonly Finding[]): string[] {
  const kinds = new Map(findings.map((one) => [one.id, one]));
  return [...kinds.values()].flatMap(({ id, severity, fix }) => [
    `${severity.padEnd(8)} ${id}`,
    ...findings.filter((each) => each.id === id).map(({ message }) => `         ${message}`),
    `         ${fix}`,
  ]);
}

/** Names of files and of objects may contain anything. */
function textOf(lines: readonly string[]): string {
  return lines.map(oneLine).join('\n');
}

function pageOf(diagnosis: Diagnosis, { clock }: Io): string[] {
  const { path, realPath, links, mounts, revision, revisionAt, inotify, findings } = diagnosis;
  const lines = [path];
  for (const { path: from, target } of links) lines.push(`  link      ${from} -> ${target}`);
  if (realPath !== null) lines.push(`  leads to  ${realPath}`);
  for (const { path: at, type } of mounts) lines.push(`  mount     ${at} (${type})`);
  if (revision !== null) lines.push(`  revision  ${revision}`);
  if (revisionAt !== null)
    lines.push(`  changed   ${isoTime(revisionAt)}, ${durationText(clock.now() - revisionAt)} ago`);
  if (inotify) {
    const { instances, watches } = inotify;
    lines.push(
      `  inotify   ${instances.used} of ${instances.limit ?? '?'} instances, ${watches.used} of ${watches.limit ?? '?'} watches of this user`,
    );
  }
  const found = findings.length === 0 ? ['nothing prevents updates'] : listOf(findings);
  return [...lines, ...found.map((line) => `  ${line}`)];
}

/** `doctor`: explains why a mount never changes. */
export const doctor: Subcommand<Flags> = { describe: addDoctorCommand, run: runDoctor };
