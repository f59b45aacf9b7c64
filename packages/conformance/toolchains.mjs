/** Builds the adapters of a language into `.build`. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build, inotifyTools, runtime, runtimes } from './contestants.mjs';

const folder = (name) => fileURLToPath(new URL(name, import.meta.url));
const run = (file, args, options = {}) =>
  execFileSync(file, args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', ...options });

/** Python of the system, not of a user, whose directories another user may not enter. */
const systemPython = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

/** A runtime of npm, and its version. */
function installed(name) {
  const prefix = join(build, 'runtimes', runtimes[name]);
  const flags = ['--no-audit', '--no-fund', '--silent', '--prefix', prefix];
  if (!existsSync(runtime(name))) run('npm', ['install', ...flags, `${name}@${runtimes[name]}`]);
  return run(runtime(name), ['--version']).replace(/^\D*/, '');
}

const TOOLCHAINS = {
  Node: () => installed('node'),
  Bun: () => installed('bun'),
  Deno: () => installed('deno'),
  Go() {
    const version = run('go', ['version']);
    run('go', ['build', '-o', join(build, 'go'), '.'], { cwd: folder('contestants/go') });
    return version.replace('go version go', '');
  },
  Python() {
    const python = join(build, 'python/bin/python3');
    if (!existsSync(python)) run(systemPython, ['-m', 'venv', join(build, 'python')]);
    run(python, ['-m', 'pip', 'install', '--quiet', '-r', folder('contestants/python/requirements.txt')]);
    return run(python, ['--version']).replace('Python ', '');
  },
  Rust() {
    const version = run('cargo', ['--version']);
    const env = { ...process.env, CARGO_TARGET_DIR: join(build, 'rust') };
    run('cargo', ['build', '--release', '--locked', '--quiet'], { cwd: folder('contestants/rust'), env });
    return version.replace('cargo ', '');
  },
  Bash() {
    const found = run('sh', ['-c', 'inotifywait --help || true']);
    if (!found.includes(inotifyTools)) throw new Error(`inotify-tools ${inotifyTools} is not installed`);
    return run('bash', ['-c', 'echo $BASH_VERSION']).replace(/\(.*/s, '');
  },
  Java() {
    const version = run('javac', ['-version']);
    const sources = ['Watch', 'Show'].map((name) => folder(`contestants/java/${name}.java`));
    run('javac', ['-d', join(build, 'java'), ...sources]);
    return version.replace('javac ', '');
  },
};

/** Resolves each language to its version, or to why it cannot take part. */
export function prepare(languages) {
  mkdirSync(build, { recursive: true });
  return Object.fromEntries(
    languages.map((language) => {
      try {
        return [language, { version: TOOLCHAINS[language]().trim().split(' ')[0] }];
      } catch (error) {
        const reason =
          error.code === 'ENOENT' ? 'its toolchain is not installed' : error.message.split('\n')[0];
        return [language, { reason }];
      }
    }),
  );
}
