/** Mounted files of a client, which rotate. */
import { join } from 'node:path';

import { TokenFile } from 'resilient-watcher';
import { KubeletVolume, mintTestToken } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished } from 'vitest';

import { createServerPair, type Authority } from '../../../test/support/certificates.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

/** A mounted certificate of a client. */
export async function tlsScene(authority: Authority): Promise<{
  readonly files: TlsFiles;
  /** Writes a certificate with this common name, and waits until it is read. */
  readonly publish: (name: string) => Promise<void>;
}> {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  const files = new TlsFiles(volume.directory);
  onTestFinished(() => files.close());
  const publish = async (name: string): Promise<void> => {
    const { cert, key } = createServerPair(authority, { name });
    const previous = files.current;
    volume.publish({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert });
    await files.changed({ previous });
  };
  await publish('client-0');
  return { files, publish };
}

/** A mounted token. */
export async function tokenScene(): Promise<{
  readonly token: TokenFile;
  /** The first token. */
  readonly value: string;
  /** Writes another token, waits until it is read, and returns it. */
  readonly rotate: () => Promise<string>;
}> {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'token'));
  const token = new TokenFile(volume.path('token'));
  onTestFinished(() => token.close());
  let serial = 0;
  const rotate = async (): Promise<string> => {
    const value = mintTestToken({ jti: String((serial += 1)) });
    volume.publish({ token: value });
    await expect.poll(async () => (await token.get()).value).toBe(value);
    return value;
  };
  return { token, value: await rotate(), rotate };
}
