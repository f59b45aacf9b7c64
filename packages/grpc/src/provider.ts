/**
 * Passes each set of `TlsFiles` to `@grpc/grpc-js`. The `FileWatcherCertificateProvider` of grpc-js polls, reads
 * the certificate and the key one after the other, and publishes `null` after a failed read, which makes servers drop
 * every connection. This provider publishes only checked sets, each at once, and never withdraws one.
 */
import type { Socket } from 'node:net';
import { rootCertificates } from 'node:tls';

import type { experimental } from '@grpc/grpc-js';
import { trustsLess } from 'resilient-watcher/internal';
import type { TlsCredentials, TlsFiles, TlsFilesEvents } from 'resilient-watcher/tls';

type CaListener = experimental.CaCertificateUpdateListener;
type IdentityListener = experimental.IdentityCertificateUpdateListener;
type Update = (current: TlsCredentials) => void;

export class TlsFilesProvider implements experimental.CertificateProvider {
  readonly #files: TlsFiles;
  readonly #onChanged: (isCaRemoved: boolean) => void;
  readonly #updates = new Map<object, Update>();

  /** @param onChanged called after the listeners have received a new set. */
  constructor(files: TlsFiles, onChanged: (isCaRemoved: boolean) => void) {
    this.#files = files;
    this.#onChanged = onChanged;
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#add(listener, ({ ca }) =>
      listener({ caCertificate: ca ?? Buffer.from(rootCertificates.join('\n')) }),
    );
  }

  removeCaCertificateListener(listener: CaListener): void {
    this.#remove(listener);
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#add(listener, ({ cert, key }) => {
      if (cert && key) listener({ certificate: cert, privateKey: key });
    });
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#remove(listener);
  }

  /** grpc-js takes the listeners of a channel away when it is closed, however long its calls still take. */
  followWhileOpen(socket: Socket): void {
    this.#add(socket, () => {});
    socket.once('close', () => this.#remove(socket));
  }

  #add(listener: object, update: Update): void {
    this.#updates.set(listener, update);
    this.#files.off('change', this.#onChange).on('change', this.#onChange);
    // grpc-js expects the first update after this call returns, because only then has it registered the server.
    process.nextTick(() => this.#files.current && this.#updates.get(listener)?.(this.#files.current));
  }

  #remove(listener: object): void {
    this.#updates.delete(listener);
    if (this.#updates.size === 0) this.#files.off('change', this.#onChange);
  }

  readonly #onChange = ({ current, previous }: TlsFilesEvents['change'][0]): void => {
    // All in one turn of the event loop, so that no connection is made in between.
    for (const update of this.#updates.values()) update(current);
    this.#onChanged(trustsLess(previous, current));
  };
}
