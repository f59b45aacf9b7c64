import type { Command } from 'commander';

import { fileSink, TokenFile, TokenRefresher, type TokenSink } from '../index.js';
import { kubeconfigSink, tokenRequestClient } from '../kubernetes.js';
import { duration, each } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Session } from './session.js';

const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

interface TokenFlags extends ListenFlags {
  readonly out: string;
  readonly serviceAccount?: string;
  readonly audience?: readonly string[];
  readonly expiration?: number;
  readonly once?: true;
}

interface KubeconfigFlags extends TokenFlags {
  readonly caFile: string;
  readonly server: string;
}

function addTokenFlags(command: Command): Command {
  return addListenFlag(command)
    .requiredOption('--out <file>', 'the file to write')
    .option('--service-account <namespace/name>', 'for this ServiceAccount; default: the one of the pod')
    .option('--audience <name>', 'for this audience (repeatable); default: the API server', each(String))
    .option('--expiration <duration>', 'how long a token is to be valid', duration)
    .option('--once', 'exit when the file has been written');
}

/** `token`: keeps a fresh ServiceAccount token in a file. */
export function addTokenCommand(command: Command): Command {
  return addTokenFlags(command.description('keep a fresh ServiceAccount token in a file'));
}

/** `kubeconfig`: the same in a kubeconfig, as CNI plugins need it. */
export function addKubeconfigCommand(command: Command): Command {
  return addTokenFlags(command.description('keep a fresh ServiceAccount token in a kubeconfig'))
    .requiredOption('--ca-file <file>', "the certificates of the cluster's authority")
    .requiredOption('--server <url>', 'the API server, as in https://10.0.0.1:6443');
}

/** Runs `token` until the session ends. */
export async function runToken(flags: TokenFlags, session: Session): Promise<void> {
  await refresh(flags, fileSink(flags.out), session);
}

/** Runs `kubeconfig` until the session ends. */
export async function runKubeconfig(flags: KubeconfigFlags, session: Session): Promise<void> {
  const { out, server, caFile } = flags;
  await refresh(flags, kubeconfigSink({ path: out, server, caFile }), session);
}

async function refresh(flags: TokenFlags, sink: TokenSink, session: Session): Promise<void> {
  const { output, signal } = session;
  const { namespace, serviceAccount } = await serviceAccountOf(flags);
  const refresher = session.closeAtEnd(
    new TokenRefresher({
      client: tokenRequestClient({ namespace, serviceAccount }),
      audiences: flags.audience,
      ...(flags.expiration !== undefined && { expirationSeconds: flags.expiration / 1_000 }),
      sinks: [sink],
      signal,
    }),
  );
  session.endOnSignals();
  await listen(flags, session);
  refresher.on('delivered', ({ sink: to, token }) => {
    output.log('info', 'delivered', `${to}: token written`, { sink: to, expiresAt: token.expiresAt });
    if (flags.once) session.end(EXIT.ok);
  });
  refresher.on('retry', ({ error, delayMs }) => {
    output.log('warn', 'retry', `${error.message}; next attempt in ${Math.round(delayMs)} ms`, {
      code: error.code,
    });
    if (flags.once) session.end(EXIT.failed);
  });
  refresher.on('undelivered', ({ sink: to, error }) => {
    output.log('warn', 'undelivered', `${to}: ${error.message}`, { sink: to, code: error.code });
    if (flags.once) session.end(EXIT.failed);
  });
  refresher.on('expired', ({ error }) =>
    output.log('error', 'expired', `the token has expired: ${error.message}`),
  );
  refresher.on('error', (error) => output.log('error', 'error', error.message));
  await refresher.start();
}

interface ServiceAccountName {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** As given, or that of the pod, from the subject of its token. */
async function serviceAccountOf(flags: TokenFlags): Promise<ServiceAccountName> {
  const given = flags.serviceAccount;
  if (given !== undefined) {
    const [, namespace, serviceAccount] = /^([^/]+)\/([^/]+)$/.exec(given) ?? [];
    if (namespace !== undefined && serviceAccount !== undefined) return { namespace, serviceAccount };
    throw new ExitError(
      EXIT.usage,
      '--service-account must be <namespace>/<name>, as in kube-system/calico-cni',
    );
  }
  const file = new TokenFile(POD_TOKEN);
  const own = await file.get().catch(() => undefined);
  await file.close();
  const subject = /^system:serviceaccount:([^:]+):([^:]+)$/;
  const [, namespace, serviceAccount] = subject.exec(own?.subject ?? '') ?? [];
  if (namespace !== undefined && serviceAccount !== undefined) return { namespace, serviceAccount };
  throw new ExitError(EXIT.usage, `there is no ServiceAccount token in ${POD_TOKEN}; give --service-account`);
}
