import { ListenerError } from '../core/errors/errors.js';
import { callback, flag, required, resolveOptions } from '../core/options/options.js';
import { isSame } from './difference.js';
import type { ConfigChange } from './loader-events.js';

/** Options of `ConfigLoader.select()`. */
export interface SelectOptions {
  /**
   * Whether the listener also gets the first selection: at once if a configuration is loaded, and otherwise when it is.
   * Default false.
   */
  readonly immediate?: boolean | undefined;
}

/** The arguments of `ConfigLoader.select()`. */
export interface Selection<T, S> {
  readonly selector: (config: T) => S;
  readonly listener: (selected: S, previous: S | undefined) => unknown;
  readonly options: SelectOptions | undefined;
}

const fn = required(callback(() => undefined));
const ARGUMENTS = { selector: fn, listener: fn };
const OPTIONS = { immediate: flag(false) };

/**
 * The listener of `change` for a selection. Passes the current selection at once if it is wanted.
 * @param failed receives what the listener rejects with in that call.
 * @throws {TypeError} for a wrong argument or option, and whatever the selector or the listener throws.
 */
export function selectionListener<T, S>(
  { selector, listener, options }: Selection<T, S>,
  current: { readonly config: T } | undefined,
  failed: (error: ListenerError) => void,
): (change: ConfigChange<T>) => unknown {
  resolveOptions('ConfigLoader.select', { selector, listener }, ARGUMENTS, 'argument');
  const { immediate } = resolveOptions('ConfigLoader.select', options, OPTIONS);
  if (immediate && current) {
    const result = listener(selector(current.config), undefined);
    if (result instanceof Promise)
      result.catch((error: unknown) => failed(new ListenerError('change', error)));
  }
  return ({ previous, current: now }) => {
    const selected = selector(now);
    if (previous === undefined) return immediate ? listener(selected, undefined) : undefined;
    const before = selector(previous);
    return isSame(before, selected) ? undefined : listener(selected, before);
  };
}
