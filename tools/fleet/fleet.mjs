// 48 hours in the life of 10 000 token refreshers, all of them real, on one clock.
import { parentPort, workerData } from 'node:worker_threads';

import { TokenRefresher, TokenError } from 'resilient-watcher';
import { mintTestToken } from 'resilient-watcher/testing';

import { randomOf } from '../../test/support/seeded-random.mjs';
import { FleetClock } from './fleet-clock.mjs';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The default of the option `wakeJitterMs`. */
const WAKE_JITTER_MS = 5 * SECOND;

/** What happens, and when. */
export const story = {
  nodes: 10_000,
  hours: 48,
  /** All start within a minute, as after a power cut. */
  startMs: MINUTE,
  rotationMs: 14 * HOUR,
  /** A wave of the fleet without jitter falls into it, 18 h after the rotation: its worst case. */
  outageMs: 31.9 * HOUR,
  outageLastsMs: 30 * MINUTE,
  /** Who uses a token finds out that it is refused with the next request, within this time. */
  noticeMs: 10 * SECOND,
  /** kubelet projects at 80 % of 3 607 s, and up to 90 s late after an outage. */
  projectionMs: 0.8 * 3_607 * SECOND,
  projectionLateMs: 90 * SECOND,
};

/**
 * One node in ten is a pod: it asks with its projected token and follows the file, so after the rotation of the signing
 * key it is refused until kubelet has projected a new one. The others ask with a certificate.
 * @param options of every refresher, and whether there is `jitter` in them.
 * @returns requests in each second, and for each node how long after the rotation it had a good token, ms.
 */
async function liveThrough({ jitter: hasJitter = true, ...options }) {
  const clock = new FleetClock(Date.UTC(2024, 0, 1), story.hours * HOUR);
  const random = randomOf(1);
  const perSecond = new Uint32Array(story.hours * 3600);
  const recoveredMs = [];
  const isOut = () => {
    const since = clock.monotonic() - story.outageMs;
    return since >= 0 && since < story.outageLastsMs;
  };
  const isRotated = () => clock.monotonic() >= story.rotationMs;
  const refused = new TokenError('ERR_TOKEN_REQUEST', '401 Unauthorized');
  const unreachable = new TokenError('ERR_TOKEN_REQUEST', 'connect ECONNREFUSED');

  let minted = { at: -1, answer: undefined };
  const mint = (expirationSeconds) => {
    const iat = Math.floor(clock.now() / SECOND);
    // One token for all who ask in the same second: making them is not what is simulated.
    if (minted.at !== iat) {
      const exp = iat + expirationSeconds;
      minted = {
        at: iat,
        answer: { token: mintTestToken({ iat, nbf: iat, exp }), expirationTimestamp: exp * SECOND },
      };
    }
    return minted.answer;
  };

  const refreshers = Array.from({ length: story.nodes }, (_, index) => {
    const isPod = index % 10 === 0;
    let projectedAfterRotation = false;
    let isRecovered = false;
    const client = {
      requestToken: async ({ expirationSeconds }) => {
        perSecond[Math.floor(clock.monotonic() / SECOND)] += 1;
        if (isOut()) throw unreachable;
        if (isPod && isRotated() && !projectedAfterRotation) throw refused;
        if (isRotated() && !isRecovered) {
          isRecovered = true;
          recoveredMs.push(clock.monotonic() - story.rotationMs);
        }
        return mint(expirationSeconds);
      },
    };
    const refresher = new TokenRefresher({
      random: hasJitter ? random : () => 0,
      ...options,
      client,
      clock,
      // A change of the file is acted for below, without files.
      tokenFile: false,
    });
    clock.schedule(() => void refresher.start(), random() * story.startMs);
    clock.schedule(
      () => void refresher.get().then((token) => void refresher.reportUnauthorized(token)),
      story.rotationMs + random() * story.noticeMs,
    );
    if (isPod) {
      const project = () => {
        if (isOut()) {
          const restMs = story.outageMs + story.outageLastsMs - clock.monotonic();
          clock.schedule(project, restMs + random() * story.projectionLateMs);
          return;
        }
        projectedAfterRotation = isRotated();
        clock.schedule(() => void refresher.refresh(), random() * (options.wakeJitterMs ?? WAKE_JITTER_MS));
        clock.schedule(project, story.projectionMs);
      };
      clock.schedule(project, story.startMs + random() * story.projectionMs);
    }
    return refresher;
  });

  await clock.run();
  await Promise.all(refreshers.map((refresher) => refresher.close()));
  return { perSecond, recoveredMs: Float64Array.from(recoveredMs).sort() };
}

// Each fleet lives in a thread of its own.
if (parentPort) parentPort.postMessage(await liveThrough(workerData));
