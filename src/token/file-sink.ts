import { callback, checkPath, resolveOptions } from '../core/options/options.js';
import { toldPath } from '../core/ports/platform-path.js';
import { atomicWriteFile } from '../write/atomic-write-file.js';
import { PRIVATE_MODE } from '../write/file-attributes.js';
import { OPTIONS, type AtomicWriteFileOptions } from '../write/write-options.js';
import type { ServiceAccountToken } from './token.js';
import type { TokenSink } from './delivery.js';

/** Options of `fileSink`: those of `atomicWriteFile`, and `render`. */
export interface FileSinkOptions extends Omit<AtomicWriteFileOptions, 'signal'> {
  /** Returns the contents of the file, such as a kubeconfig. Default: only the token, as kubelet projects it. */
  readonly render?:
    ((token: ServiceAccountToken) => string | Uint8Array | Promise<string | Uint8Array>) | undefined;
}

const { signal: _signal, mode, ...others } = OPTIONS;

/** How a sink writes: the options of `atomicWriteFile` that it does not set itself. */
export const SINK_OPTIONS = { ...others, mode: { ...mode, fallback: PRIVATE_MODE } };

const FILE_SINK_OPTIONS = {
  ...SINK_OPTIONS,
  render: callback<NonNullable<FileSinkOptions['render']>>(({ value }) => value),
};

/**
 * Creates a sink that writes each token to a file. Readers see the old file or the new one, never a partial one. The
 * default mode is 0600. A relative path is that of the working directory of this call.
 * @throws {TypeError} for a wrong path, and an unknown or wrong option.
 */
export function fileSink(path: string | URL, options?: FileSinkOptions): TokenSink {
  const file = toldPath(checkPath('fileSink', 'path', path));
  const { render, ...write } = resolveOptions('fileSink', options, FILE_SINK_OPTIONS);
  const sink: TokenSink = async (token, { signal }) => {
    await atomicWriteFile(file, await render(token), { ...write, signal });
  };
  // Shown in `status()` and events.
  return Object.defineProperty(sink, 'name', { value: file });
}
