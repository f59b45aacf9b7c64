import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work`, and runs it again when the server refused the login: either the server has the new password and the
 * file does not yet, or the other way round. A refused login has executed nothing, so this is safe for every query.
 *
 * @param login a `SecretFile` or what `credentials()` makes
 * @param isRefused whether an error means that the login was refused
 */
export async function retryLogin(login, work, isRefused, { timeoutMs = 90_000, pauseMs = 50 } = {}) {
  // kubelet takes up to a minute to project a changed Secret.
  const end = AbortSignal.timeout(timeoutMs);
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isRefused(error) || end.aborted) throw error;
    }
    const pause = new AbortController();
    const change = login.changed({ signal: pause.signal }).catch(() => {});
    await Promise.race([change, sleep(pauseMs)]);
    pause.abort();
  }
}
