import { withDeadline } from '../core/deadline.js';
import { ConfigError, type ConfigProblem } from '../core/errors.js';
import type { Clock } from '../core/clock.js';
import { openSource, type SourceReading } from './config-source.js';
import type { ConfigMap } from './config-value.js';
import { sourceProblems } from './source-problems.js';

/** What reading sources needs. */
export interface SourceSetOptions {
  readonly sources: readonly unknown[];
  readonly parseTimeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What a source last gave, apart from its values. */
export interface SourceState {
  readonly digest: string | undefined;
  /** Why it could not be read or parsed; none when it could. */
  readonly problems: readonly ConfigProblem[];
}

/** The sources of a loader, by their number from the lowest layer. */
export class SourceSet {
  readonly #options: SourceSetOptions;
  readonly #sources: readonly ReturnType<typeof openSource>[];
  readonly #states: SourceState[];

  /** @throws {TypeError} for something that is no source. */
  constructor(options: SourceSetOptions) {
    this.#options = options;
    this.#sources = options.sources.map(openSource);
    this.#states = this.#sources.map(() => ({ digest: undefined, problems: [] }));
  }

  get names(): readonly string[] {
    return this.#sources.map(({ name }) => name);
  }

  /** What each last gave. */
  get states(): readonly SourceState[] {
    return this.#states;
  }

  /**
   * Watches every source that can be watched, and reads it after that, so that nothing is missed. Undefined stands
   * for what cannot be had: its state says why.
   */
  open(onHint: (index: number, error: Error | undefined) => void): Promise<(ConfigMap | undefined)[]> {
    return Promise.all(
      this.#sources.map(async ({ provider }, index) => {
        try {
          await this.#inTime(() => provider?.watch?.((_, error) => onHint(index, error)));
        } catch (error) {
          return this.#note(index, { digest: undefined, result: { error } });
        }
        return this.read(index);
      }),
    );
  }

  /** The values of one source; undefined when it cannot be read or parsed in time. Never rejects. */
  async read(index: number): Promise<ConfigMap | undefined> {
    const source = this.#sources[index];
    if (!source) throw new RangeError(`ConfigLoader: there is no source ${index}`);
    try {
      return this.#note(index, await this.#inTime(() => source.read()));
    } catch (error) {
      return this.#note(index, { digest: source.provider?.digest, result: { error } });
    }
  }

  /** Ends watching. Never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#sources.map(async ({ provider }) => provider?.unwatch?.()));
  }

  #note(index: number, { digest, result }: SourceReading): ConfigMap | undefined {
    const isGood = 'values' in result;
    const problems = isGood ? [] : sourceProblems(result.error, this.names[index] ?? '');
    this.#states[index] = { digest, problems };
    return isGood ? result.values : undefined;
  }

  #inTime<T>(work: () => T | Promise<T>): Promise<T> {
    const { clock, parseTimeoutMs: timeoutMs, signal } = this.#options;
    const late = (): Error =>
      new ConfigError('ERR_CONFIG_TIMEOUT', `it was not read and parsed within ${timeoutMs} ms`);
    return withDeadline(work, { clock, timeoutMs, signal, late });
  }
}
