/** `--listen`: metrics, probes and status over HTTP. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { isIPv6, type AddressInfo } from 'node:net';

import type { Command } from 'commander';
import type * as promClient from 'prom-client';
import { healthHandler } from 'resilient-watcher';
import { collectMetrics } from 'resilient-watcher/prometheus';

import { listenAddress } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Execution } from './execution.js';

/** The flag `--listen`. */
export interface ListenFlags {
  readonly listen?: ReturnType<typeof listenAddress>;
}

/** Adds the flag `--listen`. */
export function addListenFlag(command: Command): Command {
  return command
    .optionsGroup('Options:')
    .option(
      '--listen <host:port>',
      'serve /metrics, /livez, /readyz and /status on this address, such as :9533',
      listenAddress,
    );
}

/** With `--listen`, serves the state of the components until the execution ends. */
export async function listen({ listen: address }: ListenFlags, execution: Execution): Promise<void> {
  if (!address) return;
  const metrics = await metricsOf(execution);
  const server = createServer(handler(execution, metrics));
  try {
    server.listen(address);
    await once(server, 'listening');
  } catch (error) {
    const where = shown(address.host ?? '', address.port);
    throw new ExitError(EXIT.failed, `cannot listen on ${where}: ${(error as Error).message}`);
  }
  execution.closeAtEnd({ close: () => closed(server) });
  const { address: bound, port } = server.address() as AddressInfo;
  execution.output.log('info', 'listening', `listening on ${shown(bound, port)}`, { address: bound, port });
}

function shown(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Undefined if prom-client is not installed: probes and status do not need it. */
async function metricsOf(execution: Execution): Promise<promClient.Registry | undefined> {
  let client: (typeof promClient)['default'];
  try {
    client = (await import('prom-client')).default;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    execution.output.log(
      'warn',
      'metrics',
      '/metrics is not served: it needs the package prom-client (npm install prom-client)',
    );
    return undefined;
  }
  const registry = new client.Registry();
  const subscription = collectMetrics({ client, registry });
  execution.closeAtEnd(subscription);
  return registry;
}

function handler(execution: Execution, metrics: promClient.Registry | undefined): RequestListener {
  return (request, response) => {
    const reply = (status: number, body: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      response.end(body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      reply(405, 'only GET and HEAD\n');
      return;
    }
    // Proxies send the absolute form, with scheme and host.
    const [path = ''] = (request.url ?? '').replace(/^https?:\/\/[^/?]*/i, '').split('?');
    switch (path) {
      case '/livez':
      case '/readyz':
        // While an action fails, the application still runs with what it had.
        healthHandler(...execution.components.filter(({ kind }) => kind !== 'ReloadAction'))(
          request,
          response,
        );
        return;
      case '/status': {
        const components = execution.components.map((component) => ({
          kind: component.kind,
          ...component.status(),
        }));
        reply(200, JSON.stringify({ components }), 'application/json');
        return;
      }
      case '/metrics':
        if (!metrics) reply(501, '/metrics needs the package prom-client (npm install prom-client)\n');
        else {
          void metrics.metrics().then(
            (text) => reply(200, text, metrics.contentType),
            () => reply(500, 'the metrics could not be collected\n'),
          );
        }
        return;
      default:
        reply(404, 'not found; try /metrics, /livez, /readyz or /status\n');
    }
  };
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
