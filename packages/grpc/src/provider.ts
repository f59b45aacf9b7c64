/**
 * Passes each set of `TlsFiles` to `@grpc/grpc-js`. The `FileWatcherCertificateProvider` of grpc-js polls, reads
 * the certificate and the key one after the other, and publishes `null` after a failed read, which makes servers drop
 * every connection. This provider publishes only checked sets, each at once, and never withdraws one.
 */
import { rootCertificates } from 'node:tls';

import type { experimental } from '@grpc/grpc-js';
import { isCaRemoved } from 'resilient-watcher/internal';
import type { TlsCredentials, TlsFiles, TlsFilesEvents } from 'resilient-watcher/tls';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;

/** Passes each set to the listeners of grpc-js. */
export class TlsFilesProvider implements experimental.CertificateProvider {
  readonly #files: TlsFiles;
  readonly #caListeners = new Set<CaListener>();
  readonly #identityListeners = new Set<IdentityListener>();
  #onChanged: ((isCaRemoved: boolean) => void) | undefined;

  constructor(files: TlsFiles) {
    this.#files = files;
  }

  /** Called after the listeners have received a new set. */
  onChanged(onChanged: (isCaRemoved: boolean) => void): void {
    this.#onChanged = onChanged;
    this.#follow();
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#caListeners.add(listener);
    this.#added((current) => this.#caListeners.has(listener) && updateCa(listener, current));
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#caListeners.delete(listener);
    this.#removed();
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.add(listener);
    this.#added((current) => this.#identityListeners.has(listener) && updateIdentity(listener, current));
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#identityListeners.delete(listener);
    this.#removed();
  }

  #added(update: (current: TlsCredentials) => void): void {
    this.#follow();
    // grpc-js expects the first update after this call returns, because only then has it registered the server.
    process.nextTick(() => this.#files.current && update(this.#files.current));
  }

  #follow(): void {
    this.#files.off('change', this.#onChange).on('change', this.#onChange);
  }

  #removed(): void {
    if (this.#caListeners.size + this.#identityListeners.size > 0) return;
    this.#files.off('change', this.#onChange);
  }

  readonly #onChange = ({ current, previous }: TlsFilesEvents['change'][0]): void => {
    // All in one turn of the event loop, so that no connection is made in between.
    for (const listener of this.#caListeners) updateCa(listener, current);
    for (const listener of this.#identityListeners) updateIdentity(listener, current);
    this.#onChanged?.(isCaRemoved(previous, current));
  };
}

function updateCa(listener: CaListener, { ca }: TlsCredentials): void {
  listener({ caCertificate: ca ?? Buffer.from(rootCertificates.join('\n')) });
}

function updateIdentity(listener: IdentityListener, { cert, key }: TlsCredentials): void {
  if (cert && key) listener({ certificate: cert, privateKey: key });
}
