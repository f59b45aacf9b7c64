import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { ServiceAccountToken } from 'resilient-watcher';
import {
  parseServiceAccountTokens,
  ServiceAccountTokens,
  VolumePublisher,
  type PublishedVolume,
  type VolumePublisherOptions,
} from '@resilient-watcher/csi';
import { FakeClock, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const MINUTE = 60_000;

function tokensOf(text: string, expiresAt = Infinity): ServiceAccountTokens {
  const dates = { issuedAt: 0, notBefore: 0, expiresAt, notAfter: expiresAt };
  return new ServiceAccountTokens(new Map([['vault', new ServiceAccountToken(text, dates)]]));
}

/** A target directory, and a producer that counts. */
function publisherScene(options: VolumePublisherOptions = {}) {
  const clock = new FakeClock();
  const publisher = new VolumePublisher({ clock, ...options });
  onTestFinished(() => publisher.close());
  const target = join(temporaryDirectory(), 'mount');
  mkdirSync(target);
  const failures: unknown[] = [];
  publisher.on('failed', (event) => void failures.push(event));
  const scene = {
    clock,
    publisher,
    target,
    failures,
    produced: 0,
    /** What the provider has; an error: it fails. */
    secret: 'one' as string | Error,
    expiresAt: undefined as number | undefined,
    publish: (tokens?: ServiceAccountTokens, by = publisher) =>
      by.publish(
        'volume-1',
        target,
        () => {
          scene.produced += 1;
          if (scene.secret instanceof Error) throw scene.secret;
          return { files: { password: scene.secret, user: 'me' }, expiresAt: scene.expiresAt };
        },
        { tokens },
      ),
    read: () => readFileSync(join(target, 'password'), 'utf8'),
  };
  return scene;
}

test.each<[string, (scene: ReturnType<typeof publisherScene>) => unknown, 'skipped' | 'unchanged']>([
  ['nothing changed', () => undefined, 'skipped'],
  ['just under two minutes passed', ({ clock }) => clock.advance(2 * MINUTE - 1), 'skipped'],
  ['two minutes passed', ({ clock }) => clock.advance(2 * MINUTE), 'unchanged'],
  [
    'two minutes passed while the clock was set back',
    async ({ clock }) => {
      clock.jump(-24 * 60 * MINUTE);
      await clock.advance(2 * MINUTE);
    },
    'unchanged',
  ],
  ['the clock passed the end of the contents', ({ clock }) => clock.jump(60 * MINUTE), 'unchanged'],
])('when %s, a republish does what is needed', async (_, meanwhile, outcome) => {
  const scene = publisherScene();
  scene.expiresAt = scene.clock.now() + 30 * MINUTE;
  const { revision } = await scene.publish(tokensOf('a'));
  await meanwhile(scene);
  expect(await scene.publish(tokensOf('a'))).toEqual({ outcome, revision, error: undefined });
  expect(scene.produced).toBe(outcome === 'skipped' ? 1 : 2);
});

test('contents are produced again for other tokens, and when they were removed', async () => {
  const scene = publisherScene();
  await scene.publish(tokensOf('a'));
  expect((await scene.publish(tokensOf('b'))).outcome).toBe('unchanged');
  rmSync(join(scene.target, '..data'));
  expect((await scene.publish(tokensOf('b'))).outcome).toBe('published');
  expect(scene.read()).toBe('one');
});

test('contents are as old as the request for them, however long their producer takes', async () => {
  const { publisher, target, clock } = publisherScene();
  const publish = (): Promise<PublishedVolume> =>
    publisher.publish('volume-1', target, async () => {
      await clock.advance(MINUTE);
      return { files: { password: 'one' } };
    });
  await publish();
  await clock.advance(MINUTE);
  expect((await publish()).outcome).toBe('unchanged');
});

test('a producer that fails leaves the last good contents, and is reported without its secrets', async () => {
  const scene = publisherScene();
  await scene.publish(tokensOf('a'));
  scene.secret = new Error(`403 for ${mintTestToken()}`);
  const result = await scene.publish(tokensOf('b'));
  expect(result).toMatchObject({ outcome: 'kept', error: { code: 'ERR_CSI_PRODUCE' } });
  expect(result.error?.message).toBe('Cannot produce the volume "volume-1": 403 for [redacted]');
  expect(inspect([result, scene.failures], { depth: Infinity })).not.toContain('eyJ');
  expect(scene.failures).toMatchObject([{ volumeId: 'volume-1', targetPath: scene.target, kept: true }]);
  expect(scene.read()).toBe('one');
  scene.secret = 'two';
  expect((await scene.publish(tokensOf('b'))).outcome).toBe('published');
});

test.each([undefined, null, [], 'text'])(
  'a producer that returns %j has failed, with a reason',
  async (result) => {
    const { publisher, target } = publisherScene();
    await expect(
      publisher.publish('volume-1', target, () => Promise.resolve(result as never), {
        tokens: tokensOf('a'),
      }),
    ).rejects.toThrow('Cannot produce the volume "volume-1": it must return an object with "files"');
  },
);

test.each([['as they are'], ['as a function']])(
  'a producer that quotes opaque tokens given %s shows none',
  async (how) => {
    const { publisher, target, failures } = publisherScene();
    const tokens = tokensOf('hvs.opaque/token+1');
    const publishing = publisher.publish(
      'v',
      target,
      ({ tokens: given }) => {
        const secret = given.get('vault').value;
        const request = { headers: { 'x-vault-token': secret } };
        throw Object.assign(new Error(`403 for ${encodeURIComponent(secret)}: log in again`), { request });
      },
      { tokens: how === 'as a function' ? () => tokens : tokens },
    );
    const error: unknown = await publishing.catch((reason: unknown) => reason);
    expect((error as Error).message).toBe('Cannot produce the volume "v": 403 for [redacted]: log in again');
    const shown = inspect([error, failures, publisher], { depth: Infinity, showHidden: true });
    expect(shown + JSON.stringify(publisher)).not.toContain('opaque');
  },
);

const TOKENS_KEY = 'csi.storage.k8s.io/serviceAccount.tokens';

test.each<[string, () => ServiceAccountTokens, string]>([
  [
    'that are not JSON',
    () => parseServiceAccountTokens({ secrets: { [TOKENS_KEY]: '{' } }),
    'ERR_CSI_TOKENS',
  ],
  [
    'of the wrong shape',
    () => parseServiceAccountTokens({ secrets: { [TOKENS_KEY]: '[]' } }),
    'ERR_CSI_TOKENS',
  ],
  ['for other audiences', () => tokensOf('b'), 'ERR_CSI_TOKENS'],
])('tokens %s are a failure like that of a producer', async (_, tokens, code) => {
  const { publisher, target } = publisherScene();
  const publish = (given: () => ServiceAccountTokens, audience: string): Promise<PublishedVolume> =>
    publisher.publish('v', target, (context) => ({ files: { for: context.tokens.get(audience).value } }), {
      tokens: given,
    });
  await expect(publish(tokens, 'sts')).rejects.toMatchObject({ code });
  expect(readdirSync(target)).toEqual([]);
  await publish(() => tokensOf('a'), 'vault');
  expect(await publish(tokens, 'sts')).toMatchObject({ outcome: 'kept', error: { code } });
  expect(readFileSync(join(target, 'for'), 'utf8')).toBe('a');
});

test.each<[string, unknown]>([
  ['a key out of the volume', { files: { '../x': 'y' } }],
  ['a value that is none', { files: { x: 1 } }],
  ['nothing', undefined],
  ['an expiry that is none', { files: { x: 'y' }, expiresAt: NaN }],
  ['an expiry as text', { files: { x: 'y' }, expiresAt: '2030-01-01T00:00:00Z' }],
  ['an expiry that is null', { files: { x: 'y' }, expiresAt: null }],
  ['no files', {}],
  ['a set of files', { files: new Set(['x']) }],
  ['a list of files', { files: ['x'] }],
  ['files of a class', { files: new Date() }],
  ['a Map with a wrong value', { files: new Map([['x', 1]]) }],
])('a producer that gives %s has failed, and the old contents stay', async (_, given) => {
  const { publisher, target } = publisherScene();
  const publishing = publisher.publish('v', target, () => given as never);
  await expect(publishing).rejects.toMatchObject({ code: 'ERR_CSI_PRODUCE' });
  await publisher.publish('v', target, () => ({ files: { a: 'old' } }));
  const tokens = tokensOf('b');
  expect(await publisher.publish('v', target, () => given as never, { tokens })).toMatchObject({
    outcome: 'kept',
  });
  expect(readFileSync(join(target, 'a'), 'utf8')).toBe('old');
});

test.each(['/', '//'])('a target path with %j at its end is the same target', async (slashes) => {
  const { publisher, target } = publisherScene();
  const { promise, resolve } = withResolvers();
  const log: string[] = [];
  const first = publisher.publish('v', target, async () => {
    log.push('first begins');
    await promise;
    log.push('first ends');
    return { files: { a: '1' } };
  });
  const second = publisher.publish(
    'v',
    `${target}${slashes}`,
    () => (log.push('second'), { files: { a: '2' } }),
    {
      tokens: tokensOf('b'),
    },
  );
  await expect.poll(() => log).toContain('first begins');
  resolve();
  await Promise.all([first, second]);
  expect(log).toEqual(['first begins', 'first ends', 'second']);
  const stranger = publisher.publish('w', `${target}${slashes}`, () => expect.unreachable());
  await expect(stranger).rejects.toThrow('is in use by the volume "v"');
  await publisher.unpublish('v', `${target}${slashes}`);
  expect(readdirSync(target)).toEqual([]);
});

test('its status is plain data: what is published, and the last failure', async () => {
  const scene = publisherScene({ name: 'csi' });
  expect(scene.publisher.status()).toEqual({ name: 'csi', state: 'idle', lastError: null, volumes: [] });
  const { revision } = await scene.publish();
  const volume = { volumeId: 'volume-1', targetPath: scene.target };
  expect(scene.publisher.status()).toMatchObject({ state: 'running', volumes: [{ ...volume, revision }] });
  scene.secret = new Error('no provider');
  await scene.publish(tokensOf('b'));
  expect(JSON.parse(JSON.stringify(scene.publisher))).toMatchObject({
    lastError: { name: 'KubernetesError', code: 'ERR_CSI_PRODUCE', at: scene.clock.now() },
    volumes: [{ ...volume, revision: null }],
  });
});

test.each([['before it begins'], ['while it runs']])('unpublish stops a producer %s', async (when) => {
  const { publisher, target } = publisherScene();
  let running = false;
  const hanging = publisher.publish('v', target, () => {
    running = true;
    return new Promise(() => {});
  });
  const outcome = expect(hanging).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  if (when === 'while it runs') await expect.poll(() => running).toBe(true);
  await publisher.unpublish('v', target);
  await outcome;
  expect(readdirSync(target)).toEqual([]);
});

test('unpublish of a volume at one target leaves its publication at another one alone', async () => {
  const { publisher, target } = publisherScene();
  const other = join(temporaryDirectory(), 'mount');
  mkdirSync(other);
  const publishing = publisher.publish('v', target, async () => {
    await unpublishing;
    return { files: { password: 'one' } };
  });
  const unpublishing = publisher.unpublish('v', other);
  expect(await publishing).toMatchObject({ outcome: 'published' });
});

test.each<[string, (directory: string) => string, string]>([
  ['relative', () => 'mount', 'is not an absolute path'],
  ['empty', () => '', 'is not an absolute path'],
  ['missing', (directory) => join(directory, 'none'), 'does not exist'],
  ['below a file', (directory) => join(directory, 'file', 'mount'), 'cannot be examined'],
  ['unclean', (directory) => `${directory}/a/../mount`, 'is not a clean path'],
  ['the root', () => '/', 'is the root directory'],
  ['the root, however it is spelled', () => '//', 'is the root directory'],
  ['a file', (directory) => join(directory, 'file'), 'is not a directory'],
  ['a link to elsewhere', (directory) => join(directory, 'link'), 'is a symbolic link'],
  ['a link, however it is spelled', (directory) => join(directory, 'link/'), 'is a symbolic link'],
])('a target that is %s is refused, and nothing is produced, written or removed', async (_, make, reason) => {
  const { publisher, target: elsewhere } = publisherScene();
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'file'), '');
  symlinkSync(elsewhere, join(directory, 'link'));
  writeFileSync(join(elsewhere, 'secret'), 'of another');
  const path = make(directory);
  const expected = { code: 'ERR_CSI_TARGET', message: expect.stringContaining(reason) as string };
  await expect(publisher.publish('v', path, () => expect.unreachable())).rejects.toMatchObject(expected);
  const unpublishing = publisher.unpublish('v', path);
  if (reason === 'does not exist') await unpublishing;
  else await expect(unpublishing).rejects.toMatchObject(expected);
  expect(readdirSync(directory)).toEqual(['file', 'link']);
  expect(readdirSync(elsewhere)).toEqual(['secret']);
});

