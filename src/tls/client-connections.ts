/** How clients end connections when a CA was removed. */
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

import { systemClock } from '../core/clock.js';
import { DRAIN_MS } from './server-connections.js';

/** Destroys what is still open in 30 s. */
export function endLater(connections: readonly { destroy(): unknown }[]): void {
  const end = (): void => connections.forEach((connection) => void connection.destroy());
  systemClock.schedule(end, DRAIN_MS, { ref: false });
}

/** Until then, nothing of a request has been sent. */
export function isInHandshake(socket: Duplex): boolean {
  return socket instanceof TLSSocket && socket.getPeerFinished() === undefined;
}
