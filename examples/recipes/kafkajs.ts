// `kafkajs` with mounted files: each connection is made with the current certificate and CA bundle.
//
//   new Kafka({ brokers, ...tls(files), sasl }); // `sasl` as in kafkajs-sasl.ts
import { connect } from 'node:tls';

import type { ISocketFactory } from 'kafkajs';
import type { TlsFiles } from 'resilient-watcher/tls';

/** TLS, and the client's certificate if the files have one. @param files after `await files.ready()` */
export function tls(files: TlsFiles): { ssl: true; socketFactory: ISocketFactory } {
  return {
    ssl: true,
    socketFactory: ({ host, port, onConnect }) => {
      const socket = connect({ host, port, servername: host, ...files.current?.options }, onConnect);
      return socket.setKeepAlive(true, 60_000);
    },
  };
}