/** Hooks that return when the test lets them. */
function slowHooks() {
  const calls: string[] = [];
  const running: (() => void)[] = [];
  const state = {
    calls,
    most: 0,
    isSlow: true,
    release: () => running.splice(0).forEach((resolve) => resolve()),
  };
  const hook = (name: string) => async (): Promise<void> => {
    calls.push(name);
    if (!state.isSlow) return;
    const { promise, resolve } = withResolvers();
    running.push(resolve);
    state.most = Math.max(state.most, running.length);
    await promise;
  };
  return { state, hooks: { prepareTarget: hook('prepare'), removeTarget: hook('remove') } };
}

test('a hook that does not return fails its call in time, and the next one is called when it has returned', async () => {
  const { state, hooks } = slowHooks();
  const scene = publisherScene(hooks);
  const { publisher, clock, target } = scene;
  const failed = expect(scene.publish()).rejects.toMatchObject({
    code: 'ERR_CSI_TARGET',
    message: `Cannot prepare "${target}": prepareTarget of "${target}" has not returned for 90000 ms`,
  });
  await expect.poll(() => state.calls).toEqual(['prepare']);
  await clock.advance(90_000);
  await failed;

  const removed = expect(publisher.unpublish('volume-1', target)).rejects.toMatchObject({
    code: 'ERR_CSI_TARGET',
    message: `Cannot remove "${target}": prepareTarget of "${target}" has not returned for 90000 ms`,
  });
  await expect.poll(() => clock.pending).toBe(1);
  await clock.advance(90_000);
  await removed;

  const published = scene.publish();
  await expect.poll(() => clock.pending).toBe(1);
  expect(state.calls).toEqual(['prepare']);
  state.isSlow = false;
  state.release();
  expect((await published).outcome).toBe('published');
  expect([state.calls, state.most]).toEqual([['prepare', 'prepare'], 1]);
});

