import { spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { accessSync, constants, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { onTestFinished } from 'vitest';

import { createServerCertificates } from '../../packages/local-api-server/src/local-api-server/server-certificates.js';
import { freePort } from '../support/free-port.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const ISSUER = 'https://kubernetes.default.svc.cluster.local';
const ADMIN_TOKEN = 'end-to-end-admin';

/** Where etcd and kube-apiserver are, as envtest has it; undefined, with the reason printed, when they are not. */
export function assetsDirectory(): string | undefined {
  const directory = process.env['KUBEBUILDER_ASSETS'];
  try {
    if (!directory) throw new Error('KUBEBUILDER_ASSETS is not set');
    for (const name of ['etcd', 'kube-apiserver']) accessSync(join(directory, name), constants.X_OK);
    return directory;
  } catch (error) {
    console.warn(`Skipped: no real kube-apiserver: ${(error as Error).message}`);
    return undefined;
  }
}

/** A real control plane without nodes. */
export interface ControlPlane {
  readonly url: string;
  readonly ca: string;
  readonly adminToken: string;
  /** Ends the API server, and starts another with a signing key that verifies none of the tokens before. */
  rotateSigningKey(): Promise<void>;
}

/** Starts etcd and kube-apiserver; they end with the test. */
export async function startControlPlane(assets: string): Promise<ControlPlane> {
  const directory = temporaryDirectory();
  const inDirectory = (name: string): string => join(directory, name);
  const [etcdPort, peerPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const { ca, certificate, key } = createServerCertificates();
  writeFileSync(inDirectory('tls.crt'), certificate);
  writeFileSync(inDirectory('tls.key'), key, { mode: 0o600 });
  writeFileSync(inDirectory('tokens.csv'), `${ADMIN_TOKEN},admin,admin,system:masters\n`, { mode: 0o600 });

  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  start(join(assets, 'etcd'), [
    `--data-dir=${inDirectory('etcd')}`,
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    '--unsafe-no-fsync=true',
  ]);

  const url = `https://127.0.0.1:${apiPort}`;
  let apiServer: Started | undefined;
  const startApiServer = async (): Promise<void> => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const signingKey = inDirectory('signing.key');
    writeFileSync(signingKey, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    apiServer = start(join(assets, 'kube-apiserver'), [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${apiPort}`,
      `--tls-cert-file=${inDirectory('tls.crt')}`,
      `--tls-private-key-file=${inDirectory('tls.key')}`,
      `--cert-dir=${inDirectory('certs')}`,
      `--token-auth-file=${inDirectory('tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-cluster-ip-range=10.0.0.0/24',
      `--service-account-issuer=${ISSUER}`,
      `--service-account-signing-key-file=${signingKey}`,
      `--service-account-key-file=${signingKey}`,
    ]);
    await untilReady(apiServer, apiPort);
  };
  await startApiServer();
  return {
    url,
    ca,
    adminToken: ADMIN_TOKEN,
    async rotateSigningKey() {
      apiServer?.child.kill('SIGKILL');
      await apiServer?.ended;
      await startApiServer();
    },
  };
}

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly output: () => string;
}

function start(file: string, args: readonly string[]): Started {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-5_000)));
  }
  const ended = new Promise((resolve) => child.once('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended, output: () => output };
}

async function untilReady({ child, output }: Started, port: number): Promise<void> {
  const { get } = await import('node:https');
  for (let attempt = 0; attempt < 600; attempt += 1) {
    const status = await new Promise<number | undefined>((resolve) => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      // Only whether it is up; the tests themselves check the certificate.
      get({ host: '127.0.0.1', port, path: '/readyz', headers, rejectUnauthorized: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on('error', () => resolve(undefined));
    });
    if (status === 200) return;
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`kube-apiserver is not ready:\n${output()}`);
}
