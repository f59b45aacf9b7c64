import type { Agent, Dispatcher } from 'undici';

import type { TlsCredentials } from './tls-credentials.js';
import type { TlsFiles } from './tls-files.js';
import { unavailable } from './tls-package.js';

/**
 * A dispatcher for `fetch()` and `undici.request()`: one pool that trusts the CA bundle of the files, if they have
 * one, and shows their certificate, if they have one. After a change new requests go through a new pool; requests in
 * flight, however long, finish in the old one. Close it when it is no longer used. The files are started, and stay
 * yours to close.
 * @param options as of undici's `Agent`; `connect` options are kept, except `ca`, `cert` and `key` where the files
 * have them.
 * @throws {TlsError} (rejects) when the files are not usable; `ERR_TLS_PACKAGE` when `undici` is not installed.
 */
export async function undiciDispatcher(files: TlsFiles, options: Agent.Options = {}): Promise<Dispatcher> {
  const undici = await import('undici').catch(unavailable('undici', '7 or later'));
  const initial = await files.get();
  const { connect } = options;
  if (typeof connect === 'function') {
    throw new TypeError(
      'undiciDispatcher: "connect" must be options; a function would not see the certificate',
    );
  }
  const newPool = (credentials: TlsCredentials): Agent =>
    new undici.Agent({ ...options, connect: { ...connect, ...credentials.options } });

  class TlsFilesDispatcher extends undici.Dispatcher {
    #pool = newPool(initial);
    /** Pools that still have requests in flight. */
    readonly #old = new Set<Agent>();

    constructor() {
      super();
      files.on('change', this.#onChange);
    }

    override dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
      return this.#pool.dispatch(request, handler);
    }

    override close(): Promise<void>;
    override close(callback: () => void): void;
    override close(callback?: () => void): Promise<void> | void {
      files.off('change', this.#onChange);
      const closed = Promise.all([...this.#old, this.#pool].map((pool) => pool.close())).then(() => {});
      if (!callback) return closed;
      void closed.then(callback, callback);
    }

    override destroy(error?: Error | null | (() => void), callback?: () => void): Promise<void> {
      files.off('change', this.#onChange);
      const reason = error instanceof Error ? error : null;
      const onDestroyed = typeof error === 'function' ? error : callback;
      const destroyed = Promise.all([...this.#old, this.#pool].map((pool) => pool.destroy(reason))).then(
        () => {},
      );
      void destroyed.then(onDestroyed, onDestroyed);
      return destroyed;
    }

    readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
      const old = this.#pool;
      this.#pool = newPool(current);
      this.#old.add(old);
      const forget = (): boolean => this.#old.delete(old);
      old.close().then(forget, forget);
    };
  }
  return new TlsFilesDispatcher();
}