test('contents that are there are kept when the target cannot be prepared again', async () => {
  const { state, hooks } = slowHooks();
  const scene = publisherScene(hooks);
  state.isSlow = false;
  await scene.publish();
  state.isSlow = true;
  const again = scene.publish(tokensOf('b'));
  await expect.poll(() => state.calls.length).toBe(2);
  await scene.clock.advance(90_000);
  expect(await again).toMatchObject({ outcome: 'kept', error: { code: 'ERR_CSI_TARGET' } });
  expect(scene.read()).toBe('one');
  expect(scene.failures).toMatchObject([{ kept: true }]);
  state.release();
});

test.each(['prepareTarget', 'removeTarget'])(
  'close() ends when a %s does not return, and says which it is',
  async (hook) => {
    const { state, hooks } = slowHooks();
    const scene = publisherScene(hooks);
    const { publisher, clock, target } = scene;
    const call = hook === 'prepareTarget' ? scene.publish() : publisher.unpublish('volume-1', target);
    const outcome = expect(call).rejects.toMatchObject({
      code: 'ERR_CLOSED',
      message: expect.stringContaining(`${hook} of "${target}" has not returned`) as string,
    });
    await expect.poll(() => state.calls.length).toBe(1);
    let isClosed = false;
    const closed = publisher.close().then(() => (isClosed = true));
    await clock.advance(9_000);
    expect(isClosed).toBe(false);
    await clock.advance(1_000);
    await closed;
    await outcome;
    expect(clock.pending).toBe(0);
    state.release();
    await clock.advance(0);
    expect(readdirSync(target)).toEqual([]);
  },
);

