import type { X509Certificate } from 'node:crypto';
import * as tls from 'node:tls';

import { Component, type ComponentEvents, type ComponentStatus } from '../core/lifecycle/component.js';
import { startOrClose } from '../core/lifecycle/lifecycle.js';
import type { Clock } from '../core/ports/clock.js';
import { processState } from '../core/process-state.js';
import { nonEmptyString, PORT_OPTIONS, resolveOptions } from '../core/options/options.js';
import { replaceDefaultPools } from './default-pools.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { checkNoLists, checkTlsFiles, type TlsFiles } from './tls-files.js';

/** Options of `followDefaultCa`. All are optional, and `undefined` means the default. */
export interface FollowDefaultCaOptions {
  /** The name in its status and telemetry. Default: `followDefaultCa` and the path of the files. */
  readonly name?: string | undefined;
  /** Stops following the files when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
}

/** The status of `DefaultCa`. Plain data. */
export interface DefaultCaStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  /** The subjects of the certificates of the bundle that are in the list. */
  readonly subjects: readonly string[];
  /** How many times the list was set. */
  readonly changes: number;
}

const OPTIONS = {
  name: nonEmptyString(undefined),
  signal: PORT_OPTIONS.signal,
  clock: PORT_OPTIONS.clock,
};

/** The calls of `node:tls` that Node.js 20 and its types lack. */
interface DefaultCaCalls {
  getCACertificates(type: 'bundled' | 'system' | 'extra'): string[];
  setDefaultCACertificates(certificates: readonly string[]): void;
}

interface Authorities {
  /** The certificates that each `DefaultCa` adds. */
  readonly bundles: Map<object, readonly X509Certificate[]>;
  /** What they have made the default list. */
  trusted: readonly string[];
}

const state = processState('authorities', (): Authorities => ({ bundles: new Map(), trusted: [] }));

/** Keeps the default CA list of Node.js up to date with files; created by `followDefaultCa()`. */
export class DefaultCa extends Component<ComponentEvents, DefaultCaStatus> {
  readonly #files: TlsFiles;
  readonly #calls: DefaultCaCalls;
  #changes = 0;

  /** @throws {TlsError} `ERR_TLS_UNSUPPORTED`. */
  constructor(files: TlsFiles, options?: FollowDefaultCaOptions) {
    checkTlsFiles('followDefaultCa', 'files', files);
    const { name, signal, clock } = resolveOptions('followDefaultCa', options, OPTIONS);
    super({ kind: 'DefaultCa', name: name ?? `followDefaultCa ${files.path}`, signal, clock });
    this.#files = files;
    this.#calls = defaultCaCalls();
  }

  status(): DefaultCaStatus {
    return {
      name: this.name,
      state: this.lifecycleState,
      subjects: (state().bundles.get(this) ?? []).map(({ subject }) => subject),
      changes: this.#changes,
      lastError: this.lastError,
    };
  }

  protected override get purpose(): string {
    return 'follow the default CA list';
  }

  protected override async onStart(): Promise<void> {
    const credentials = await this.#files.get();
    if (this.lifetime.ended) return;
    if (!credentials.ca) throw new TlsError('ERR_TLS_CA', `There is no CA bundle in ${this.#files.path}`);
    this.#use(credentials);
    this.#files.on('change', this.#onChange);
  }

  protected override onClose(): void {
    this.#files.off('change', this.#onChange);
    state().bundles.delete(this);
  }

  readonly #onChange = ({ current }: { readonly current: TlsCredentials }): void => {
    try {
      this.#use(current);
    } catch (error) {
      this.fail(error);
    }
  };

  #use(credentials: TlsCredentials): void {
    checkNoLists('followDefaultCa', credentials);
    // What `addDefaultCa()` has added for these files before they were read.
    state().bundles.delete(this.#files);
    const isRemoved = addDefaultCa(this.#calls, this, credentials.authorities);
    this.#changes += 1;
    if (!isRemoved) return;
    const { ended, failures } = replaceDefaultPools();
    this.#files.reportEnded('followDefaultCa', ended);
    for (const cause of failures) this.fail(notReplaced(cause));
  }
}

function notReplaced(cause: unknown): TlsError {
  const message =
    'A global agent or dispatcher cannot be replaced by a new one, so its connections that a removed CA has verified stay in use; set another one with setGlobalDispatcher(), or as https.globalAgent';
  return new TlsError('ERR_TLS_UNSUPPORTED', message, { cause });
}

/**
 * Trusts the CAs of the system and of Node.js, and all that were added.
 * @param owner whose earlier ones they replace. Returns whether a CA that was trusted before no longer is.
 */
export function addDefaultCa(
  calls: DefaultCaCalls,
  owner: object,
  authorities: readonly X509Certificate[],
): boolean {
  const { bundles, trusted } = state();
  bundles.set(owner, authorities);
  const added = [...bundles.values()].flat();
  const base = [...calls.getCACertificates('bundled'), ...calls.getCACertificates('system')];
  // Without line breaks, because copies of a certificate may have lines of different lengths.
  const list = new Map([...base, ...added.map(String)].map((pem) => [pem.replace(/\s+/g, ''), pem]));
  calls.setDefaultCACertificates([...list.values()]);
  const isRemoved = trusted.some((body) => !list.has(body));
  state().trusted = [...list.keys()];
  return isRemoved;
}

/** @throws {TlsError} `ERR_TLS_UNSUPPORTED`. */
export function defaultCaCalls(): DefaultCaCalls {
  const calls = tls as Partial<DefaultCaCalls>;
  if (typeof calls.setDefaultCACertificates === 'function' && typeof calls.getCACertificates === 'function') {
    return calls as DefaultCaCalls;
  }
  const message = `The default CA list cannot be changed by Node.js ${process.versions.node}; it needs 22.19, or 24.5, or later`;
  throw new TlsError('ERR_TLS_UNSUPPORTED', message);
}

/**
 * Makes every client of this thread that has no `ca` of its own trust the CA bundle of the files, now and after each
 * change, in addition to the CAs of the operating system and of Node.js. This covers `fetch()`, `https.request()`,
 * `tls.connect()` and everything built on them. Replaces `NODE_EXTRA_CA_CERTS`, which is read only once and whose
 * certificates are no longer used.
 *
 * When a CA is removed, `https.globalAgent` and the global dispatcher of `fetch()` and undici are replaced by new ones,
 * so that new requests use new connections and no earlier session; requests in flight have 30 s. The new agent has the
 * settings of the old one, and the new dispatcher default options. One that cannot be replaced is an `error` of the
 * result. Not covered: a global agent or dispatcher of another class than `Agent`, an agent that the application has
 * stored, clients with a `ca` of their own, existing TLS contexts (such as that of a gRPC channel), and worker threads
 * (each has its own list).
 *
 * Several bundles may be followed at once. Resolves when the bundle is trusted. To stop, close the result; the list stays
 * as it is until another bundle is followed or changes. Starts the files; the caller has to close them.
 * @throws {TlsError} (rejects) `ERR_TLS_UNSUPPORTED` before Node.js 22.19 and 24.5, and for files with `crl`;
 * `ERR_TLS_CA` if the files have no CA bundle; `ERR_TLS_UNAVAILABLE` if it is not usable (`files.ready()` waits for
 * one).
 */
export async function followDefaultCa(files: TlsFiles, options?: FollowDefaultCaOptions): Promise<DefaultCa> {
  return startOrClose(new DefaultCa(files, options));
}
