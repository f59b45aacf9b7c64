/** Parsers for the values of flags. */
import { constants } from 'node:os';

import { InvalidArgumentError } from 'commander';

import { EXIT, ExitError } from './exit-code.js';

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
export function signalName(text: string): NodeJS.Signals {
  return signalOr('', text);
}

/** The same, where something else may stand as well: `others`, for the message. */
export function signalOr(others: string, text: string): NodeJS.Signals {
  const name = text.toUpperCase().startsWith('SIG') ? text.toUpperCase() : `SIG${text.toUpperCase()}`;
  if (!Object.hasOwn(constants.signals, name))
    throw new InvalidArgumentError(`It must be a signal such as HUP${others}.`);
  return name as NodeJS.Signals;
}

/** A process ID. */
export function processId(text: string): number {
  const pid = Number(text);
  if (!Number.isSafeInteger(pid) || pid < 1)
    throw new InvalidArgumentError('It must be a process ID, 1 or more.');
  return pid;
}

/** Status codes such as `200`, or a range such as `200-299`. */
export function statusRange(text: string): [from: number, to: number] {
  const [, from, to = from] = /^(\d{3})(?:-(\d{3}))?$/.exec(text) ?? [];
  if (from === undefined || Number(from) > Number(to)) {
    throw new InvalidArgumentError('It must be a status code or a range such as 200-299.');
  }
  return [Number(from), Number(to)];
}

/** A header such as `X-Reload: yes`. */
export function header(text: string): [name: string, value: string] {
  const colon = text.indexOf(':');
  const name = text.slice(0, colon).trim();
  if (colon < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
    throw new InvalidArgumentError('It must be a header such as "X-Reload: yes".');
  }
  return [name, text.slice(colon + 1).trim()];
}

/** An http or https URL. */
export function httpUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new InvalidArgumentError('It must be an http or https URL.');
  }
  return text;
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

/** Collects the values of a flag that may be given more than once. */
export function each<T>(read: (text: string) => T): (text: string, earlier: readonly T[] | undefined) => T[] {
  return (text, earlier = []) => [...earlier, read(text)];
}

/** A text that is neither empty nor the next flag, as in `--exec --once`. */
export function text(given: string): string {
  if (given === '') throw new InvalidArgumentError('It is empty.');
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
  if (unused !== undefined) throw new ExitError(EXIT.usage, `${flagOf(unused)} needs ${needed}`);
}

/** The spelling of a flag on the command line: `--on-busy` for `onBusy`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The arguments before the first `--`, and the command after it; undefined without `--`. */
export function splitCommand(args: readonly string[]): { own: string[]; command: string[] | undefined } {
  const end = args.indexOf('--');
  return end < 0
    ? { own: [...args], command: undefined }
    : { own: args.slice(0, end), command: args.slice(end + 1) };
}
