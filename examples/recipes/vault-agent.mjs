// Files that Vault Agent renders one by one, as one validated group: only a set that matches is used.
import { ResilientWatcher } from 'resilient-watcher';

/**
 * @param paths of the rendered files
 * @param validate takes the texts by path and returns what to use, or throws
 * @param apply called with the result of `validate`
 */
export async function followRendered(paths, validate, apply, onRejected = console.warn) {
  const watcher = new ResilientWatcher(paths);
  watcher.on('change', ({ current }) => {
    let value;
    try {
      const missing = paths.filter((path) => !current.files.get(path)?.content);
      if (missing.length > 0) throw new Error(`not rendered yet: ${missing.join(', ')}`);
      value = validate(
        Object.fromEntries(paths.map((path) => [path, String(current.files.get(path).content)])),
      );
    } catch (error) {
      onRejected(error);
      return;
    }
    apply(value);
  });
  await watcher.start();
  return watcher;
}
