import { InvalidArgumentError, type Command } from 'commander';
import { clusterClient } from 'resilient-watcher/kubernetes';
import { PodSync } from '@resilient-watcher/sync-pods';

import { checkCluster, delay, duration, each, KUBECONFIG_FLAG, text } from './arguments.js';
import { UsageError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Invocation, Subcommand } from './subcommand.js';

interface Flags extends ListenFlags {
  readonly namespace?: readonly string[];
  readonly allNamespaces?: true;
  readonly selector?: string;
  readonly secrets?: true;
  readonly maxPatchesPerSecond?: number;
  readonly burst?: number;
  readonly splay?: number;
  readonly maxDelay?: number;
  readonly kubeconfig?: string;
}

/** That of `PodSync`, as in the help. */
const DEFAULT_MAX_DELAY_MS = 90_000;

function positive(given: string): number {
  const value = Number(given);
  if (/^\d+(\.\d+)?$/.test(given) && value > 0) return value;
  throw new InvalidArgumentError('It must be a positive number.');
}

function addSyncPodsCommand(command: Command): void {
  command
    .description('make kubelet update the files of pods as soon as an object changes')
    .option('--namespace <name>', 'sync the pods of this namespace (repeatable)', each(text))
    .option('--all-namespaces', 'sync the pods of all namespaces that --selector selects')
    .option(
      '--selector <selector>',
      'sync only pods with these labels (default with --all-namespaces: resilient-watcher.dev/sync=true)',
      text,
    )
    .option('--secrets', 'follow Secrets, too; only their metadata is requested')
    .option('--max-patches-per-second <number>', 'the highest rate of patches (default: 50)', positive)
    .option(
      '--burst <number>',
      'how many patches are sent at once after a quiet time (default: 200)',
      positive,
    )
    .option(
      '--splay <duration>',
      "spread the patches of one object's pods over this time (default: 0s)",
      delay,
    )
    .option(
      '--max-delay <duration>',
      'do not patch a pod that has waited for longer; kubelet has updated it by then (default: 90s)',
      duration,
    )
    .option(...KUBECONFIG_FLAG);
  addListenFlag(command);
  command.addHelpText(
    'after',
    `
Run two replicas with the permissions of packages/sync-pods/deploy/kubernetes/sync-pods.yaml. They need no leader.

Examples:
  resilient-watcher sync-pods --namespace shop --secrets
  resilient-watcher sync-pods --all-namespaces --splay 10s --listen :9533`,
  );
}

/** Runs `sync-pods` until the execution ends. */
async function runSyncPods({ flags, execution, paths }: Invocation<Flags>): Promise<void> {
  const { namespace: namespaces, allNamespaces, kubeconfig: kubeConfig, splay, maxDelay } = flags;
  const { output, signal, io } = execution;
  if (paths[0] !== undefined) throw new UsageError(`sync-pods takes no path, got ${paths[0]}`);
  if ((namespaces === undefined) === (allNamespaces === undefined)) {
    throw new UsageError('give either --namespace or --all-namespaces');
  }
  if (splay !== undefined && splay > (maxDelay ?? DEFAULT_MAX_DELAY_MS)) {
    throw new UsageError('--splay must be at most --max-delay');
  }
  checkCluster(kubeConfig, io.env);
  const sync = execution.closeAtEnd(
    new PodSync({
      name: 'sync-pods',
      client: clusterClient({ kubeConfig, clock: io.clock }),
      namespaces,
      selector: flags.selector,
      secrets: flags.secrets,
      maxPatchesPerSecond: flags.maxPatchesPerSecond,
      burst: flags.burst,
      splayMs: splay,
      maxDelayMs: maxDelay,
      signal,
      clock: io.clock,
    }),
  );
  execution.endOnSignals();
  await listen(flags, execution);
  await sync.start();
  const { pods, objects } = sync.status();
  output.log('info', 'listed', `${pods} pods mount ${objects} known objects`, { pods, objects });
}

/** `sync-pods`: patches pods when the objects that they mount change. */
export const syncPods: Subcommand<Flags> = { describe: addSyncPodsCommand, run: runSyncPods };
