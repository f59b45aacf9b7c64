import { join } from 'node:path';

import { Client, Server, status, type ServiceError } from '@grpc/grpc-js';
import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { CertificateSigner, type IssuedCertificate } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test, vi } from 'vitest';

import { systemClock } from '../../../src/core/clock.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const [root, leaving] = [new CertificateSigner({ name: 'root' }), new CertificateSigner({ name: 'leaving' })];
const [own, client] = [root.issue({ dnsNames: ['localhost'] }), root.issue({ commonName: 'client' })];

function mount({ chain, key }: IssuedCertificate): { files: TlsFiles; trust: (ca: string) => Promise<void> } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'));
  const publish = (ca: string): void =>
    void volume.publish({ 'tls.crt': chain, 'tls.key': key, 'ca.crt': ca });
  publish(`${root.certificate}${leaving.certificate}`);
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const trust = async (ca: string): Promise<void> => {
    publish(ca);
    await files.check();
  };
  return { files, trust };
}

/** Runs what is due in 30 s; the clock is not an option of the credentials. */
function heldTimers(): () => void {
  const { schedule } = systemClock;
  const due: (() => void)[] = [];
  const spy = vi.spyOn(systemClock, 'schedule').mockImplementation((callback, delayMs, how) => {
    if (delayMs !== 30_000) return schedule.call(systemClock, callback, delayMs, how);
    due.push(callback);
    return { cancel: () => {} };
  });
  onTestFinished(() => spy.mockRestore());
  return () => due.forEach((callback) => callback());
}

test.each(['client', 'server'])(
  'a call in flight ends in 30 s when a CA is removed, also if its %s has been closed meanwhile',
  async (closed) => {
    const path = '/test.Slow/Slow';
    const bytes = (value: Buffer): Buffer => value;
    const server = new Server();
    let called = (): void => {};
    const isCalled = new Promise<void>((resolve) => (called = resolve));
    const format = {
      ...{ requestStream: false, responseStream: false, requestSerialize: bytes },
      ...{ requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes },
    };
    server.addService({ slow: { path, ...format } }, { slow: () => called() });
    const [onServer, onClient] = [mount(own), mount(client)];
    const serverCredentials = await grpcServerCredentials(onServer.files, { requireClientCertificate: true });
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', serverCredentials, (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    onTestFinished(() => server.forceShutdown());

    const caller = new Client(`127.0.0.1:${port}`, await grpcChannelCredentials(onClient.files), {
      'grpc.ssl_target_name_override': 'localhost',
      'grpc.use_local_subchannel_pool': 1,
    });
    const failure = new Promise<ServiceError | null>((resolve) => {
      caller.makeUnaryRequest(path, bytes, bytes, Buffer.from('x'), resolve);
    });
    await isCalled;
    onTestFinished(() => caller.close());
    const { files, trust } = closed === 'client' ? onClient : onServer;
    if (closed === 'client') caller.close();
    else server.tryShutdown(() => {});
    const passTime = heldTimers();
    const ended: number[] = [];
    files.on('connectionsEnded', ({ connections }) => ended.push(connections));
    await trust(root.certificate);
    expect(ended).toEqual([1]);
    passTime();
    expect(await failure).toMatchObject({ code: status.UNAVAILABLE });
    await expect.poll(() => files.listenerCount('change')).toBe(0);
  },
);
