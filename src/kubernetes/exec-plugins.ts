/** The plugins of kubeconfigs (`exec`): runs them within bounds, and keeps their credentials, as client-go does. */
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import { isatty } from 'node:tty';

import { errnoOf } from '../core/errors/errno.js';
import { TokenError } from '../core/errors/token-error.js';
import { redact } from '../core/options/redaction.js';
import { parseTimestamp, type Clock, type Scheduled } from '../core/ports/clock.js';
import { isOnWindows } from '../core/ports/platform-path.js';
import { untilAborted } from '../core/scheduling/abort.js';
import { Outcome } from '../core/scheduling/outcome.js';
import { tokenFromText } from '../token/token.js';
import { KubernetesError } from './kubernetes-error.js';

/** How a kubeconfig says to run a plugin. */
export interface ExecPlugin {
  readonly apiVersion?: unknown;
  readonly command?: unknown;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: unknown;
  readonly interactiveMode?: unknown;
  /** What the plugin is told of the cluster (`provideClusterInfo`). */
  readonly cluster?: unknown;
}

/** A token, or a client certificate and its key in PEM, or both. */
export interface ExecCredential {
  readonly token?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

interface Kept {
  readonly key: string;
  readonly credential: ExecCredential;
  /** By the wall clock and the monotonic clock, ms. */
  readonly ends: readonly [wall: number, monotonic: number];
}

interface Run {
  readonly key: string;
  readonly credential: Promise<ExecCredential>;
  readonly controller: AbortController;
  waiting: number;
}

/** The credentials of one client. */
export class ExecPlugins {
  readonly #clock: Clock;
  #kept: Kept | undefined;
  #run: Run | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The credential that the plugin has given, until it expires or is refused; without a date, as long as it is not refused.
   * Callers share one run. When the last one of them has given up, the plugin is ended.
   * @throws {KubernetesError} (rejects) `ERR_EXEC_PLUGIN`.
   */
  async get(plugin: ExecPlugin, signal: AbortSignal): Promise<ExecCredential> {
    const key = JSON.stringify(plugin);
    const kept = this.#kept;
    const [wall, monotonic] = kept?.key === key ? kept.ends : [0, 0];
    if (kept && this.#clock.now() < wall && this.#clock.monotonic() < monotonic) {
      return kept.credential;
    }
    signal.throwIfAborted();
    const run = this.#run?.key === key ? this.#run : this.#begin(plugin, key);
    run.waiting += 1;
    return untilAborted(run.credential, signal).finally(() => {
      run.waiting -= 1;
      if (run.waiting > 0) return;
      run.controller.abort();
      if (this.#run === run) this.#run = undefined;
    });
  }

  /** The server has refused this credential. */
  forget(credential: ExecCredential): void {
    if (this.#kept?.credential === credential) this.#kept = undefined;
  }

  #begin(plugin: ExecPlugin, key: string): Run {
    const controller = new AbortController();
    const credential = outputOf(plugin, this.#clock, controller.signal).then((text) => {
      const { expiresAt, ...given } = credentialIn(text, plugin);
      const lifeMs = expiresAt - this.#clock.now();
      const ends = [expiresAt, this.#clock.monotonic() + lifeMs] as const;
      this.#kept = { key, credential: given, ends };
      return given;
    });
    this.#run = { key, credential, controller, waiting: 0 };
    return this.#run;
  }
}

/** A credential has some KiB. */
const LARGEST_OUTPUT_BYTES = 4 * 1024 * 1024;

/** What is shown of the error output: its end. */
const SHOWN_BYTES = 1_024;

/** How long a child of the plugin may hold its output open after the plugin has ended, ms. */
const LAST_WORDS_MS = 1_000;

/** What the plugin prints. It is ended, and no longer read, when the signal aborts or it prints too much. */
async function outputOf(plugin: ExecPlugin, clock: Clock, signal: AbortSignal): Promise<string> {
  const { command, args, env } = plugin;
  if (typeof command !== 'string' || command === '') throw failed(plugin, 'it has no "command"');
  const isOnTerminal = isatty(0) && plugin.interactiveMode !== 'Never';
  if (plugin.interactiveMode === 'Always' && !isOnTerminal) {
    throw failed(plugin, 'it asks its user ("interactiveMode: Always"), and there is no terminal');
  }
  const added = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const info = {
    apiVersion: plugin.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive: isOnTerminal, cluster: plugin.cluster },
  };
  // A group of its own is ended with all that the plugin has started; a terminal is lost by it.
  const hasGroup = !isOnTerminal && !isOnWindows();
  const environment = { ...process.env, ...added, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  let child: ChildProcessByStdio<null, Readable, Readable>;
  try {
    child = spawn(command, args ?? [], {
      env: environment,
      stdio: [isOnTerminal ? 'inherit' : 'ignore', 'pipe', 'pipe'],
      detached: hasGroup,
      windowsHide: true,
    });
  } catch (error) {
    throw failed(plugin, whyNotStarted(error), error);
  }
  const output: Buffer[] = [];
  let complaint = Buffer.alloc(0);
  let timer: Scheduled | undefined;
  const outcome = new Outcome<string>();
  const bounded = (stream: Readable, name: string, keep: (chunk: Buffer) => void): void => {
    let length = 0;
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= LARGEST_OUTPUT_BYTES) keep(chunk);
      else outcome.reject(failed(plugin, `it printed more than ${LARGEST_OUTPUT_BYTES} bytes to ${name}`));
    });
  };
  const ended = (): void => {
    const { exitCode, signalCode } = child;
    if (exitCode === 0) outcome.resolve(Buffer.concat(output).toString('utf8'));
    const how = signalCode === null ? `with code ${exitCode}` : `by ${signalCode}`;
    const words = complaint.toString('utf8').trim();
    outcome.reject(failed(plugin, `it ended ${how}${words === '' ? '' : `: ${words}`}`));
  };
  child.once('error', (error) => outcome.reject(failed(plugin, whyNotStarted(error), error)));
  child.once('exit', () => (timer = clock.schedule(ended, LAST_WORDS_MS)));
  child.once('close', ended);
  try {
    bounded(child.stdout, 'stdout', (chunk) => output.push(chunk));
    bounded(child.stderr, 'stderr', (chunk) => {
      complaint = Buffer.concat([complaint, chunk]).subarray(-SHOWN_BYTES);
    });
    return await untilAborted(outcome.promise, signal);
  } finally {
    timer?.cancel();
    child.removeAllListeners('exit').stdout.destroy();
    child.stderr.destroy();
    if (child.exitCode === null && child.signalCode === null) end(child, hasGroup);
  }
}

