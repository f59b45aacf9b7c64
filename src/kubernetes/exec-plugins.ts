import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';

import type { KubeConfig } from '@kubernetes/client-node';

import { processState } from '../core/process-state.js';
import { onAbort } from '../core/scheduling/abort.js';

/** How client-node runs the plugins of a kubeconfig (`exec`); private, because it has no public way to end one. */
interface Private {
  readonly authenticators?: readonly {
    execFn?: (command: string, args?: readonly string[], options?: SpawnOptions) => ChildProcess;
  }[];
}

/** A plugin that is given up may still end a login, which the next one then finds. */
const MOST_GIVEN_UP = 4;

/** Plugins that still run although nobody waits for them any longer. */
const givenUp = processState('plugins', () => new Set<ChildProcess>());

/**
 * When the signal aborts, the plugins that a `KubeConfig` has run since then no longer keep the process alive. Of those
 * that hang, the first few are left running, and later ones are killed.
 */
export function boundPlugins(kubeConfig: KubeConfig, signal: AbortSignal): void {
  const { authenticators = [] } = kubeConfig as unknown as Private;
  for (const authenticator of authenticators) {
    if (!authenticator.execFn) continue;
    authenticator.execFn = (command, args = [], options = {}) => {
      const plugin = spawn(command, args, options);
      const forget = onAbort(signal, () => giveUp(plugin));
      plugin.once('exit', forget).once('error', forget);
      return plugin;
    };
  }
}

function giveUp(plugin: ChildProcess): void {
  for (const part of [plugin, plugin.stdout, plugin.stderr] as { unref?(): void }[]) part.unref?.();
  if (givenUp().size >= MOST_GIVEN_UP) {
    plugin.kill('SIGKILL');
    return;
  }
  givenUp().add(plugin);
  plugin.once('exit', () => givenUp().delete(plugin));
}
