/** Parsers and checks of the arguments. */
import { constants } from 'node:os';
import { resolve } from 'node:path';

import { InvalidArgumentError, type Command, type Option } from 'commander';
import { Globs } from 'resilient-watcher/internal';

import { UsageError } from './exit-code.js';

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A duration such as `500ms`, `30s`, `2m` or `1h`, in ms; it may be 0. */
export function delay(text: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const factor = UNITS_MS[unit];
  if (amount === undefined || factor === undefined) {
    throw new InvalidArgumentError('It must be a duration such as 500ms, 30s, 2m or 1h.');
  }
  return Number(amount) * factor;
}

/** A duration of at least 1 ms. */
export function duration(text: string): number {
  const milliseconds = delay(text);
  if (milliseconds < 1) throw new InvalidArgumentError('It must be at least 1ms.');
  return milliseconds;
}

/** A signal such as `HUP` or `SIGHUP`. */
export function signalName(text: string, otherwise = 'It must be a signal such as HUP.'): NodeJS.Signals {
  const name = `SIG${text.toUpperCase().replace(/^SIG/, '')}`;
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals;
  throw new InvalidArgumentError(otherwise);
}

/** A socket address such as `0.0.0.0:9533`, `[::1]:9533` or `:9533`. */
export function listenAddress(text: string): { readonly host: string | undefined; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[([\da-f:]+)\]|([^:]*)):(\d{1,5})$/i.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw new InvalidArgumentError('It must be an address such as 127.0.0.1:9533 or :9533.');
  }
  const host = bracketed ?? plain;
  return { host: host === '' ? undefined : host, port: Number(port) };
}

/** A URL. Not for one that may have credentials, because the message quotes it. */
export function httpUrl(given: string): string {
  if (/^https?:$/.test(URL.canParse(given) ? new URL(given).protocol : '')) return given;
  throw new InvalidArgumentError('It must be an http(s) URL.');
}

/** A method of HTTP, such as `POST`. */
export function httpMethod(given: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(given)) return given;
  throw new InvalidArgumentError('It must be an HTTP method such as POST.');
}

/** A glob of paths below a watched one. */
export function glob(given: string): string {
  try {
    new Globs([text(given)]);
    return given;
  } catch (error) {
    throw new InvalidArgumentError(`It must be a glob such as '**/*.tmp': ${(error as Error).message}`);
  }
}

/** The parsers of flags that may be given more than once. */
const collecting = new WeakSet<object>();

/** Collects the values of a flag that may be given more than once. */
export function each<T>(read: (text: string) => T): (text: string, earlier: readonly T[] | undefined) => T[] {
  const collect = (text: string, earlier: readonly T[] = []): T[] => [...earlier, read(text)];
  collecting.add(collect);
  return collect;
}

/** Whether a flag may be given more than once. */
export function isRepeatable({ parseArg }: Option): boolean {
  return parseArg !== undefined && collecting.has(parseArg);
}

/** Refuses a flag with a value that is given twice, unless it collects its values. The last one would count. */
export function refuseRepeated(command: Command): Command {
  for (const option of command.options) {
    if (option.isBoolean() || isRepeatable(option)) continue;
    let values = 0;
    command.on(`option:${option.name()}`, () => {
      values += 1;
      if (values > 1) command.error(`error: option '${option.flags}' is given twice`);
    });
  }
  return command;
}

/** A value that is neither empty nor the next flag, as in `--exec --once`. */
export function text(given: string): string {
  if (given === '') throw new InvalidArgumentError('It must not be empty.');
  if (given.startsWith('--')) throw new InvalidArgumentError('It looks like a flag; the value is missing.');
  return given;
}

/**
 * Refuses flags that have no effect without another one.
 * @throws {ExitError} for the first of `names` that was given.
 */
export function refuseUnused<Flags extends object>(
  flags: Flags,
  names: readonly (keyof Flags & string)[],
  needed: string,
): void {
  const unused = names.find((name) => flags[name] !== undefined);
  if (unused === undefined) return;
  const flag = unused.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new UsageError(`--${flag} needs ${needed}`);
}

/** The arguments before the first `--`, and the command after it; undefined without `--`. */
export function splitCommand(args: readonly string[]): { own: string[]; command: string[] | undefined } {
  const end = args.indexOf('--');
  return end < 0
    ? { own: [...args], command: undefined }
    : { own: args.slice(0, end), command: args.slice(end + 1) };
}

/** The flag of the commands that need a cluster, for `Command.option`. */
export const KUBECONFIG_FLAG = [
  '--kubeconfig <file>',
  'use this kubeconfig, with @kubernetes/client-node (default: the credentials of the pod)',
  text,
] as const;

/** Whether this is a container of a pod: kubelet tells all of them where the API server is. */
export const isInPod = (env: NodeJS.ProcessEnv): boolean => Boolean(env['KUBERNETES_SERVICE_HOST']);

/** @throws {ExitError} if there are neither a kubeconfig nor the credentials of a pod. */
export function checkCluster(kubeConfig: string | undefined, env: NodeJS.ProcessEnv): void {
  if (kubeConfig !== undefined || isInPod(env)) return;
  throw new UsageError('there is no KUBERNETES_SERVICE_HOST, so this is not a pod; give --kubeconfig');
}

/**
 * @param what is done with the paths.
 * @param flag a flag of the command that takes a value.
 * @throws {ExitError} if there is nothing to watch, a pattern, or the same twice.
 */
export function checkPaths(paths: readonly string[], what = 'watch', flag = '--check'): void {
  if (paths.includes('')) throw new UsageError('a path is empty');
  const pattern = paths.find((path) => path.includes('*'));
  if (pattern !== undefined) {
    throw new UsageError(`${pattern} matches nothing, and "*" is not expanded here; ${what} the directory`);
  }
  const known = new Set<string>();
  for (const path of paths.map(absolute)) {
    if (known.has(path)) throw new UsageError(`${path} is given twice`);
    known.add(path);
  }
  if (paths.length > 0) return;
  throw new UsageError(
    `no path is given: what follows a flag such as ${flag} is its value, and what follows -- is a command`,
  );
}

function absolute(path: string): string {
  try {
    return resolve(path);
  } catch {
    const what = `cannot resolve the relative path ${path}: the working directory was removed`;
    throw new UsageError(`${what}; use an absolute path`);
  }
}