function end(child: ChildProcess, hasGroup: boolean): void {
  try {
    if (hasGroup && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
  child.unref();
}

function whyNotStarted(error: unknown): string {
  const errno = errnoOf(error);
  if (errno === 'ENOENT') return 'it was not found';
  return errno === 'EACCES' ? 'it may not be executed' : `it cannot be started (${errno})`;
}

/** The credential that a plugin has printed; without a date it never expires. */
function credentialIn(text: string, plugin: ExecPlugin): ExecCredential & { readonly expiresAt: number } {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    // The message quotes the text.
    throw failed(plugin, 'what it printed is not JSON');
  }
  const { status } = Object(answer) as { status?: unknown };
  if (typeof status !== 'object' || status === null) throw failed(plugin, 'what it printed has no "status"');
  const fields = status as Readonly<Record<string, unknown>>;
  const textOf = (name: string): string | undefined => {
    const value = fields[name] ?? '';
    if (typeof value !== 'string') throw failed(plugin, `"${name}" in its status is not a text`);
    return value === '' ? undefined : value;
  };
  const given = textOf('token');
  const [cert, key] = [textOf('clientCertificateData'), textOf('clientKeyData')];
  if ((cert === undefined) !== (key === undefined)) {
    throw failed(plugin, 'it gave only one of client certificate and key');
  }
  if (given === undefined && cert === undefined)
    throw failed(plugin, 'it gave neither token nor certificate');
  const date = fields['expirationTimestamp'] ?? undefined;
  const expiresAt = date === undefined ? Infinity : parseTimestamp(date);
  if (Number.isNaN(expiresAt)) throw failed(plugin, '"expirationTimestamp" in its status is not a date');
  try {
    const token = given === undefined ? undefined : tokenFromText(given, 'opaque').value;
    return { token, cert, key, expiresAt };
  } catch (error) {
    throw error instanceof TokenError ? failed(plugin, 'its token does not fit a header') : error;
  }
}

function failed({ command, installHint }: ExecPlugin, why: string, cause?: unknown): KubernetesError {
  const hint = typeof installHint === 'string' && installHint !== '' ? `; ${installHint}` : '';
  const message = redact(
    `The plugin "${String(command)}" of the kubeconfig gives no credentials: ${why}${hint}`,
  );
  return new KubernetesError('ERR_EXEC_PLUGIN', message, { cause });
}
