/** The data of a write, in whatever form it is given. */
import type { Readable } from 'node:stream';

import { untilAborted } from '../core/scheduling/abort.js';
import { describe } from '../core/options/options.js';
import { wait, type Steps } from '../core/scheduling/steps.js';

/** A chunk of data: text (written as UTF-8), or the bytes of a `Buffer`, typed array or `DataView`. */
export type WriteChunk = string | NodeJS.ArrayBufferView;

/** Data that can be written synchronously: one chunk, or an iterable of chunks. */
export type SyncWriteData = WriteChunk | Iterable<WriteChunk>;

/** Data that can be written. A readable stream is an async iterable. */
export type WriteData = SyncWriteData | AsyncIterable<WriteChunk>;

/** An iterable, an async iterable, or a stream. */
type GivenData = Iterable<WriteChunk> & AsyncIterable<WriteChunk> & Partial<Readable>;
type ChunkIterator = Iterator<WriteChunk, unknown> | AsyncIterator<WriteChunk, unknown>;

/** Hands out data that was not given as one chunk. */
export class WriteSource {
  /** Whether the data may take any length of time to arrive. */
  readonly isSlow: boolean;
  readonly #data: GivenData;
  #iterator: ChunkIterator | undefined;
  #failure: { readonly error: unknown } | undefined;
  #isDone = false;

  /**
   * @param owner the function that was given the data, for the error message.
   * @throws {TypeError} if it cannot be written. The message does not show the value: it may be a secret.
   */
  constructor(owner: string, data: unknown, { canWait }: { readonly canWait: boolean }) {
    this.isSlow = canWait && has(data, Symbol.asyncIterator);
    if (!this.isSlow && !has(data, Symbol.iterator)) {
      const wanted = `a string, a Uint8Array, or an iterable${canWait ? ' or async iterable' : ''} of them`;
      throw new TypeError(`${owner}: data must be ${wanted}, got ${typeof data}`);
    }
    this.#data = data as GivenData;
    // Without a listener, a stream that fails before its turn, or after the write has failed, would end the process.
    if (this.isSlow) this.#data.on?.('error', (error: unknown) => (this.#failure ??= { error }));
  }

  /**
   * The next chunk; undefined at the end.
   * @param signal ends the wait for the chunk when it aborts.
   */
  *next(signal: AbortSignal | undefined): Steps<Uint8Array | undefined> {
    if (this.#isDone) return undefined;
    if (this.#failure) throw this.#failure.error;
    this.#iterator ??= this.#iterate();
    const pulled = this.#iterator.next();
    const { done, value } = yield* wait(this.isSlow ? untilAborted(Promise.resolve(pulled), signal) : pulled);
    this.#isDone = done === true;
    if (done) return undefined;
    if (isChunk(value)) return toBytes(value);
    throw new TypeError(`it yielded ${describe(typeof value)} instead of a string or a Uint8Array`);
  }

  /**
   * Ends an iteration that is not complete, and destroys a stream even if its iteration has not begun. Does not wait
   * for either: a source that hangs may hang here, too.
   */
  close(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    try {
      void Promise.resolve(this.#iterator?.return?.()).catch(() => undefined);
      // The iterator of a stream does that only when its next chunk has arrived.
      if (this.isSlow) this.#data.destroy?.();
    } catch {
      // The write has failed already; that error is the one to report.
    }
  }

  #iterate(): ChunkIterator {
    if (!this.isSlow) return this.#data[Symbol.iterator]();
    if (this.#data.readableEnded) throw new Error('the stream has already been read');
    return this.#data[Symbol.asyncIterator]();
  }
}

/** The data of a write: its bytes, if it was given as one chunk. Throws as the constructor of `WriteSource`. */
export function sourceOf(
  owner: string,
  data: unknown,
  how: { readonly canWait: boolean },
): Uint8Array | WriteSource {
  return isChunk(data) ? toBytes(data) : new WriteSource(owner, data, how);
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

function has(value: unknown, symbol: symbol): boolean {
  return typeof value === 'object' && value !== null && symbol in value;
}
