/** Output that is read late, not at all, or no longer. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { event } from '../../../../test/support/events.js';
import { startCli, type Program } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

const watch = (path: string, ...args: string[]): Program => startCli(['watch', path, '--json', ...args]);

test('it continues to act when the reader of its output has closed the pipe', async () => {
  const mounted = volume();
  const directory = temporaryDirectory();
  const program = watch(mounted.directory, '--exec', `cp ${mounted.path('n')} ${directory}/copy; echo acted`);
  await event(program, 'ready');
  program.child.stdout.destroy();
  mounted.publish({ n: '1' });
  await program.until(/acted/);
  expect(readFileSync(join(directory, 'copy'), 'utf8')).toBe('1');
});

test('it continues to act, and ends on SIGTERM, while nobody reads the pipe of its output', async (context) => {
  const directory = temporaryDirectory();
  const mounted = volume();
  // The program itself holds the end of the pipe from which nothing is read.
  const script = `mkfifo ${directory}/pipe && exec 4<>${directory}/pipe && exec "$0" "$@" 2>${directory}/pipe`;
  const acted = join(directory, 'acted');
  const args = ['watch', mounted.directory, '--initial', '--exec', `cat > /dev/null; echo x >> ${acted}`];
  const program = startCli(args, { prefix: ['/bin/sh', '-c', script] });
  const times = (): number => (existsSync(acted) ? readFileSync(acted, 'utf8').length / 2 : 0);
  if (process.platform !== 'linux') context.skip();
  await expect.poll(times).toBe(1);
  // One line of its output is longer than a pipe.
  const keys = Array.from({ length: 1_000 }, (_, index) => [`${'k'.repeat(150)}${index}`, 'v']);
  mounted.publish(Object.fromEntries(keys) as Record<string, string>);
  await expect.poll(times).toBe(2);
  mounted.publish({ n: '1' });
  await expect.poll(times).toBe(3);
  program.child.kill('SIGTERM');
  expect(await program.exit).toBe(0);
});
