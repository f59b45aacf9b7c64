import { Client, Server, status, type ServiceError } from '@grpc/grpc-js';
import { grpcChannelCredentials, grpcServerCredentials } from '@resilient-watcher/grpc';
import { expect, onTestFinished, test } from 'vitest';

import { heldTimers } from '../../../test/support/held-timers.js';
import { client, mount, own } from '../../../test/support/leaving-ca.js';

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
    const { files, removeCa } = closed === 'client' ? onClient : onServer;
    if (closed === 'client') caller.close();
    else server.tryShutdown(() => {});
    const due = heldTimers();
    const ended: number[] = [];
    files.on('connectionsEnded', ({ connections }) => ended.push(connections));
    await removeCa();
    expect(ended).toEqual([1]);
    for (const callback of due) callback();
    expect(await failure).toMatchObject({ code: status.UNAVAILABLE });
    await expect.poll(() => files.listenerCount('change')).toBe(0);
  },
);
