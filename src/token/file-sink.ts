import { checkPath } from '../core/options.js';
import { atomicWriteFile } from '../write/atomic-write-file.js';
import type { AtomicWriteFileOptions } from '../write/write-options.js';
import type { ServiceAccountToken } from './token.js';
import type { TokenSink } from './delivery.js';

/** Options of `fileSink`: those of `atomicWriteFile`, and `render`. */
export interface FileSinkOptions extends Omit<AtomicWriteFileOptions, 'signal' | 'coalesce'> {
  /** Returns the contents of the file, such as a kubeconfig. Default: only the token, as kubelet projects it. */
  readonly render?:
    ((token: ServiceAccountToken) => string | Uint8Array | Promise<string | Uint8Array>) | undefined;
}

/**
 * Creates a sink that writes each token to a file. Readers see the old file or the new one, never a partial one. The
 * default mode is 0600.
 * @throws {TypeError} for a wrong path, or a `render` that is not a function; a wrong option of `atomicWriteFile`
 * fails the delivery.
 */
export function fileSink(
  path: string | URL,
  { render, mode = 0o600, ...options }: FileSinkOptions = {},
): TokenSink {
  if (render !== undefined && typeof render !== 'function') {
    throw new TypeError('fileSink: option "render" must be a function');
  }
  const file = checkPath('fileSink', 'path', path);
  const sink: TokenSink = async (token, { signal }) => {
    const text = render ? await render(token) : token.value;
    await atomicWriteFile(file, text, { ...options, mode, signal });
  };
  // Shown in `status()` and events.
  return Object.defineProperty(sink, 'name', { value: file });
}
