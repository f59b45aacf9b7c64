import { rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import {
  ConfigLoader,
  FileProvider,
  jsonParser,
  type ConfigError,
  type ConfigLoaderOptions,
  type ConfigRejection,
  type FileProviderOptions,
} from 'resilient-watcher/config';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { onTestFinished } from 'vitest';

import { realIo } from './real-io.js';
import { temporaryDirectory } from './temporary-directory.js';

/** Longer than a write in place settles, a missing file is waited for and sources are waited for, together. */
const WHOLE_STEP_MS = 1_000;

/** Files, fake time, scripted hints, and what a loader emits. */
export class ConfigScene {
  readonly root = temporaryDirectory();
  readonly clock = new FakeClock();
  readonly backend = new ScriptedBackend();
  /** The paths of each change after the first configuration. */
  readonly changes: string[][] = [];
  readonly rejections: ConfigRejection[] = [];
  readonly unreadable: string[] = [];
  readonly readable: string[] = [];
  readonly errors: Error[] = [];

  path(name: string): string {
    return join(this.root, name);
  }

  write(name: string, value: unknown): void {
    writeFileSync(this.path(name), typeof value === 'string' ? value : JSON.stringify(value));
  }

  remove(name: string): void {
    rmSync(this.path(name));
  }

  file(name: string, options: FileProviderOptions = {}): FileProvider {
    const { clock, backend } = this;
    return new FileProvider(this.path(name), {
      clock,
      backend,
      parser: jsonParser,
      resyncIntervalMs: 0,
      ...options,
    });
  }

  loader<T>(options: ConfigLoaderOptions<T>): ConfigLoader<T> {
    const loader = new ConfigLoader<T>({ clock: this.clock, ...options });
    loader.on('change', ({ previous, paths }) => {
      if (previous !== undefined) this.changes.push(paths.map((path) => path.join('.')));
    });
    loader.on('rejected', (rejection) => this.rejections.push(rejection));
    loader.on('unreadable', ({ source, error }) =>
      this.unreadable.push(`${basename(source)} ${(error as ConfigError).problems[0]?.code ?? ''}`),
    );
    loader.on('readable', ({ source }) => this.readable.push(basename(source)));
    loader.on('error', (error) => this.errors.push(error));
    onTestFinished(() => loader.close());
    return loader;
  }

  /** Loads the configuration while time passes. */
  load<T>(loader: ConfigLoader<T>): Promise<T> {
    return this.during(loader.load());
  }

  /** Lets time pass until a promise is settled. */
  async during<T>(promise: Promise<T>): Promise<T> {
    const state = { settled: false };
    const end = (): void => void (state.settled = true);
    promise.then(end, end);
    await realIo();
    while (!state.settled) {
      await this.clock.advance(1);
      await realIo();
    }
    return promise;
  }

  /** What has begun is done, without any time. */
  async settled(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await realIo();
  }

  /** A hint, and the time in which all that it leads to happens. */
  async pass(ms = WHOLE_STEP_MS): Promise<void> {
    this.backend.hint();
    await realIo();
    for (let left = ms; left > 0; left -= 100) {
      await this.clock.advance(100);
      await realIo();
    }
  }
}
