import type * as undiciModule from 'undici';
import type { Agent, buildConnector, Dispatcher } from 'undici';

import type { TlsCredentials } from './tls-credentials.js';
import { checkTlsFiles, type TlsFiles } from './tls-files.js';
import { PackageError } from '../core/package-error.js';

/**
 * Resolves to a dispatcher for `fetch()` and `undici.request()`. It trusts the CA bundle of the files, and presents
 * their certificate, if they have one. After a change, new requests use a new pool of connections; requests in flight
 * finish in the old one, however long they take. Close the dispatcher when it is no longer used. Starts the files; the
 * caller has to close them.
 * @param options options of undici's `Agent`; `connect` options are kept, except that `ca`, `cert` and `key` are
 * replaced by those of the files, if they have them.
 * @throws {TlsError} (rejects) if the files are not usable.
 * @throws {PackageError} (rejects) if `undici` is not installed.
 */
export async function undiciDispatcher(files: TlsFiles, options: Agent.Options = {}): Promise<Dispatcher> {
  checkTlsFiles('undiciDispatcher', 'files', files);
  return rotatingDispatcher(await loadUndici(), files, options, (connect) => connect);
}

type Undici = typeof undiciModule;

/** @throws {PackageError} (rejects) */
export async function loadUndici(): Promise<Undici> {
  // Bundlers accept a missing package only if the import is in a `try`.
  try {
    return await import('undici');
  } catch (cause) {
    throw new PackageError('undici', '7 or later', cause);
  }
}

/** A dispatcher with a pool for each set; `connectorOf` creates the connector of a set. */
export async function rotatingDispatcher(
  undici: Undici,
  files: TlsFiles,
  options: Agent.Options,
  connectorOf: (
    connect: buildConnector.BuildOptions,
  ) => buildConnector.BuildOptions | buildConnector.connector,
): Promise<Dispatcher> {
  const { connect } = options;
  if (typeof connect === 'function') {
    throw new TypeError(
      'undiciDispatcher: "connect" must be options; a function would not see the certificate',
    );
  }
  const initial = await files.get();
  const newPool = (credentials: TlsCredentials): Agent =>
    new undici.Agent({ ...options, connect: connectorOf({ ...connect, ...credentials.options }) });

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
