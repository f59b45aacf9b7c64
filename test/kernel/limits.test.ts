/** The two limits of inotify, in a user namespace of the watching process; all files are out here. */
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { setLimit, skip, underLimit, type InotifyLimit } from '../support/namespace.js';
import { WatchingProgram } from '../support/program.js';
import { some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const limits: Record<InotifyLimit, { code: string; sysctl: string }> = {
  max_inotify_instances: {
    code: 'ERR_BACKEND_LIMIT',
    sysctl: 'fs.inotify.max_user_instances',
  },
  max_inotify_watches: {
    code: 'ERR_BACKEND_LIMIT',
    sysctl: 'fs.inotify.max_user_watches',
  },
};

const cases = (Object.keys(limits) as InotifyLimit[]).flatMap((limit) =>
  (['fs', 'auto', 'parcel'] as const).map((backend) => ({ backend, limit })),
);

test.for(some(cases, 2))(
  '$backend with $limit exhausted: polls, emits the reason once, and recovers when the limit is raised',
  async ({ backend, limit }, context) => {
    const prefix = underLimit(limit, 0);
    if (!prefix) skip(context, '`unshare -Ur` is not permitted, or the kernel has no such limit');
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ key: 'v1' });
    const options = { backend, pollIntervalMs: 20, maxRestartDelayMs: 100, resyncIntervalMs: 0 };
    const process = new WatchingProgram(volume.path('key'), options, prefix);
    const { transcript } = process;

    const started = await transcript.until({ event: 'started' });
    expect(started).toMatchObject({ state: 'degraded', backend: 'poll', degraded: limits[limit] });
    volume.publish({ key: 'v2' });
    expect(await transcript.until({ event: 'change', content: 'v2' })).toMatchObject({ cause: 'poll' });
    await transcript.until({ event: 'restart', attempt: 3 });
    volume.publish({ key: 'v3' });
    await transcript.until({ event: 'change', content: 'v3' });

    setLimit(process.child.pid, limit, 1_000);
    await transcript.until({ event: 'recovered' });
    // The checks of the recovery itself may find the first ones. Nobody polls any more, so it is the kernel or nobody.
    const native = backend === 'parcel' ? 'parcel' : 'fs';
    let cause: unknown;
    for (let version = 4; cause !== native; version += 1) {
      volume.publish({ key: `v${version}` });
      ({ cause } = await transcript.until({ event: 'change', content: `v${version}` }));
    }
    process.close();
    expect((await process.finished()).code).toBe(0);
    expect(transcript.of('degraded')).toEqual([{ event: 'degraded', ...limits[limit] }]);
    expect(transcript.of('recovered')).toHaveLength(1);
    expect(transcript.of('error')).toEqual([]);
  },
);
