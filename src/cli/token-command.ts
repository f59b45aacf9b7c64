import { InvalidArgumentError, type Command } from 'commander';

import { isoTime } from '../core/clock.js';
import { fileSink, TokenFile, TokenRefresher, type TokenSink } from '../index.js';
import { kubeconfigSink, tokenRequestClient } from '../kubernetes.js';
import { duration, each, httpUrl, text } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Invocation } from './invocation.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Session } from './session.js';

const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

interface TokenFlags extends ListenFlags {
  readonly out: string;
  readonly serviceAccount?: string;
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

function addTokenFlags(command: Command): void {
  command
    .requiredOption('--out <file>', 'the file to write, of mode 0600; always replaced as a whole', text)
    .option('--service-account <namespace/name>', 'of this ServiceAccount (default: that of the pod)', text)
    .option('--audience <name>', 'for this audience (repeatable; default: the API server)', each(text))
    .option(
      '--expiration <duration>',
      'how long a token is to be valid, at least 10m (default: 24h)',
      lifetime,
    )
    .option(
      '--kubeconfig <file>',
      'reach the API server by this kubeconfig, with @kubernetes/client-node (default: as a pod does)',
      text,
    )
    .option('--once', 'exit when the file has been written, or with 1 when that fails');
  addListenFlag(command);
}

/** `token`: keeps a fresh ServiceAccount token in a file. */
export function addTokenCommand(command: Command): void {
  command.description('keep a fresh ServiceAccount token in a file');
  addTokenFlags(command);
  command.addHelpText(
    'after',
    `
The token is requested from the API server, and again long before it expires. A ServiceAccount may request its own tokens
with "create" on serviceaccounts/token.

Examples:
  resilient-watcher token --out /shared/token --audience vault --expiration 1h
  resilient-watcher token --out token --service-account team/builder --kubeconfig ~/.kube/config --once`,
  );
}

/** `kubeconfig`: keeps a kubeconfig with a fresh token, as CNI plugins need it. */
export function addKubeconfigCommand(command: Command): void {
  command
    .description('keep a kubeconfig with a fresh ServiceAccount token')
    .requiredOption('--server <url>', 'the API server in it, as in https://10.0.0.1:6443', httpUrl)
    .requiredOption('--ca-file <file>', 'the certificates of its authority, read for each token', text);
  addTokenFlags(command);
  command.addHelpText(
    'after',
    `
Example:
  resilient-watcher kubeconfig --out /host/etc/cni/net.d/calico-kubeconfig --service-account kube-system/calico-cni-plugin \\
    --ca-file /var/run/secrets/kubernetes.io/serviceaccount/ca.crt --server https://10.0.0.1:6443`,
  );
}

/** Runs `token` until the session ends. */
export async function runToken({ flags, session }: Invocation<TokenFlags>): Promise<void> {
  await refresh(flags, fileSink(flags.out, { createDirectory: true }), session);
}

/** Runs `kubeconfig` until the session ends. */
export async function runKubeconfig({ flags, session }: Invocation<KubeconfigFlags>): Promise<void> {
  const { out, server, caFile } = flags;
  await refresh(flags, kubeconfigSink({ path: out, server, caFile, createDirectory: true }), session);
}

async function refresh(flags: TokenFlags, sink: TokenSink, session: Session): Promise<void> {
  const { output, signal } = session;
  const { audience: audiences, expiration: expirationSeconds, kubeconfig: kubeConfig, once } = flags;
  const account = await serviceAccountOf(flags);
  if (kubeConfig === undefined && !process.env['KUBERNETES_SERVICE_HOST']) {
    throw new ExitError(
      EXIT.usage,
      'there is no KUBERNETES_SERVICE_HOST, so this is not a pod; give --kubeconfig',
    );
  }
  const refresher = session.closeAtEnd(
    new TokenRefresher({
      client: tokenRequestClient({ ...account, kubeConfig }),
      audiences,
      expirationSeconds,
      sinks: [sink],
      signal,
    }),
  );
  session.endOnSignals();
  await listen(flags, session);
  refresher.on('delivered', ({ sink: to, token }) => {
    const expiresAt = Number.isFinite(token.expiresAt) ? isoTime(token.expiresAt) : null;
    const validity = expiresAt === null ? 'never expires' : `valid until ${expiresAt}`;
    output.log('info', 'delivered', `${to}: written, ${validity}`, { sink: to, expiresAt });
    if (once) session.end(EXIT.ok);
  });
  refresher.on('retry', ({ error, delayMs }) => {
    const next = once ? '' : `; next attempt in ${Math.round(delayMs)} ms`;
    output.log('warn', 'retry', `${error.message}${next}`, { code: error.code });
    if (once) session.end(EXIT.failed);
  });
  refresher.on('undelivered', ({ sink: to, error }) => {
    output.log('warn', 'undelivered', error.message, { sink: to, code: error.code });
    if (once) session.end(EXIT.failed);
  });
  refresher.on('expired', ({ error }) =>
    output.log('error', 'expired', `the token has expired: ${error.message}`),
  );
  refresher.on('error', (error) => {
    output.log('error', 'error', error.message);
    // This error does not recover, so the program cannot do its work.
    session.end(EXIT.failed);
  });
  await refresher.start();
}

interface ServiceAccountName {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** The ServiceAccount of the flag, or that of the pod, from the subject of its token. */
async function serviceAccountOf(flags: TokenFlags): Promise<ServiceAccountName> {
  const given = flags.serviceAccount;
  if (given !== undefined) {
    const [, namespace, serviceAccount] = /^([^/]+)\/([^/]+)$/.exec(given) ?? [];
    if (namespace !== undefined && serviceAccount !== undefined) return { namespace, serviceAccount };
    throw new ExitError(
      EXIT.usage,
      '--service-account must be <namespace>/<name>, as in kube-system/calico-cni-plugin',
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