test('close() ends as soon as a hook has returned', async () => {
  const { state, hooks } = slowHooks();
  const scene = publisherScene(hooks);
  const outcome = expect(scene.publish()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await expect.poll(() => state.calls.length).toBe(1);
  const closed = scene.publisher.close();
  state.release();
  await closed;
  await outcome;
  expect(scene.clock.pending).toBe(0);
});

test('a producer that closes the publisher and throws at once rejects that call alone', async () => {
  const { publisher, target } = publisherScene();
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const publishing = publisher.publish('volume-1', target, () => {
    void publisher.close();
    throw new Error('no');
  });
  await expect(publishing).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await new Promise(setImmediate);
  expect(rejections).toEqual([]);
});

test('unpublishing a volume that is not at the target is refused, and the one that is there goes on', async () => {
  const { publisher, target } = publisherScene();
  const { promise, resolve } = withResolvers();
  let signal: AbortSignal | undefined;
  const publishing = publisher.publish('volume-1', target, async (context) => {
    ({ signal } = context);
    await promise;
    return { files: { a: '1' } };
  });
  await expect.poll(() => signal).toBeDefined();
  const refused = { code: 'ERR_CSI_TARGET', message: expect.stringContaining('is in use by') as string };
  const unpublishing = expect(publisher.unpublish('volume-2', target)).rejects.toMatchObject(refused);
  expect(signal?.aborted).toBe(false);
  resolve();
  expect((await publishing).outcome).toBe('published');
  await unpublishing;
  expect(readdirSync(target)).toContain('a');
  renameSync(target, `${target}-moved`);
  await expect(publisher.unpublish('volume-2', target)).rejects.toMatchObject(refused);
  expect(publisher.status().volumes).toHaveLength(1);
});

test.each([
  ['the volume itself', '.'],
  ['the directory above it', '..'],
  ['a directory elsewhere', '/etc'],
  ['a file', 'file'],
  ['another link', 'link'],
])('a ..data that leads to %s is not taken for published contents', async (_, planted) => {
  const scene = publisherScene();
  writeFileSync(join(scene.target, 'file'), '');
  symlinkSync('.', join(scene.target, 'link'));
  symlinkSync(planted, join(scene.target, '..data'));
  scene.secret = new Error('no provider');
  await expect(scene.publish()).rejects.toMatchObject({ code: 'ERR_CSI_PRODUCE' });
  expect(scene.failures).toMatchObject([{ kept: false }]);
});

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}
