/** The data of a write, in whatever form it is given. */
import { onAbort } from '../core/abort.js';
import { describe } from '../core/options.js';
import { Outcome } from '../core/outcome.js';
import type { Clock } from '../core/clock.js';
import { wait, type Effects } from '../fs/effects.js';

/** A chunk of data: text (written as UTF-8), or the bytes of a `Buffer`, typed array or `DataView`. */
export type WriteChunk = string | NodeJS.ArrayBufferView;

/** Data that can be written synchronously: one chunk, or an iterable of chunks. */
export type SyncWriteData = WriteChunk | Iterable<WriteChunk>;

/** Data that can be written. A readable stream is an async iterable. */
export type WriteData = SyncWriteData | AsyncIterable<WriteChunk>;

/** How to wait for the next chunk. */
interface ChunkWait {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  /** The wait is interrupted this often, ms. */
  readonly renewalMs: number;
}

type Pulled = IteratorResult<WriteChunk, unknown>;

/** Hands out the data chunk by chunk. */
export class WriteSource {
  readonly #whole: Uint8Array | undefined;
  readonly #sync: Iterable<WriteChunk> | undefined;
  readonly #async: AsyncIterable<WriteChunk> | undefined;
  #iterator: Iterator<WriteChunk, unknown> | AsyncIterator<WriteChunk, unknown> | undefined;
  #done = false;

  /**
   * @param owner the function that was given the data, for the error message.
   * @throws {TypeError} when it cannot be written. The message does not show the value: it may be a secret.
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

  /** The whole data, if it was given as one chunk. */
  get whole(): Uint8Array | undefined {
    return this.#whole;
  }

  /**
   * The next chunk, undefined at the end.
   * @param chunkWait undefined in synchronous work, which cannot wait.
   * @param renew runs whenever the wait takes longer than `renewalMs`.
   */
  *next(chunkWait: ChunkWait | undefined, renew: () => Effects<void>): Effects<Uint8Array | undefined> {
    if (this.#done) return undefined;
    if (this.#whole) {
      this.#done = true;
      return this.#whole;
    }
    const pulled = this.#async && chunkWait ? yield* this.#wait(this.#async, chunkWait, renew) : this.#pull();
    if (pulled.done) {
      this.#done = true;
      return undefined;
    }
    if (!isChunk(pulled.value)) {
      throw new TypeError(`it yielded ${describe(typeof pulled.value)} instead of a string or a Uint8Array`);
    }
    return toBytes(pulled.value);
  }

  /** Ends an iteration that is not complete. Does not wait for it: a source that hangs may hang here, too. */
  close(): void {
    if (this.#done || !this.#iterator) return;
    this.#done = true;
    const ignore = (): void => undefined;
    try {
      void Promise.resolve(this.#iterator.return?.()).catch(ignore);
    } catch {
      // The write has failed already; that error is the one to report.
    }
  }

  #pull(): Pulled {
    this.#iterator ??= (this.#sync ?? [])[Symbol.iterator]();
    return (this.#iterator as Iterator<WriteChunk, unknown>).next();
  }

  *#wait(
    source: AsyncIterable<WriteChunk>,
    chunkWait: ChunkWait,
    renew: () => Effects<void>,
  ): Effects<Pulled> {
    this.#iterator ??= source[Symbol.asyncIterator]();
    const next = Promise.resolve(this.#iterator.next());
    for (;;) {
      const pulled = yield* wait(() => settledSoon(next, chunkWait));
      if (pulled) return pulled;
      yield* renew();
    }
  }
}

/** The value; the signal's reason as an error when it aborts; undefined when neither comes within `renewalMs`. */
async function settledSoon<T>(
  value: Promise<T>,
  { clock, signal, renewalMs }: ChunkWait,
): Promise<T | undefined> {
  const interruption = new Outcome<undefined>();
  const timer = clock.schedule(() => interruption.resolve(undefined), renewalMs, { ref: false });
  const unlisten = onAbort(signal, () => interruption.reject(signal?.reason as Error));
  try {
    return await Promise.race([interruption.promise, value]);
  } finally {
    timer.cancel();
    unlisten();
  }
}

/** The bytes of one chunk. */
export function toBytes(chunk: WriteChunk): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk);
  if (chunk instanceof Uint8Array) return chunk;
  // Bytes, not elements: a Uint16Array of length 4 has 8.
  return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/** Whether a value is one chunk. */
export function isChunk(value: unknown): value is WriteChunk {
  return typeof value === 'string' || ArrayBuffer.isView(value);
}

function isIterable(value: unknown): value is Iterable<WriteChunk> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<WriteChunk> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
