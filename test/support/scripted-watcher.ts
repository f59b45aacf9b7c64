import type { TokenFileChange, TokenWatcher, TokenWatcherFactory } from 'resilient-watcher';

/** Watchers of one token file that see what the test says, and break when it says so. */
export class ScriptedWatchers {
  /** Rejections of the next starts; an `undefined` never settles. */
  readonly refusals: (Error | undefined)[] = [];
  readonly open = new Set<TokenWatcher>();
  made = 0;
  #text: string | undefined;
  readonly #listeners = new Map<TokenWatcher, Map<string, (detail?: unknown) => void>>();

  constructor(text?: string) {
    this.#text = text;
  }

  readonly factory: TokenWatcherFactory = () => {
    this.made += 1;
    const listeners = new Map<string, (detail?: unknown) => void>();
    const watcher: TokenWatcher = {
      on: (event: string, listener: (detail: never) => void) => listeners.set(event, listener as never),
      start: async () => {
        if (this.refusals.length > 0) {
          const refusal = this.refusals.shift();
          if (refusal) throw refusal;
          await new Promise(() => {});
        }
        this.open.add(watcher);
        if (this.#text !== undefined) listeners.get('change')?.(changeTo(this.#text));
      },
      close: () => Promise.resolve(void this.open.delete(watcher)),
    };
    this.#listeners.set(watcher, listeners);
    return watcher;
  };

  /** The file has this text now, or is gone, and an event came. */
  show(text: string | undefined): void {
    this.#text = text;
    this.tell('change', changeTo(text));
  }

  /** The watcher ends by itself. */
  end(): void {
    const ended = [...this.open];
    this.open.clear();
    for (const watcher of ended) this.#listeners.get(watcher)?.get('close')?.();
  }

  tell(event: string, detail?: unknown): void {
    for (const watcher of this.open) this.#listeners.get(watcher)?.get(event)?.(detail);
  }
}

function changeTo(text: string | undefined): TokenFileChange {
  return { current: { content: text === undefined ? undefined : Buffer.from(text) } };
}
