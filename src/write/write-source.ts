/** The bytes to be written, whatever they come as. */
import { describe } from '../core/options.js';
import type { Clock } from '../core/clock.js';
import { wait, type Effects } from '../fs/effects.js';

/** A piece of what is written: text (as UTF-8), or the bytes that a typed array, `Buffer` or `DataView` shows. */
export type WriteChunk = string | NodeJS.ArrayBufferView;

/** What can be written synchronously: at once, or piece by piece. */
export type SyncWriteData = WriteChunk | Iterable<WriteChunk>;

/** What can be written; a stream is an async iterable. */
export type WriteData = SyncWriteData | AsyncIterable<WriteChunk>;

/** What the wait for the next piece needs. */
export interface QuietPeriod {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  /** The wait is interrupted this often, ms. */
  readonly renewalMs: number;
}

type Pulled = IteratorResult<WriteChunk, unknown>;

/** Gives the pieces one by one. */
export class WriteSource {
  readonly #whole: Uint8Array | undefined;
  readonly #sync: Iterable<WriteChunk> | undefined;
  readonly #async: AsyncIterable<WriteChunk> | undefined;
  #iterator: Iterator<WriteChunk, unknown> | AsyncIterator<WriteChunk, unknown> | undefined;
  #done = false;

  /**
   * @param owner the function the data was given to, for the error message.
   * @throws {TypeError} when it is nothing that can be written. The value is not shown: it may be a secret.
   */
  constructor(owner: string, data: unknown, { canWait }: { readonly canWait: boolean }) {
    if (isChunk(data)) this.#whole = toBytes(data);
    else if (canWait && isAsyncIterable(data)) this.#async = data;
    else if (isIterable(data)) this.#sync = data;
    else {
      const wanted = `a string, a Uint8Array, or an iterable${canWait ? ' or async iterable' : ''} of them`;
      throw new TypeError(`${owner}: data must be ${wanted}, got ${typeof data}`);
    }
  }

  /** All of it, if it was given at once. */
  get whole(): Uint8Array | undefined {
    return this.#whole;
  }

  /** The next piece, undefined at the end. Runs `renew` whenever waiting takes long. Synchronous work has no quietPeriod. */
  *next(quietPeriod: QuietPeriod | undefined, renew: () => Effects<void>): Effects<Uint8Array | undefined> {
    if (this.#done) return undefined;
    if (this.#whole) {
      this.#done = true;
      return this.#whole;
    }
    const pulled =
      this.#async && quietPeriod ? yield* this.#wait(this.#async, quietPeriod, renew) : this.#pull();
    if (pulled.done) {
      this.#done = true;
      return undefined;
    }
    if (!isChunk(pulled.value)) {
      throw new TypeError(`it gave ${describe(typeof pulled.value)} instead of a string or a Uint8Array`);
    }
    return toBytes(pulled.value);
  }

  /** Lets go of it, if it was begun and has not ended. Does not wait: a source that hangs may hang here too. */
  close(): void {
    if (this.#done || !this.#iterator) return;
    this.#done = true;
    const ignore = (): void => undefined;
    try {
      void Promise.resolve(this.#iterator.return?.()).catch(ignore);
    } catch {
      // The write has failed for a better reason.
    }
  }

  #pull(): Pulled {
    this.#iterator ??= (this.#sync ?? [])[Symbol.iterator]();
    return (this.#iterator as Iterator<WriteChunk, unknown>).next();
  }

  *#wait(
    source: AsyncIterable<WriteChunk>,
    quietPeriod: QuietPeriod,
    renew: () => Effects<void>,
  ): Effects<Pulled> {
    this.#iterator ??= source[Symbol.asyncIterator]();
    const next = Promise.resolve(this.#iterator.next());
    for (;;) {
      const pulled = yield* wait(() => soon(next, quietPeriod));
      if (pulled) return pulled;
      yield* renew();
    }
  }
}

/** What comes first: the value, the abort, or undefined when it takes long. */
function soon<T>(value: Promise<T>, { clock, signal, renewalMs }: QuietPeriod): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => settle(() => reject(signal?.reason as Error));
    const timer = clock.schedule(() => settle(() => resolve(undefined)), renewalMs, { ref: false });
    const settle = (how: () => void): void => {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
      how();
    };
    value.then(
      (got) => settle(() => resolve(got)),
      (error: unknown) => {
        const reason = error as Error;
        settle(() => reject(reason));
      },
    );
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** The bytes of one piece. */
export function toBytes(chunk: WriteChunk): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk);
  // Bytes, not elements: a Uint16Array of 4 has 8.
  return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/** Whether it is one piece. */
export function isChunk(value: unknown): value is WriteChunk {
  return typeof value === 'string' || ArrayBuffer.isView(value);
}

function isIterable(value: unknown): value is Iterable<WriteChunk> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<WriteChunk> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
