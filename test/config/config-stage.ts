import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  ConfigLoader,
  FileProvider,
  jsonParser,
  type ConfigLoaderOptions,
  type ConfigRejection,
  type FileProviderOptions,
} from 'resilient-watcher/config';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { onTestFinished } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** Longer than an in-place write settles, a missing file is pendingPaths, and sources are waited for. */
const WHOLE_STEP_MS = 1_000;

/** Files, fake time and scripted hints, and what a loader tells. */
export class ConfigStage {
  readonly root = temporaryDirectory();
  readonly clock = new FakeClock();
  readonly backend = new ScriptedBackend();
  readonly changes: string[][] = [];
  readonly rejections: ConfigRejection[] = [];
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
    loader.on('change', ({ paths }) => this.changes.push(paths.map((path) => path.join('.'))));
    loader.on('rejected', (rejection) => this.rejections.push(rejection));
    loader.on('error', (error) => this.errors.push(error));
    onTestFinished(() => loader.close());
    return loader;
  }

  /** A hint, and the time in which all that it leads to happens. */
  async pass(ms = WHOLE_STEP_MS): Promise<void> {
    this.backend.hint();
    await this.clock.advance(0);
    for (let left = ms; left > 0; left -= 100) await this.clock.advance(100);
  }
}
