import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, inject } from 'vitest';

import { packages } from '../../packages/packages.mjs';

const execute = promisify(execFile);

/** What a command printed. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder outside the repository, as a user's application. */
export class Application {
  readonly directory = mkdtempSync(join(tmpdir(), 'resilient-watcher-application-'));

  constructor() {
    this.write('package.json', JSON.stringify({ private: true, type: 'module' }));
    afterAll(() => rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 }));
  }

  path(file: string): string {
    return join(this.directory, file);
  }

  write(file: string, text: string): void {
    writeFileSync(this.path(file), text);
  }

  /** Puts a program of `programs/` here, so that it finds what is installed here. */
  copy(program: string): string {
    this.write(program, readFileSync(fileURLToPath(new URL(`programs/${program}`, import.meta.url)), 'utf8'));
    return program;
  }

  /** `npm install` of the packed tarball, beside other packages, of this repository as well. */
  async install(packages: readonly string[] = [], ...flags: readonly string[]): Promise<void> {
    const quietly = ['install', '--no-audit', '--no-fund', '--loglevel=error', ...flags];
    await this.run('npm', ...quietly, inject('tarball'), ...packages);
  }

  run(command: string, ...args: readonly string[]): Promise<Output> {
    return execute(command, args, { cwd: this.directory });
  }

  node(...args: readonly string[]): Promise<Output> {
    return this.run(process.execPath, ...args);
  }
}

/** What users import: `resilient-watcher`, `resilient-watcher/config` and so on, and what the packages import. */
export const entryPoints: readonly string[] =
  packages[0]?.entryPoints.map(({ specifier }) => specifier) ?? [];
