/** `watch` with real commands, signals and webhooks. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { event, succeededWith } from '../../../test/support/events.js';
import { runMain, startMain, type CommandLine } from './support/command-line.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

/** A mounted volume with the key `n`. */
function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

function watch(paths: readonly string[], ...args: readonly string[]): CommandLine {
  return startMain(['watch', ...paths, '--json', ...args]);
}

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/reload`, requests };
}

test('a command receives the changed keys, but no contents, in its environment and on stdin', async () => {
  const mounted = volume();
  const script = 'echo "env $RW_PATH $RW_KEYS $RW_REVISION $RW_CAUSE"; cat; echo over';
  const program = watch([mounted.directory], '--', '/bin/sh', '-c', script);
  await event(program, 'ready');
  const { revision } = mounted.publish({ n: 'topsecret', added: '1' });
  await program.until(/over\n/);
  const [, environment = '', document = ''] = /env (.*)\n(.*)\nover/s.exec(program.stderr) ?? [];
  expect(environment.split(/[ \n]/).slice(0, 3)).toEqual([mounted.directory, '["added","n"]', revision]);
  expect(JSON.parse(document)).toMatchObject({
    paths: [{ path: mounted.directory, added: ['added'], changed: ['n'], removed: [], revision }],
  });
  expect(program.stderr + program.stdout).not.toContain('topsecret');
});

test('the name of a key cannot read as two', async () => {
  const directory = temporaryDirectory();
  const odd = 'a\nb"c';
  const program = watch([directory], '--', 'printenv', 'RW_KEYS');
  await event(program, 'ready');
  writeFileSync(join(directory, odd), 'x');
  expect(await event(program, 'succeeded')).toMatchObject({ name: 'printenv' });
  await program.until(/^\["a\\nb\\"c"\]$/m);
});

test('a path that does not exist causes a warning, and an action when it is created', async () => {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  const program = watch([mounted.path('n')], '--', 'true');
  expect(await event(program, 'missing')).toMatchObject({ level: 'warn', path: mounted.path('n') });
  const { revision } = mounted.publish({ n: '0' });
  await succeededWith(program, revision);
});

test('without an action it says so, and a change says what has changed', async () => {
  const mounted = volume();
  const program = startMain(['watch', mounted.directory]);
  await program.until(/volume: found: n\n[^]*volume; no action is given, so changes are only printed\n/);
  mounted.publish({ n: '1', added: '' });
  await program.until(/volume: changed: \+added, n\n/);
});

test('an empty directory is reported as empty', async () => {
  const directory = temporaryDirectory();
  const { code, stderr } = await runMain(['watch', directory, '--initial', '--once']);
  expect([code, stderr]).toEqual([0, expect.stringContaining(`${directory}: empty\n`)]);
});

test('the newest of 50 revisions that arrive while a hook hangs and ignores SIGTERM is handled last, after the splay', async () => {
  const directory = temporaryDirectory();
  const mounted = volume();
  const log = join(directory, 'log');
  const hanging = `[ -e "${directory}/open" ] || { trap '' TERM; while :; do sleep 1; done; }`;
  const flags = ['--timeout', '300ms', '--stop-timeout', '100ms', '--splay', '20ms'];
  const script = `echo begun; ${hanging}; echo "$(cat ${mounted.path('n')})" >> ${log}`;
  const program = watch([mounted.directory], ...flags, '--exec', script);
  await event(program, 'ready');
  mounted.publish({ n: '1' });
  await program.until(/begun/);
  for (let n = 2; n <= 50; n += 1) mounted.publish({ n: String(n) });
  writeFileSync(join(directory, 'open'), '');
  await succeededWith(program, mounted.revision);
  const acted = readFileSync(log, 'utf8').split('\n').filter(Boolean);
  expect(acted.at(-1)).toBe('50');
  expect(acted.length).toBeLessThan(50);
});

test('a failing check keeps the action from running, is reported, and heals with the next revision', async () => {
  const mounted = volume();
  const program = watch(
    [mounted.directory],
    '--check',
    `! grep -q bad ${mounted.path('n')}`,
    '--exec',
    'echo acted',
  );
  await event(program, 'ready');
  mounted.publish({ n: 'bad' });
  await event(program, 'rejected');
  expect(program.stderr).not.toContain('acted');
  const { revision } = mounted.publish({ n: 'good' });
  await succeededWith(program, revision);
  expect(program.stderr.match(/acted/g)).toHaveLength(1);
});

test('a hook whose shell dies of SIGTERM at once leaves its children the time to clean up', async () => {
  const directory = temporaryDirectory();
  const mounted = volume();
  const child = `trap 'echo clean > ${directory}/done; exit' TERM; echo ready; while :; do sleep 0.05; done`;
  const program = watch([mounted.directory], '--exec', `/bin/sh -c "${child}"; :`);
  await event(program, 'ready');
  mounted.publish({ n: '1' });
  await program.until(/^ready$/m);
  expect(await program.terminated()).toBe(0);
  expect(existsSync(join(directory, 'done'))).toBe(true);
});

test('of more keys than an environment can hold RW_KEYS has the first ones, and stdin all', async () => {
  const mounted = volume();
  const program = watch(
    [mounted.directory],
    '--exec',
    'printenv RW_KEYS; printf "bytes %s\\n" "$(cat | wc -c)"',
  );
  await event(program, 'ready');
  const names = Array.from({ length: 2_000 }, (_, index) => `${'k'.repeat(150)}${index}`);
  mounted.publish(Object.fromEntries(names.map((name) => [name, 'v'])));
  const [, bytes] = await program.until(/bytes (\d+)/);
  expect(Number(bytes)).toBeGreaterThan(300_000);
  const [keys = ''] = await program.until(/^\[.*\]$/m);
  expect(['n', ...names]).toEqual(expect.arrayContaining(JSON.parse(keys) as string[]));
  expect(keys.length).toBeGreaterThan(60_000);
});

describe('signals', () => {
  test('a process is found by its PID file, even if that is missing or empty at first', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'pid');
    const mounted = volume();
    const target = spawn('/bin/sh', ['-c', 'trap "echo hup" HUP; echo up; while :; do sleep 0.05; done']);
    onTestFinished(() => void target.kill('SIGKILL'));
    let output = '';
    target.stdout.on('data', (chunk) => (output += String(chunk)));
    await expect.poll(() => output).toContain('up');
    const program = watch([mounted.directory], '--signal', 'HUP', '--pid-file', file);
    await event(program, 'ready');
    mounted.publish({ n: '1' });
    await event(program, 'failed', ({ message }) => String(message).includes('the file does not exist'));
    writeFileSync(file, '');
    mounted.publish({ n: '2' });
    await event(program, 'failed', ({ message }) =>
      String(message).includes('does not contain a process ID'),
    );
    writeFileSync(file, `${target.pid}\n`);
    mounted.publish({ n: '3' });
    await succeededWith(program, mounted.revision);
    await expect.poll(() => output).toContain('hup');
  });

  test('a process that has ended is a failure, with exit code 1 under --exit-on-error', async () => {
    const { pid } = spawnSync('true');
    const file = join(temporaryDirectory(), 'pid');
    writeFileSync(file, String(pid));
    const mounted = volume();
    const program = watch([mounted.directory], '--signal', 'HUP', '--pid-file', file, '--exit-on-error');
    await event(program, 'ready');
    mounted.publish({ n: '1' });
    expect(await program.exit).toBe(1);
    expect(await event(program, 'failed')).toMatchObject({ attempt: 1, retryDelayMs: null });
    const failed = await event(program, 'error');
    expect(failed).toMatchObject({ level: 'error' });
    expect(failed['message']).toContain(`process ${pid} does not exist`);
  });
});

describe('webhooks', () => {
  test('one that never answers is aborted after --timeout and called again with the newest revision', async () => {
    let isHanging = true;
    const bodies: string[] = [];
    const { url } = await serve((request, response) => {
      if (isHanging) return;
      request.setEncoding('utf8').on('data', (chunk: string) => bodies.push(chunk));
      request.on('end', () => response.end());
    });
    const mounted = volume();
    const program = watch([mounted.directory], '--timeout', '200ms', '--webhook', url);
    await event(program, 'ready');
    mounted.publish({ n: '1' });
    await event(program, 'failed', ({ error }) => (error as { code: string }).code === 'ERR_ACTION_TIMEOUT');
    isHanging = false;
    mounted.publish({ n: '2' });
    await succeededWith(program, mounted.revision);
    expect(bodies.at(-1)).toContain(mounted.revision);
  });

  test('the method and the credentials of the URL are sent, and nothing secret in the URL is printed', async () => {
    const { url, requests } = await serve((_, response) => void response.end());
    const mounted = volume();
    const withPassword = url.replace('http://', 'http://me:hidden@');
    const program = watch(
      [mounted.directory],
      ...['--webhook', `${withPassword}?key=hidden`, '--webhook-method', 'PUT', '--log-level', 'debug'],
    );
    await event(program, 'ready');
    mounted.publish({ n: '1' });
    await succeededWith(program, mounted.revision);
    const basic = `Basic ${Buffer.from('me:hidden').toString('base64')}`;
    expect(requests[0]).toMatchObject({
      method: 'PUT',
      headers: { authorization: basic, 'content-type': 'application/json' },
    });
    expect(program.stdout + program.stderr).not.toContain('hidden');
  });
});

test('a path that changes again while others are waited for does not put the action off', async () => {
  const [a, b] = [volume(), volume()];
  const clock = new FakeClock();
  const args = ['watch', a.directory, b.directory, '--settle', '1h', '--json', '--', 'true'];
  const program = startMain(args, { clock });
  await event(program, 'ready');
  a.publish({ n: '0', first: '1' });
  await event(program, 'change', ({ added }) => String(added) === 'first');
  await clock.advance(3_000_000);
  const { revision } = a.publish({ n: '0', first: '1', second: '2' });
  await event(program, 'change', ({ added }) => String(added) === 'second');
  await clock.advance(600_000);
  await succeededWith(program, revision);
});

test('with --initial one action handles all paths, with the cause `start`, and --once ends after it', async () => {
  const [a, b] = [volume(), volume()];
  const command = ['/bin/sh', '-c', 'echo "acted [$RW_PATH] on $RW_CAUSE"'];
  const program = watch([a.directory, b.directory], '--initial', '--once', '--', ...command);
  expect(await program.exit).toBe(0);
  const { stderr, stdout } = await program.finished();
  const [, paths = ''] = /acted \[([^]*)\] on start\n/.exec(stderr) ?? [];
  expect(paths.split('\n').sort()).toEqual([a.directory, b.directory].sort());
  expect(stdout).not.toContain('missing-program');
});

test('what editors leave beside a file, and what --ignore matches, causes no action; a key of a volume does', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'app.yaml'), '0');
  mkdirSync(join(directory, 'cache'));
  const exec = ['--exec', 'echo "acted on $RW_KEYS"', '--ignore', 'cache', '--ignore', '**/*.tmp'];
  const program = startMain(['watch', directory, '--recursive', ...exec]);
  await program.until(/watching/);
  const leftovers = ['.app.yaml.swp', '4913', 'app.yaml~', '.#app.yaml', '#app.yaml#', 'x.tmp', 'cache/x'];
  for (const name of leftovers) {
    writeFileSync(join(directory, name), 'x');
    await program.until(new RegExp(`INFO.*${name.replaceAll('.', '\\.')}`));
  }
  writeFileSync(join(directory, 'app.yaml'), '1');
  await program.until(/acted on \["app.yaml"\]/);
  expect(program.stderr.match(/acted on/g)).toHaveLength(1);

  const mounted = volume();
  const other = startMain(['watch', mounted.directory, ...exec]);
  await other.until(/watching/);
  mounted.publish({ n: '0', '4913': 'x' });
  await other.until(/acted on \["4913"\]/);
});

test('--poll is how often it checks, and nothing else checks in between', async () => {
  const clock = new FakeClock();
  const args = ['watch', volume().directory, '--poll', '2h', '--listen', '127.0.0.1:0', '--json'];
  const program = startMain(args, { clock });
  await event(program, 'ready');
  const { port } = await event(program, 'listening');
  const checks = async (): Promise<unknown> => {
    const { components } = (await (await fetch(`http://127.0.0.1:${String(port)}/status`)).json()) as {
      components: { checks?: number }[];
    };
    expect(components).toMatchObject([{ backend: 'poll', checkIntervalMs: 7_200_000 }]);
    return components[0]?.checks;
  };
  const before = await checks();
  await clock.advance(7_199_000);
  expect(await checks()).toBe(before);
  await clock.advance(1_000);
  expect(await checks()).not.toBe(before);
});

