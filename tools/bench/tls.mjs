/**
 * `node tools/bench/run.mjs tls`: what a rotation of the certificate costs an HTTPS server with many open connections: from the
 * swap until new handshakes get the new certificate, and what it takes to read, check and set a pair. The connections are idle keep-alive ones, made by another process.
 *
 *     node tools/bench/tls.mjs [--connections 1000] [--rotations 200]
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:https';
import os from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { parseArgs } from 'node:util';

import { KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, TlsFiles } from 'resilient-watcher/tls';
import { generate } from 'selfsigned';

if (process.send) {
  process.on('message', async ({ port, connections, ca }) => {
    for (let index = 0; index < connections; index += 1) {
      const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca });
      await once(socket, 'secureConnect');
      socket.on('close', () => process.send('closed')).on('error', () => {});
    }
    process.send('connected');
  });
} else {
  const { values } = parseArgs({
    options: {
      connections: { type: 'string', default: '1000' },
      rotations: { type: 'string', default: '200' },
    },
  });
  await main(Number(values.connections), Number(values.rotations));
}

async function main(connections, rotations) {
  const directory = fs.mkdtempSync(join(os.tmpdir(), 'bench-tls-'));
  const volume = new KubeletVolume(join(directory, 'tls'));
  const names = [{ name: 'commonName', value: 'localhost' }];
  const pairs = await Promise.all([1, 2].map(() => generate(names, { keyType: 'ec', algorithm: 'sha256' })));
  const publish = (index) => {
    const { cert, private: key } = pairs[index % 2];
    volume.publish({ 'tls.crt': cert, 'tls.key': key });
  };
  publish(0);
  const files = new TlsFiles(volume.directory);
  const server = createServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
  await serveTls(server, files);
  await once(server.listen(0, '127.0.0.1'), 'listening');

  console.log('connections  swap→served p50 / p99 ms  CPU per rotation ms  lost');
  for (const count of [0, connections]) {
    const client = fork(new URL(import.meta.url).pathname);
    let lost = 0;
    client.send({ port: server.address().port, connections: count, ca: pairs[0].cert });
    await new Promise((resolve) =>
      client.on('message', (message) => (message === 'connected' ? resolve() : (lost += 1))),
    );
    const latencies = [];
    for (let index = 1; index <= rotations + 20; index += 1) {
      const previous = files.current;
      publish(index);
      const swapped = performance.now();
      await files.changed({ previous });
      if (index > 20) latencies.push(performance.now() - swapped);
    }
    // The work itself, without waiting for an event.
    const before = process.cpuUsage();
    for (let index = 1; index <= rotations; index += 1) {
      publish(rotations + index);
      await files.check();
    }
    const { user, system } = process.cpuUsage(before);
    latencies.sort((a, b) => a - b);
    const at = (share) => latencies[Math.floor(share * (latencies.length - 1))].toFixed(2);
    const cpu = ((user + system) / 1e3 / rotations).toFixed(2);
    console.log(
      `${String(count).padStart(11)}  ${at(0.5)} / ${at(0.99)}`.padEnd(39) + `${cpu}`.padEnd(21) + `${lost}`,
    );
    publish(0);
    await files.check();
    client.removeAllListeners('message');
    client.kill();
    await once(client, 'exit');
  }
  server.closeAllConnections();
  server.close();
  await files.close();
  fs.rmSync(directory, { recursive: true });
}
