import { stat } from 'node:fs/promises';

import { InvalidArgumentError, type Command } from 'commander';
import { fileSink, TokenFile, TokenRefresher, type TokenSink } from 'resilient-watcher';
import { isoTime } from 'resilient-watcher/internal';
import { kubeconfigSink, tokenRequestClient } from 'resilient-watcher/kubernetes';

import { checkCluster, duration, each, httpUrl, isInPod, KUBECONFIG_FLAG, text } from './arguments.js';
import { EXIT, UsageError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Execution } from './execution.js';
import type { Invocation, Subcommand } from './subcommand.js';

const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

interface ServiceAccountName {
  readonly namespace: string;
  readonly serviceAccount: string;
}

interface TokenFlags extends ListenFlags {
  readonly out: string;
  readonly serviceAccount?: ServiceAccountName;
  readonly audience?: readonly string[];
  readonly expiration?: number;
  readonly kubeconfig?: string;
  readonly once?: true;
}

interface KubeconfigFlags extends TokenFlags {
  readonly caFile: string;
  readonly server: string;
}

/** Seconds; the API server refuses less than 10 minutes. */
function lifetime(text: string): number {
  const seconds = Math.ceil(duration(text) / 1_000);
  if (seconds < 600) throw new InvalidArgumentError('It must be at least 10m.');
  return seconds;
}

function account(text: string): ServiceAccountName {
  const [, namespace, serviceAccount] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (namespace !== undefined && serviceAccount !== undefined) return { namespace, serviceAccount };
  throw new InvalidArgumentError('It must be <namespace>/<name>, as in kube-system/calico-cni-plugin.');
}

function addTokenFlags(command: Command): void {
  command
    .requiredOption('--out <file>', 'the file to write, with mode 0600; replaced atomically', text)
    .option(
      '--service-account <namespace/name>',
      'the ServiceAccount of the token (default: that of the pod)',
      account,
    )
    .option('--audience <name>', 'an audience of the token (repeatable; default: the API server)', each(text))
    .option('--expiration <duration>', 'the lifetime to request, at least 10m (default: 24h)', lifetime)
    .option(...KUBECONFIG_FLAG)
    .option('--once', 'exit after writing the file, with 1 if that fails');
  addListenFlag(command);
}

function addTokenCommand(command: Command): void {
  command.description('keep a fresh ServiceAccount token in a file');
  addTokenFlags(command);
  command.addHelpText(
    'after',
    `
The token is requested from the API server, and renewed long before it expires. To request a token, an account needs the
verb "create" on serviceaccounts/token.

Examples:
  resilient-watcher token --out /shared/token --audience vault --expiration 1h
  resilient-watcher token --out token --service-account team/builder --kubeconfig ~/.kube/config --once`,
  );
}

function addKubeconfigCommand(command: Command): void {
  command
    .description('keep a kubeconfig with a fresh ServiceAccount token')
    .requiredOption('--server <url>', 'the URL of the API server, such as https://10.0.0.1:6443', httpUrl)
    .requiredOption(
      '--ca-file <file>',
      'the CA certificates of that server, read again for each token',
      text,
    );
  addTokenFlags(command);
  command.addHelpText(
    'after',
    `
Example:
  resilient-watcher kubeconfig --out /host/etc/cni/net.d/calico-kubeconfig --service-account kube-system/calico-cni-plugin \\
    --ca-file /var/run/secrets/kubernetes.io/serviceaccount/ca.crt --server https://10.0.0.1:6443`,
  );
}

/** Runs `token` until the execution ends. */
async function runToken({ flags, execution }: Invocation<TokenFlags>): Promise<void> {
  await refresh(flags, fileSink(flags.out, { createDirectory: true }), execution);
}

/** Runs `kubeconfig` until the execution ends. */
async function runKubeconfig({ flags, execution }: Invocation<KubeconfigFlags>): Promise<void> {
  const { out, server, caFile } = flags;
  await refresh(flags, kubeconfigSink({ path: out, server, caFile, createDirectory: true }), execution);
}

/** @throws {ExitError} (rejects) for a pipe or a device, such as /dev/stdout, which cannot be replaced. */
async function checkOut(out: string): Promise<void> {
  const stats = await stat(out).catch(() => undefined);
  if (!stats || stats.isFile() || stats.isDirectory()) return;
  const what = `--out ${out} is a pipe, a socket or a device, and cannot be replaced`;
  throw new UsageError(`${what}; write to a file, with --once, and read that`);
}

async function refresh(flags: TokenFlags, sink: TokenSink, execution: Execution): Promise<void> {
  await checkOut(flags.out);
  const { output, signal } = execution;
  const { clock, env } = execution.io;
  const { audience: audiences, expiration: expirationSeconds, kubeconfig: kubeConfig, once } = flags;
  checkCluster(kubeConfig, env);
  const refresher = execution.closeAtEnd(
    new TokenRefresher({
      client: tokenRequestClient({ ...(flags.serviceAccount ?? (await ownAccount())), kubeConfig, clock }),
      name: flags.out,
      audiences,
      expirationSeconds,
      sinks: [sink],
      // Elsewhere the path may lead through a link, as `/var/run` is, and what is behind a link may be on its way.
      ...(!isInPod(env) && { tokenFile: false as const }),
      signal,
      clock,
    }),
  );
  execution.endOnSignals();
  await listen(flags, execution);
  refresher.on('delivered', ({ sink: to, token }) => {
    const expiresAt = Number.isFinite(token.expiresAt) ? isoTime(token.expiresAt) : null;
    const validity = expiresAt === null ? 'never expires' : `valid until ${expiresAt}`;
    output.log('info', 'delivered', `${to}: written, ${validity}`, { sink: to, expiresAt });
    if (once) execution.end(EXIT.ok);
  });
  if (once) {
    for (const event of ['retry', 'undelivered'] as const)
      refresher.on(event, ({ error }) => execution.end(EXIT.failed, error.message));
  }
  // It does not recover, so the program cannot do its work.
  refresher.on('error', () => execution.end(EXIT.failed));
  // It fails only with what `error` has said.
  await refresher.start().catch(() => {});
}

/** The ServiceAccount of the pod, which is the subject of its token. */
async function ownAccount(): Promise<ServiceAccountName> {
  const file = new TokenFile(POD_TOKEN);
  const own = await file.get().catch(() => undefined);
  await file.close();
  const subject = /^system:serviceaccount:([^:]+):([^:]+)$/;
  const [, namespace, serviceAccount] = subject.exec(own?.subject ?? '') ?? [];
  if (namespace !== undefined && serviceAccount !== undefined) return { namespace, serviceAccount };
  throw new UsageError(`there is no ServiceAccount token in ${POD_TOKEN}; give --service-account`);
}

/** `token`: keeps a fresh ServiceAccount token in a file. */
export const token: Subcommand<TokenFlags> = { describe: addTokenCommand, run: runToken };

/** `kubeconfig`: keeps a kubeconfig with a fresh token, as CNI plugins need it. */
export const kubeconfig: Subcommand<KubeconfigFlags> = { describe: addKubeconfigCommand, run: runKubeconfig };