test('a program that does not exist is named at the start, and used once it does', async () => {
  const mounted = volume();
  const hook = join(temporaryDirectory(), 'hook');
  const program = watch([mounted.directory], '--', hook);
  expect(await event(program, 'missing-program')).toMatchObject({ level: 'warn', program: hook });
  mounted.publish({ n: '1' });
  await event(program, 'failed');
  writeFileSync(hook, '#!/bin/sh\n', { mode: 0o755 });
  await succeededWith(program, mounted.revision);
});

test('a command line in one word is said to be no program, with what to do', async () => {
  const mounted = volume();
  const program = watch([mounted.directory], '--', 'true with arguments');
  const advice = 'its arguments have to be words of their own';
  expect((await event(program, 'missing-program'))['message']).toContain(advice);
  mounted.publish({ n: '1' });
  expect((await event(program, 'failed'))['message']).toContain(advice);
});

test('output that nobody reads is kept up to a limit, and the rest is counted', async () => {
  const mounted = volume();
  const acted = join(temporaryDirectory(), 'acted');
  const program = watch([mounted.directory], '--exec', `cat > /dev/null; echo $RW_REVISION > ${acted}`);
  await event(program, 'ready');
  const read = program.stopReading();
  const before = program.stdout.length;
  const folders = Array.from({ length: 12 }, () => 'k'.repeat(250)).join('/');
  // Each is reported in a line of some 240 KB.
  for (let swap = 0; swap < 14; swap += 1) {
    const keys = Array.from({ length: 40 }, (_, index) => [`${folders}/${index}`, `${swap}`]);
    const { revision } = mounted.publish(Object.fromEntries(keys) as Record<string, string>);
    await expect.poll(() => existsSync(acted) && readFileSync(acted, 'utf8').trim()).toBe(revision);
  }
  read();
  await program.until(/"event":"succeeded"/);
  mounted.publish({ n: 'small' });
  expect(await event(program, 'dropped')).toMatchObject({
    level: 'warn',
    count: expect.any(Number) as number,
  });
  expect(program.stdout.length - before).toBeLessThan(2_000_000);
});

test('the name of a file cannot pass for an event or control the terminal', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'a\n2026-01-01T00:00:00.000Z ERROR \u001b[2Jb'), 'x');
  const program = startMain(['watch', directory]);
  await program.until(/watching/);
  expect(program.stderr).toContain('found: a 2026-01-01T00:00:00.000Z ERROR \\u001b[2Jb');
  expect(await program.terminated()).toBe(0);
});

test('--recursive follows the folders below; limits are explained without options of the library', async () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'below'));
  const shallow = watch([root]);
  await event(shallow, 'ready');
  writeFileSync(join(root, 'below/key'), 'new');
  writeFileSync(join(root, 'own'), 'new');
  await event(shallow, 'change', ({ added }) => String(added) === 'own');
  await shallow.terminated();
  expect(shallow.stdout).not.toContain('below/key');
  const deep = watch([root], '--recursive');
  await event(deep, 'ready');
  writeFileSync(join(root, 'below/other'), 'new');
  await event(deep, 'change', ({ added }) => String(added) === 'below/other');
  writeFileSync(join(root, 'large'), Buffer.alloc(2 ** 21));
  const { message } = await event(deep, 'warning');
  expect(message).toMatch(/too large or too many.*inode and timestamps/);
});
