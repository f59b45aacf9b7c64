import type { Clock } from '../../core/clock.js';
import { Ticker } from '../../core/ticker.js';
import type { WatchBackend } from '../../core/watch-backend.js';

/** The backend `poll`: a hint every `intervalMs`. */
export function pollingBackend(clock: Clock, intervalMs: number): WatchBackend {
  return {
    name: 'poll',
    subscribe(sink, { persistent }) {
      const ticker = new Ticker({ clock, intervalMs, persistent }, () => sink.hint());
      ticker.start();
      return {
        setDirectories: () => [],
        close: () => ticker.stop(),
      };
    },
  };
}
