import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work`, and repeats it if the server refused the login because the server has the new password before the file
 * does, or the reverse. No query is executed before the login, so repeating is safe.
 *
 * @param login a `SecretFile`, or the result of `credentials()`
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
