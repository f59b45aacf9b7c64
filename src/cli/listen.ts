/** `--listen`: metrics, probes and status over HTTP. */
import { createServer, type RequestListener, type Server } from 'node:http';

import type { Command } from 'commander';
import type * as promClient from 'prom-client';

import { healthHandler } from '../index.js';
import { collectMetrics } from '../prometheus.js';
import { listenAddress } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Session } from './session.js';

/** The flag `--listen`. */
export interface ListenFlags {
  readonly listen?: { readonly host: string | undefined; readonly port: number };
}

/** Adds the flag `--listen`. */
export function addListenFlag(command: Command): Command {
  return command.option(
    '--listen <host:port>',
    'serve /metrics, /livez, /readyz and /status here, as in :9533',
    listenAddress,
  );
}

/** Serves the state of the components of a session until the session ends. */
export async function listen({ listen: address }: ListenFlags, session: Session): Promise<void> {
  if (!address) return;
  const metrics = await metricsOf(session);
  const server = createServer(handler(session, metrics));
  try {
    await listening(server, address);
  } catch (error) {
    const where = `${address.host ?? ''}:${address.port}`;
    throw new ExitError(EXIT.failed, `cannot listen on ${where}: ${(error as Error).message}`);
  }
  session.closeAtEnd({ close: () => closed(server) });
  const bound = server.address();
  const port = typeof bound === 'object' && bound ? bound.port : address.port;
  session.output.log('info', 'listening', `listening on port ${port}`, { port });
}

interface Metrics {
  readonly contentType: string;
  metrics(): Promise<string>;
}

/** Undefined if prom-client is not installed: probes and status do not need it. */
async function metricsOf(session: Session): Promise<Metrics | undefined> {
  let client: Pick<typeof promClient, 'Counter' | 'Gauge' | 'Histogram' | 'Registry'>;
  try {
    const loaded = await import('prom-client');
    client = loaded.default;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    session.output.log('warn', 'metrics', '/metrics is not served: it needs npm install prom-client');
    return undefined;
  }
  const registry = new client.Registry();
  const subscription = collectMetrics({ client, registry });
  session.callAtEnd(() => subscription.close());
  return registry;
}

function handler(session: Session, metrics: Metrics | undefined): RequestListener {
  return (request, response) => {
    const reply = (status: number, body: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      response.end(body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      reply(405, 'only GET and HEAD\n');
      return;
    }
    const [path = ''] = (request.url ?? '').split('?');
    switch (path) {
      case '/livez':
      case '/readyz':
        // While an action fails, the application runs with what it had.
        healthHandler(...session.components.filter(({ kind }) => kind !== 'ReloadAction'))(request, response);
        return;
      case '/status': {
        const components = session.components.map((component) => ({
          kind: component.kind,
          ...component.status(),
        }));
        reply(200, JSON.stringify({ components }), 'application/json');
        return;
      }
      case '/metrics':
        if (!metrics) reply(501, 'metrics need npm install prom-client\n');
        else {
          void metrics.metrics().then(
            (text) => reply(200, text, metrics.contentType),
            () => reply(500, 'the metrics could not be collected\n'),
          );
        }
        return;
      default:
        reply(404, 'there are /metrics, /livez, /readyz and /status\n');
    }
  };
}

function listening(server: Server, { host, port }: NonNullable<ListenFlags['listen']>): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, resolve);
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
