// Files that Vault Agent renders one by one, as one validated group: only a set that matches is used.
import { ResilientWatcher } from 'resilient-watcher';

/**
 * @param paths of the rendered files
 * @param validate takes the texts in the order of `paths` and returns what to use, or throws
 * @param apply called with the result of `validate`
 */
export async function followRendered<T>(
  paths: readonly string[],
  validate: (texts: readonly string[]) => T,
  apply: (value: T) => void,
  onRejected: (error: unknown) => void = console.warn,
): Promise<ResilientWatcher> {
  const watcher = new ResilientWatcher(paths);
  watcher.on('change', ({ current }) => {
    let value: T;
    try {
      const texts = paths.map((path) => current.files.get(path)?.content?.toString() ?? '');
      const missing = paths.filter((_, index) => texts[index] === '');
      if (missing.length > 0) throw new Error(`not rendered yet: ${missing.join(', ')}`);
      value = validate(texts);
    } catch (error) {
      onRejected(error);
      return;
    }
    apply(value);
  });
  await watcher.start();
  return watcher;
}
