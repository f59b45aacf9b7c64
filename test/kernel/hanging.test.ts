/** A FUSE mount whose server never answers. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { linuxOnly, withHangingMount } from '../support/namespace.js';
import { Program } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

linuxOnly();

test('timers fire and close() resolves while a key, a volume, a group, a directory and a tree do not answer', async (context) => {
  const directory = join(temporaryDirectory(), 'hanging');
  mkdirSync(directory);
  const prefix = withHangingMount(context, directory);
  const program = new Program('test/kernel/programs/hanging.mjs', [directory], { prefix });
  await program.until(/^done$/m);
  program.child.kill('SIGKILL');
  const kinds = ['key', 'volume', 'group', 'directory', 'tree'];
  for (const kind of kinds) expect(program.output).toContain(`${kind} waits, and is closed`);
});
