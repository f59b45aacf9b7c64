import type { Clock } from '../../core/clock.js';
import type { WatchBackend } from '../../core/watch-backend.js';

/** The backend `poll`: says "look again" every `intervalMs`, and knows nothing. */
export function pollingBackend(clock: Clock, intervalMs: number): WatchBackend {
  return {
    name: 'poll',
    subscribe(sink, { persistent }) {
      const next = (): void => {
        timer = clock.schedule(tick, intervalMs, { ref: persistent });
      };
      const tick = (): void => {
        sink.hint();
        next();
      };
      let timer = clock.schedule(tick, intervalMs, { ref: persistent });
      return {
        setDirectories: () => [],
        close: () => timer.cancel(),
      };
    },
  };
}
