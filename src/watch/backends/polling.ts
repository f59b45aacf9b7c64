import type { Clock } from '../../core/clock.js';
import { Ticker, type Ticking } from '../ticker.js';
import type { WatchBackend } from '../../core/watch-backend.js';

/** The backend `poll`: a hint every `intervalMs`. */
export function pollingBackend(clock: Clock, intervalMs: number): WatchBackend {
  return {
    name: 'poll',
    subscribe(sink, { persistent }) {
      const ticking: Ticking = { onTick: (event) => sink.hint({ event }) };
      const options = { clock, intervalMs, persistent };
      Ticker.start(ticking, options);
      return {
        setDirectories: () => [],
        close: () => Ticker.stop(ticking, options),
      };
    },
  };
}
