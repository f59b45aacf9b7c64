/** `--listen`: metrics, probes and status over HTTP. */
import type { Command } from 'commander';

import { listenAddress } from './arguments.js';
import type { Session } from './session.js';

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

/** Serves the state of the components of a session, until the session ends, if that is asked for. */
export async function listen({ listen: address }: ListenFlags, session: Session): Promise<void> {
  if (!address) return;
  const { serve } = await import('./serve.js');
  await serve(address, session);
}
