/** A file that is replaced by rename all the time, also where a lookup may miss it meanwhile. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { linuxOnly, skip, withMounts } from '../support/namespace.js';
import { Program } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

linuxOnly();

/** The commands that mount a file system at `./mounted`. */
const MOUNTS = {
  tmpfs: 'mount -t tmpfs tmpfs mounted',
  FUSE: 'bindfs --no-allow-other -o attr_timeout=0,entry_timeout=0,negative_timeout=0 source mounted',
};

for (const [type, mount] of Object.entries(MOUNTS)) {
  test(`a file that is replaced every 5 ms is in each first report and each result of readVolume(), on ${type}`, async (context) => {
    const directory = temporaryDirectory();
    for (const name of ['source', 'mounted']) mkdirSync(join(directory, name));
    const prefix = withMounts(context, `cd ${directory} && ${mount} && cd - > /dev/null`);
    const [command = '', ...args] = prefix;
    const tried = spawnSync(command, [...args, 'true'], { encoding: 'utf8' });
    if (tried.status !== 0) skip(context, `${type} cannot be mounted here: ${tried.stderr}`);
    const program = new Program('test/kernel/programs/busy.mjs', [join(directory, 'mounted')], { prefix });
    expect(await program.exit).toBe(0);
    expect(new Set(program.output.trim().split('\n'))).toEqual(
      new Set(['first report: complete', 'read: complete']),
    );
  });
}
