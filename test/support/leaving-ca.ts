/** Two CAs that are trusted, of which one leaves, and peers that speak to the servers by hand. */
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

import { CertificateSigner, type IssuedCertificate } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { onTestFinished } from 'vitest';

import { temporaryDirectory } from './temporary-directory.js';

export const root = new CertificateSigner({ name: 'root' });
export const leaving = new CertificateSigner({ name: 'leaving' });
export const own = root.issue({ dnsNames: ['localhost'] });
export const client = root.issue({ commonName: 'client' });
export const both = `${root.certificate}${leaving.certificate}`;

/** A volume with a pair that trusts both CAs at first. */
export interface Mounted {
  readonly files: TlsFiles;
  /** @param ca Default: none. */
  readonly publish: (issued: IssuedCertificate, ca?: string) => Promise<void>;
  readonly removeCa: () => Promise<void>;
}

export function mount(issued: IssuedCertificate): Mounted {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const write = ({ chain, key }: IssuedCertificate, ca?: string): void =>
    void volume.publish({ 'tls.crt': chain, 'tls.key': key, ...(ca && { 'ca.crt': ca }) });
  write(issued, both);
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const publish: Mounted['publish'] = async (next, ca) => {
    write(next, ca);
    await files.check();
  };
  return { files, publish, removeCa: () => publish(issued, root.certificate) };
}

/** Without a client certificate the handshake fails, so each connection presents one. */
export function dial(port: number, options: ConnectionOptions = {}): TLSSocket {
  const identity = { ca: root.certificate, cert: client.chain, key: client.key };
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...identity, ...options });
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => {});
}

export const H2 = { ALPNProtocols: ['h2'] };
/** The preface of HTTP/2 and empty settings. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
