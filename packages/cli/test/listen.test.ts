/** What `--listen` serves, and rules from a file. */
import { rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { startMain, type CommandLine } from './support/command-line.js';
import { rounds } from '../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

async function listening(args: readonly string[]): Promise<{ program: CommandLine; url: string }> {
  const program = startMain([...args.slice(0, 1), '--listen', '127.0.0.1:0', ...args.slice(1)]);
  const [, port] = await program.until(/listening on 127\.0\.0\.1:(\d+)/);
  return { program, url: `http://127.0.0.1:${port}` };
}

describe('--listen', () => {
  test('serves probes, the status of every component and metrics, with what actions came to', async () => {
    const mounted = volume();
    const { program, url } = await listening([
      'watch',
      mounted.directory,
      '--exec',
      'grep -q good "$RW_PATH/n" # correct horse',
    ]);
    const get = async (path: string) => {
      const response = await fetch(url + path);
      return { status: response.status, text: await response.text() };
    };
    await program.until(/watching/);
    mounted.publish({ n: 'bad' });
    await program.until(/exited with code 1/);
    expect((await get('/readyz')).status).toBe(200);
    for (const path of ['/status', '/metrics']) {
      const { text } = await get(path);
      expect(text).toContain('grep');
      expect(text).not.toContain('horse');
    }
    mounted.publish({ n: 'good' });
    await program.until(/done in/);
    expect((await get('/livez')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
    const status = JSON.parse((await get('/status')).text) as {
      components: { kind: string; state: string }[];
    };
    expect(status.components).toMatchObject([
      { kind: 'ReloadAction', state: 'ready', lastSuccessful: true },
      { kind: 'ResilientWatcher', state: 'watching' },
    ]);
    const { text } = await get('/metrics');
    expect(text).toMatch(
      /resilient_watcher_actions_total\{target="[^"]+",action="exec",result="succeeded"\} [1-9]/,
    );
    expect(text).toMatch(
      /resilient_watcher_actions_total\{target="[^"]+",action="exec",result="error"\} [1-9]/,
    );
    expect(text).toMatch(/resilient_watcher_changes_total\{target="[^"]+\/volume",cause="fs"\} \d/);
    expect((await get('/nope')).status).toBe(404);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
    expect(await program.terminated()).toBe(0);
  });

  test('answers the absolute form of a request, as proxies send it', async () => {
    const { program, url } = await listening(['watch', temporaryDirectory()]);
    await program.until(/watching/);
    const { hostname: host, port } = new URL(url);
    const statuses = ['/readyz', '/livez?verbose', '/metrics', '/status', '/nope'].map(
      (path) =>
        new Promise((resolve) => {
          const asked = request({ host, port, path: `HTTP://proxied.example:80${path}` }, (response) => {
            response.resume();
            resolve(response.statusCode);
          });
          asked.end();
        }),
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 200, 404]);
  });

  test('ends with the program, also while a client has sent only half of its request', async () => {
    const { program, url } = await listening(['watch', temporaryDirectory()]);
    await program.until(/watching/);
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
    const ended = new Promise((resolve) => socket.once('close', resolve));
    socket.write('GET /livez HTTP/1.1\r\n');
    // By now the server knows that client, too.
    await fetch(`${url}/livez`);
    expect(await program.terminated()).toBe(0);
    await ended;
  });

  test('is not ready before the command of run could be started', async () => {
    const { program, url } = await listening(['run', join(temporaryDirectory(), 'later'), '--', 'true']);
    await program.until(/waiting for/);
    const statuses = ['livez', 'readyz'].map(async (probe) => (await fetch(`${url}/${probe}`)).status);
    expect(await Promise.all(statuses)).toEqual([200, 503]);
    expect(await program.terminated()).toBe(143);
  });
});

describe('--config', () => {
  const rules = (...given: object[]): string => JSON.stringify({ rules: given });

  test('takes rules from a volume, replaces them when it changes, and keeps the last good ones', async () => {
    const [a, b] = [volume(), volume()];
    const config = new KubeletVolume(join(temporaryDirectory(), 'config'));
    const first = { paths: [a.directory], exec: ['echo "a got $RW_KEYS"'] };
    config.publish({ 'rules.yaml': rules(first) });
    const program = startMain(['watch', '--config', config.path('rules.yaml')]);
    await program.until(/1 rule in use/);
    a.publish({ n: '1', first: '' });
    await program.until(/a got \["first"/);

    config.publish({ 'rules.yaml': rules(first, { paths: [b.directory], timeout: 'soon' }) });
    await program.until(/the rules stay as they are: [^]*rules\.1\.timeout: It must/);
    a.publish({ n: '1', second: '' });
    await program.until(/a got \["second"/);

    const second = {
      paths: [b.directory],
      check: 'true',
      command: ['/bin/sh', '-c', 'echo "b got $RW_KEYS"'],
    };
    config.publish({ 'rules.yaml': rules(first, second) });
    await program.until(/2 rules in use/);
    // Whatever it is that was there before, a new rule acts once.
    await program.until(/b got \["n"\]/);
    b.publish({ n: '1', third: '' });
    await program.until(/b got \["third"/);
    a.publish({ n: '1', fourth: '' });
    await program.until(/a got \["fourth","second"\]/);
    expect(await program.terminated()).toBe(0);
  });

  test('gives a command its words as they are written, and runs a rule once that is given twice', async () => {
    const file = join(temporaryDirectory(), 'rules.yaml');
    const rule = `  - paths: [${volume().directory}]
    initial: true
    command: [/bin/echo, said, 1.10, 0x10, 1e3, +5, 0o17, ~, null, true, 2026-11-28]\n`;
    writeFileSync(file, `rules:\n${rule}${rule}`);
    const program = startMain(['watch', '--config', file]);
    await program.until(/1 rule in use \(1 given twice\)/);
    await program.until(/^said 1\.10 0x10 1e3 \+5 0o17 ~ null true 2026-11-28$/m);
    expect(program.stderr.match(/^said/gm)).toHaveLength(1);
  });

  test('a rule that replaces another handles changes that the old one has not seen', async () => {
    const mounted = volume();
    const file = join(temporaryDirectory(), 'rules.yaml');
    // It checks once an hour, and so does not see the update.
    const first = { paths: [mounted.directory], poll: '1h', exec: ['echo first'] };
    writeFileSync(file, rules(first));
    const program = startMain(['watch', '--config', file]);
    await program.until(/1 rule in use/);
    mounted.publish({ n: 'missed', more: '' });
    writeFileSync(
      file,
      rules({ ...first, exec: ['echo "second: $(cat $RW_PATH/n), $RW_KEYS" | tr "\\n" " "'] }),
    );
    await program.until(/second: missed, \["more","n"\]/);
    expect(program.stderr).not.toMatch(/^first/m);
  });

  test('many rules are in use, exchanged and stopped without a warning', async () => {
    const mounted = volume();
    const directory = temporaryDirectory();
    const file = join(directory, 'rules.yaml');
    const count = rounds(40, 300);
    const many = (exec: string): string =>
      rules(...Array.from({ length: count }, (_, n) => ({ paths: [mounted.path(`${n}`)], exec: [exec] })));
    writeFileSync(file, many('echo one'));
    const program = startMain(['watch', '--config', file, '--log-level', 'info']);
    await program.until(new RegExp(`${count} rules in use`));
    mounted.publish({ 30: 'x' });
    await program.until(/^one$/m);
    writeFileSync(file, many('echo two'));
    await program.until(new RegExp(`${count} rules in use[^]*${count} rules in use`));
    mounted.publish({ 30: 'y' });
    await program.until(/^two$/m);
    program.signal('SIGTERM');
    expect([await program.exit, program.stderr]).toEqual([0, expect.not.stringContaining('Warning')]);
  });

  test('rules stay as they are while the file is missing', async () => {
    const mounted = volume();
    const file = join(temporaryDirectory(), 'rules.yaml');
    writeFileSync(file, rules({ paths: [mounted.directory], exec: ['cat $RW_PATH/n; echo'] }));
    const program = startMain(['watch', '--config', file]);
    await program.until(/1 rule in use/);
    rmSync(file);
    await program.until(/unreadable: .*no such file/);
    mounted.publish({ n: 'still there' });
    await program.until(/^still there$/m);
  });
});
