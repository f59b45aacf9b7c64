/** What takes a relative path, when the working directory of the process was removed. */
import { rmSync } from 'node:fs';

import {
  AtomicVolume,
  atomicWriteFile,
  atomicWriteFileSync,
  credentials,
  fileSink,
  readVolume,
  ResilientWatcher,
  SecretFile,
  TokenFile,
} from 'resilient-watcher';
import { DirectoryProvider, FileProvider, jsonParser, VolumeProvider } from 'resilient-watcher/config';
import { kubeconfigSink } from 'resilient-watcher/kubernetes';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, test } from 'vitest';

import { temporaryDirectory } from './support/temporary-directory.js';

test.skipIf(process.platform !== 'linux').each<[name: string, call: () => unknown]>([
  ['ResilientWatcher', () => new ResilientWatcher('a/b')],
  ['a group', () => new ResilientWatcher(['a/b', '/etc/hostname'])],
  ['add()', () => new ResilientWatcher(['/etc/hostname']).add('a/b')],
  ['SecretFile', () => new SecretFile('a/b').get()],
  ['credentials', () => credentials('a/b').get()],
  ['TokenFile', () => new TokenFile('a/b').get()],
  ['FileProvider', () => new FileProvider('a/b', { parser: jsonParser })],
  ['VolumeProvider', () => new VolumeProvider('a/b')],
  ['DirectoryProvider', () => new DirectoryProvider('a/b')],
  ['TlsFiles', () => new TlsFiles('a/b')],
  ['a certificate', () => new TlsFiles({ cert: 'a/b', key: '/etc/key' })],
  ['AtomicVolume', () => new AtomicVolume('a/b')],
  ['atomicWriteFile', () => atomicWriteFile('a/b', '')],
  ['atomicWriteFileSync', () => atomicWriteFileSync('a/b', '')],
  ['fileSink', () => fileSink('a/b')],
  ['kubeconfigSink', () => kubeconfigSink({ path: 'a/b', server: 'https://a' })],
  ['readVolume', () => readVolume('a/b')],
  ['KubeletVolume', () => new KubeletVolume('a/b')],
])('without a working directory, a relative path is refused with what to do: %s', async (_, call) => {
  const before = process.cwd();
  const directory = temporaryDirectory();
  process.chdir(directory);
  let outcome: unknown;
  try {
    rmSync(directory, { recursive: true });
    outcome = call();
  } catch (error) {
    outcome = error;
  } finally {
    process.chdir(before);
  }
  const error: unknown = await Promise.resolve(outcome).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(TypeError);
  expect((error as Error).message).toBe(
    'cannot resolve the relative path "a/b": the working directory of the process was removed; use an absolute path, or start the process in a directory that exists',
  );
});
