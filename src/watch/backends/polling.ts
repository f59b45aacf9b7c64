import type { Clock } from '../../core/ports/clock.js';
import { tickEvery } from '../ticker.js';
import type { WatchBackend } from '../../core/ports/watch-backend.js';

/** The backend `poll`: a hint every `intervalMs`. */
export function pollingBackend(clock: Clock, intervalMs: number): WatchBackend {
  return {
    name: 'poll',
    subscribe(sink, { persistent }) {
      const close = tickEvery({ clock, intervalMs, persistent }, (event) => sink.hint({ event }));
      return { setDirectories: () => [], close };
    },
  };
}
