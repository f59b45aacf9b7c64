/** Real message brokers of the system's packages, where they are installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, onTestFinished } from 'vitest';

import { freePort } from '../../../test/support/free-port.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

/** Paths of the files of a TLS server; `ca` verifies clients. */
interface ServerFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

interface Broker {
  readonly port: number;
  /** Resolves when the log contains it. */
  readonly said: (text: RegExp) => Promise<void>;
}

/** Why the tests with mosquitto cannot run; undefined when they can. */
export const withoutMosquitto = existsSync('/usr/sbin/mosquitto')
  ? undefined
  : 'mosquitto is not installed (apt-get install mosquitto)';

/** Why the tests with NATS cannot run; undefined when they can. */
export const withoutNats = existsSync('/usr/sbin/nats-server')
  ? undefined
  : 'NATS is not installed (apt-get install nats-server)';

async function startBroker(
  command: string,
  configuration: string,
  ready: RegExp,
): Promise<{ said: Broker['said']; reload: (configuration: string) => void }> {
  const path = join(temporaryDirectory(), 'broker.conf');
  writeFileSync(path, configuration);
  const child = spawn(command, ['-c', path], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const said = async (text: RegExp): Promise<void> => {
    await expect.poll(() => output).toMatch(text);
  };
  await said(ready);
  return {
    said,
    reload: (next) => {
      writeFileSync(path, next);
      child.kill('SIGHUP');
    },
  };
}

/** An MQTT broker that wants a certificate of each client, and takes its name as the user's. */
export async function startMosquitto({ cert, key, ca }: ServerFiles): Promise<Broker> {
  const port = await freePort();
  const lines = [
    `listener ${port} 127.0.0.1`,
    `certfile ${cert}`,
    `keyfile ${key}`,
    `cafile ${ca}`,
    'require_certificate true',
    'use_identity_as_username true',
    'user root',
    'log_dest stderr',
  ];
  const { said } = await startBroker('/usr/sbin/mosquitto', lines.join('\n'), /running/);
  return { port, said };
}

/** A NATS server with one user, that wants a certificate of each client. */
export async function startNats(
  { cert, key, ca }: ServerFiles,
  user: string,
  password: string,
): Promise<{ readonly port: number; readonly setPassword: (password: string) => void }> {
  const port = await freePort();
  const configuration = (secret: string): string =>
    [
      `listen: "127.0.0.1:${port}"`,
      `authorization { user: "${user}", password: "${secret}" }`,
      `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${ca}", verify: true }`,
    ].join('\n');
  const { reload } = await startBroker('/usr/sbin/nats-server', configuration(password), /ready/);
  return { port, setPassword: (secret) => reload(configuration(secret)) };
}
